"""Reads strict YAML or JSON text into values that know their line.

Strict means that no value comes out other than it was written. Of the unquoted YAML scalars only
`null`, `~`, nothing, `true`, `false` and decimal numbers (`5`, `-1.5`, `1e-4`) are more than text:
`yes`, `0123`, `0x1F`, `12:30:45`, `2024-01-05` and `.inf` stay the text that they are. Refused are
equal keys, keys that are no text, tags, merge keys, several documents, lone surrogates, numbers
that a float cannot hold, and text beyond the limits below. Anchors and aliases are allowed.
"""

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import yaml

from dataflow_assets.pipeline.problems import Path, Problem, shown

MAX_NODES = 10_000
MAX_DEPTH = 50
_MAX_DIGITS = 100
_CHARS_A_NODE = 1000
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULLS = {"", "~", "null", "Null", "NULL"}
_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")
_CONTROL = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_JSON_TOKEN = re.compile(r'[\[\]{}:,]|"(?:[^"\\]|\\.)*"|[^\s\[\]{}:,"]+')

Scalar = str | int | float | bool | None
OnText = Callable[[str, Path, int], str]


class Unreadable(Exception):
    """The text has a mistake after which nothing can be made of it."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.problem = Problem(message, line=line)


@dataclass
class Node:
    """A value of the text and where it starts; `size` counts the values in it, aliases in full."""

    line: int
    value: "Scalar | list[Node] | dict[str, Node]"
    size: int = 1
    key_lines: dict[str, int] = field(default_factory=dict)

    def plain(self, on_text: OnText, path: Path = ()) -> object:
        """The value as plain Python data, every text (no key) as `on_text` gives it."""
        if isinstance(self.value, dict):
            return {key: child.plain(on_text, (*path, key)) for key, child in self.value.items()}
        if isinstance(self.value, list):
            return [child.plain(on_text, (*path, place)) for place, child in enumerate(self.value)]
        return on_text(self.value, path, self.line) if isinstance(self.value, str) else self.value

    def line_of(self, path: Path) -> int:
        """The line of the value at this path, or of the nearest one around it."""
        node, line = self, self.line
        for place in path:
            if isinstance(node.value, dict) and place in node.value:
                node, line = node.value[str(place)], node.key_lines[str(place)]
            elif isinstance(node.value, list) and isinstance(place, int) and place < len(node.value):
                node = node.value[place]
                line = node.line
            else:
                break
        return line


def read_text(text: str, language: Literal["yaml", "json"]) -> tuple[Node | None, list[Problem]]:
    """The value of the text, None where there is none, and the mistakes that could be passed over.

    Raises Unreadable for the others.
    """
    builder = _Builder()
    read = _read_json if language == "json" else _read_yaml
    read(text, builder)
    return builder.root, builder.problems


def typed(text: str) -> Scalar:
    """The value of an unquoted scalar. Raises ValueError for a number that is beyond all measure."""
    if text in _NULLS:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if len(text) > _MAX_DIGITS:
        if _INTEGER.fullmatch(text) or _FLOAT.fullmatch(text):
            raise ValueError(f"a number of {len(text)} characters; at most {_MAX_DIGITS} are read")
        return text
    if _INTEGER.fullmatch(text):
        return int(text)
    return _float(text) if _FLOAT.fullmatch(text) else text


def _float(text: str) -> float:
    number = float(text)
    mantissa = re.split("[eE]", text)[0]
    if math.isinf(number) or (number == 0 and mantissa.strip("+-0.")):
        raise ValueError(f"the number {text} is beyond what a float can hold")
    return number


@dataclass
class _Open:
    """A list or mapping that is being read; in a mapping, `key` waits for its value."""

    node: Node
    anchor: str | None
    wants_key: bool
    key: str | None = None


class _Builder:
    """Puts the values together, with the checks that YAML and JSON share."""

    def __init__(self) -> None:
        self.root: Node | None = None
        self.problems: list[Problem] = []
        self._open: list[_Open] = []
        self._anchors: dict[str, Node] = {}
        self._count = 0

    def scalar(self, text: str, quoted: bool, line: int, anchor: str | None = None) -> None:
        value: Scalar = text
        try:
            text.encode()
            value = text if quoted else typed(text)
        except UnicodeEncodeError:
            self._problem(f"{shown(text)} holds a lone surrogate, which is no text", line)
            value = ""
        except ValueError as error:
            self._problem(f"{error}; quote it to make it text", line)
        if text == "<<" and not quoted and self._open and self._open[-1].wants_key:
            self._problem("merge keys (<<) are not read; write the fields out", line)
        node = Node(line, value, 1 + len(text) // _CHARS_A_NODE)
        self._counted(node.size, line)
        self._finished(node, line, anchor)

    def start(self, value: "list[Node] | dict[str, Node]", line: int, anchor: str | None = None) -> None:
        if len(self._open) >= MAX_DEPTH:
            raise Unreadable(f"values are nested more than {MAX_DEPTH} levels deep", line)
        self._counted(1, line)
        self._open.append(_Open(Node(line, value), anchor, wants_key=isinstance(value, dict)))

    def end(self) -> None:
        done = self._open.pop()
        self._finished(done.node, done.node.line, done.anchor)

    def alias(self, anchor: str, line: int) -> None:
        node = self._anchors.get(anchor)
        if node is None:
            raise Unreadable(f"the alias *{anchor} stands for nothing that is complete before it", line)
        self._counted(node.size, line)
        self._finished(node, line, None)

    def _problem(self, message: str, line: int) -> None:
        self.problems.append(Problem(message, line=line))

    def _counted(self, nodes: int, line: int) -> None:
        self._count += nodes
        if self._count > MAX_NODES:
            raise Unreadable(f"more than {MAX_NODES} values, those behind aliases counted each time", line)

    def _finished(self, node: Node, line: int, anchor: str | None) -> None:
        if anchor is not None:
            self._anchors[anchor] = node
        if not self._open:
            self.root = node
            return
        around = self._open[-1]
        around.node.size += node.size
        if isinstance(around.node.value, list):
            around.node.value.append(node)
        elif around.wants_key:
            around.key, around.wants_key = self._key(around.node, node, line), False
        else:
            if around.key is not None and isinstance(around.node.value, dict):
                around.node.value[around.key] = node
            around.wants_key = True

    def _key(self, mapping: Node, node: Node, line: int) -> str | None:
        """The key that this node is, None where it cannot be one."""
        key = node.value
        if not isinstance(key, str):
            found = f"the key {key!r}" if not isinstance(key, list | dict) else "a list or mapping as a key"
            self._problem(f"{found} is no text; quote it", line)
            return None
        if key in mapping.key_lines:
            first = mapping.key_lines[key]
            self._problem(f"the key {shown(key)} is there twice, in line {first} and in line {line}", line)
            return None
        mapping.key_lines[key] = line
        return key


def _read_yaml(text: str, builder: _Builder) -> None:
    control = _CONTROL.search(text)
    if control is not None:
        line = text.count("\n", 0, control.start()) + 1
        raise Unreadable(f"the control character {control.group()!r} is not allowed here", line)
    documents = 0
    try:
        for event in yaml.parse(text, _LOADER):
            documents += isinstance(event, yaml.DocumentStartEvent)
            if documents > 1:
                raise Unreadable("a second document starts; one file is one pipeline", _line(event))
            _read_event(event, builder)
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(text, error) from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise Unreadable(f"this is no YAML: {error}") from None


def _read_event(event: yaml.Event, builder: _Builder) -> None:
    line = _line(event)
    tag = getattr(event, "tag", None)
    if tag is not None:
        raise Unreadable(f"the tag {tag!r} is not read; write the value as it is", line)
    if isinstance(event, yaml.ScalarEvent):
        builder.scalar(event.value, not event.implicit[0], line, event.anchor)
    elif isinstance(event, yaml.AliasEvent):
        builder.alias(event.anchor, line)
    elif isinstance(event, yaml.CollectionStartEvent):
        builder.start([] if isinstance(event, yaml.SequenceStartEvent) else {}, line, event.anchor)
    elif isinstance(event, yaml.CollectionEndEvent):
        builder.end()


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1


def _syntax_error(text: str, error: yaml.MarkedYAMLError) -> Unreadable:
    mark = error.problem_mark or error.context_mark
    if mark is None:
        return Unreadable(f"this is no YAML: {error.problem}")
    rows = text.split("\n")
    row = rows[mark.line] if mark.line < len(rows) else ""
    if "\t" in row[: mark.column + 1] and not row[: mark.column].strip():
        return Unreadable("a tab indents this line; YAML is indented with spaces", mark.line + 1)
    context = f" {error.context}" if error.context else ""
    return Unreadable(f"this is no YAML: {error.problem}{context}", mark.line + 1)


def _read_json(text: str, builder: _Builder) -> None:
    if not text.strip():
        return
    try:
        json.loads(text, parse_int=str, parse_float=str, parse_constant=_refused)
    except json.JSONDecodeError as error:
        raise Unreadable(f"this is no JSON: {error.msg}", error.lineno) from None
    except RecursionError:
        raise Unreadable(f"values are nested more than {MAX_DEPTH} levels deep") from None
    line, counted_to = 1, 0
    for token in _JSON_TOKEN.finditer(text):
        line += text.count("\n", counted_to, token.start())
        counted_to = token.start()
        _read_token(token.group(), line, builder)


def _refused(word: str) -> None:
    raise Unreadable(f"{word} is no JSON value")


def _read_token(token: str, line: int, builder: _Builder) -> None:
    if token in "[{":
        builder.start([] if token == "[" else {}, line)
    elif token in "]}":
        builder.end()
    elif token[0] == '"':
        builder.scalar(json.loads(token), True, line)
    elif token not in ",:":
        builder.scalar(token, False, line)
