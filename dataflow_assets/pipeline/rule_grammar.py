"""The rules of `expect` as text: `tokens.p95 <= 30`, `share(language = "zh") >= 0.9`, read into values.

rule       = value operator number
value      = rows | kept.share | failed.share | rejected.share | rejected(reason).share
           | null(column) | distinct(column)
           | duplicates | duplicates(column), and so near_duplicates and boilerplate
           | path.statistic
           | share(path operator number) | share(path = "text")
           | label_conflicts(input, …, label)
           | psi(path, reference) | js(path, reference)
path       = name [ . name ]          a measure, a column, or a column and its measure
reference  = before | last_run | "file.json"
name       = a word, or "anything" in double quotes, as JSON writes it
operator   = <= | >= | < | > | = | ==
"""

import json
import math
import re
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from dataflow_assets.pipeline.problems import listed, near_names, shown

Op = Literal["<=", ">=", "<", ">", "="]
Stat = Literal["mean", "min", "max", "p01", "p05", "p25", "p50", "p75", "p95", "p99"]
RowsOf = Literal["rows", "kept", "failed", "rejected"]
ColumnCount = Literal["null", "distinct", "duplicates", "near_duplicates", "boilerplate"]
Distance = Literal["psi", "js"]
STATS: tuple[Stat, ...] = get_args(Stat)
BEFORE, LAST_RUN = "before", "last_run"
_OF_COLUMN = ("null", "distinct")
_OF_TEXT = ("duplicates", "near_duplicates", "boilerplate")
_FUNCTIONS = (*_OF_COLUMN, *_OF_TEXT, "share", "rejected", "label_conflicts", "psi", "js")
_SHARES_OF_ROWS = ("kept", "failed", "rejected")
_MOST_CHARS = 1000
_TOKEN = re.compile(
    r"""(?P<number>[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?(?!\w))
    |(?P<name>[^\W\d][\w-]*)|(?P<text>"(?:[^"\\]|\\.)*")|(?P<op><=|>=|==|[<>=])|(?P<sign>[().,])|(?P<end>$)""",
    re.VERBOSE,
)
_WORD = re.compile(r"[^\W\d][\w-]*")


class Path(NamedTuple):
    """A measure, a column, or a column and its measure; which, is known once the columns are."""

    names: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join(map(_name_text, self.names))


class Count(NamedTuple):
    """Rows that the step made, or the share of rows that came in of which this became."""

    of: RowsOf
    reason: str | None = None

    def __str__(self) -> str:
        reason = "" if self.reason is None else f"({_name_text(self.reason)})"
        return "rows" if self.of == "rows" else f"{self.of}{reason}.share"


class OfColumn(NamedTuple):
    """What is counted in a column; without one it is the step's text column."""

    what: ColumnCount
    column: str | None = None

    def __str__(self) -> str:
        return self.what if self.column is None else f"{self.what}({_name_text(self.column)})"


class StatOf(NamedTuple):
    """A statistic of a measure."""

    path: Path
    stat: Stat

    def __str__(self) -> str:
        return f"{self.path}.{self.stat}"


class ShareOf(NamedTuple):
    """The share of rows whose measure, or value, is such."""

    path: Path
    op: Op
    operand: float | str

    def __str__(self) -> str:
        operand = _text(self.operand) if isinstance(self.operand, str) else _number_text(self.operand)
        return f"share({self.path} {self.op} {operand})"


class Conflicts(NamedTuple):
    """The share of rows whose inputs come with different labels."""

    inputs: tuple[str, ...]
    label: str

    def __str__(self) -> str:
        return f"label_conflicts({', '.join(map(_name_text, (*self.inputs, self.label)))})"


class File(NamedTuple):
    """A profile that was written to a file."""

    name: str

    def __str__(self) -> str:
        return _text(self.name)


Reference = Literal["before", "last_run"] | File


class Drift(NamedTuple):
    """How far a measure, or the shares of values, are from those of a reference."""

    distance: Distance
    path: Path
    reference: Reference

    def __str__(self) -> str:
        return f"{self.distance}({self.path}, {self.reference})"


Value = Count | OfColumn | StatOf | ShareOf | Conflicts | Drift


@dataclass(frozen=True)
class Rule:
    """A value, and the limit that it keeps to."""

    value: Value
    op: Op
    limit: float

    def __str__(self) -> str:
        return f"{self.value} {self.op} {_number_text(self.limit)}"


def compare(value: float, op: Op, limit: float, exact: bool = False) -> bool:
    """`value op limit`; unless they are `exact`, values that are equal but for rounding are equal."""
    is_near = not exact and math.isclose(value, limit, rel_tol=1e-12, abs_tol=1e-15)
    if op in ("=", "<=", ">=") and (is_near or value == limit):
        return True
    return {"<=": value <= limit, ">=": value >= limit, "<": value < limit, ">": value > limit, "=": False}[
        op
    ]


def parse(text: str) -> Rule:
    """The rule that is written. Raises ValueError that says what was found, and what was expected."""
    if len(text) > _MOST_CHARS:
        raise ValueError(f"a rule has at most {_MOST_CHARS} characters (found {len(text)})")
    return _Parser(text).rule()


class _Token(NamedTuple):
    kind: str
    text: str


class _Parser:
    """Reads one rule from left to right, one token ahead."""

    def __init__(self, text: str) -> None:
        self._text, self._place = text, 0
        self._next = self._read()

    def rule(self) -> Rule:
        value = self._value()
        op = self._op("after the value")
        limit = self._number("the limit")
        if self._next.kind != "end":
            raise self._error("the end of the rule")
        return Rule(value, op, limit)

    def _value(self) -> Value:
        quoted = self._next.kind == "text"
        name = self._name("a value such as rows, tokens.p95 or share(tokens > 30)")
        if not quoted and self._next.text == "(":
            return self._call(name)
        names = [name]
        while self._takes("."):
            names.append(self._name("a name after the dot"))
        if not quoted and len(names) == 1 and name in _OF_TEXT:
            return OfColumn(name)  # pyright: ignore[reportArgumentType]
        if not quoted and names == ["rows"]:
            return Count("rows")
        if not quoted and len(names) == 2 and name in _SHARES_OF_ROWS and names[1] == "share":
            return Count(name)  # pyright: ignore[reportArgumentType]
        return self._statistic(names)

    def _statistic(self, names: list[str]) -> StatOf:
        *path, stat = names
        if stat not in STATS or not 1 <= len(path) <= 2:
            written = ".".join(map(_name_text, names))
            if len(names) == 1 and stat in (*_FUNCTIONS, *_SHARES_OF_ROWS):
                hint = f"; write {stat}.share" if stat in _SHARES_OF_ROWS else f"; write {stat}(…)"
            elif stat in STATS:
                hint = "; names before the statistic are a measure, or a column and its measure"
            else:
                hint = near_names(stat, STATS if path else (*_FUNCTIONS, "rows")) or (
                    "" if path else f"; a statistic of it is written {written}.p95"
                )
            raise ValueError(f"{written!r} is no value (statistics are {', '.join(STATS)}){hint}")
        return StatOf(Path(tuple(path)), stat)  # pyright: ignore[reportArgumentType]

    def _call(self, function: str) -> Value:
        if function not in _FUNCTIONS:
            known = listed(_FUNCTIONS)
            raise ValueError(
                f"there is no {shown(function)}(…) (there are: {known}){near_names(function, _FUNCTIONS)}"
            )
        self._expect("(")
        value = self._arguments(function)
        self._expect(")")
        if function == "rejected":
            self._expect(".")
            if self._name("`share`") != "share":
                raise ValueError(f"after rejected(…) comes .share (in {self._text!r})")
        return value

    def _arguments(self, function: str) -> Value:
        if function in (*_OF_COLUMN, *_OF_TEXT):
            column = self._name("a column")
            return OfColumn(function, column)  # pyright: ignore[reportArgumentType]
        if function == "rejected":
            return Count("rejected", self._name("a reason"))
        if function == "label_conflicts":
            return self._conflicts()
        path = self._path()
        if function == "share":
            return self._share(path)
        self._expect(",")
        return Drift(function, path, self._reference())  # pyright: ignore[reportArgumentType]

    def _share(self, path: Path) -> ShareOf:
        op = self._op(f"after {path}")
        if self._next.kind != "text":
            return ShareOf(path, op, self._number(f"a number or a text in double quotes after {path} {op}"))
        if op != "=":
            raise ValueError(f"a text is compared with = (found {op} {self._next.text})")
        return ShareOf(path, op, self._string())

    def _conflicts(self) -> Conflicts:
        columns = [self._name("a column")]
        while self._takes(","):
            columns.append(self._name("a column"))
        if len(columns) < 2:
            raise ValueError("label_conflicts takes the inputs and then the label: at least two columns")
        if len(set(columns)) < len(columns):
            raise ValueError("label_conflicts names a column twice; inputs and label are different columns")
        return Conflicts(tuple(columns[:-1]), columns[-1])

    def _reference(self) -> Reference:
        if self._next.kind == "text":
            return File(self._string())
        found = self._name('before, last_run or a "file.json"')
        if found == BEFORE:
            return "before"
        if found == LAST_RUN:
            return "last_run"
        raise ValueError(
            f"{shown(found)} is no reference; expected before, last_run or a file in double quotes"
            f"{near_names(found, (BEFORE, LAST_RUN))}"
        )

    def _path(self) -> Path:
        names = [self._name("a measure or a column")]
        while self._takes("."):
            names.append(self._name("a name after the dot"))
        if len(names) > 2:
            raise ValueError(f"{'.'.join(names)!r} has {len(names)} names; expected a column and its measure")
        return Path(tuple(names))

    def _name(self, expected: str) -> str:
        if self._next.kind == "text":
            return self._string()
        if self._next.kind != "name":
            raise self._error(expected)
        return self._take().text

    def _string(self) -> str:
        text = self._take().text
        try:
            found = json.loads(text)
            found.encode()
        except (json.JSONDecodeError, UnicodeEncodeError):
            raise ValueError(f"{shown(text)} is no text as JSON writes it") from None
        return found

    def _number(self, expected: str) -> float:
        if self._next.kind != "number":
            raise self._error(f"{expected}, a number")
        number = float(self._take().text)
        if not math.isfinite(number):
            raise ValueError("the number is beyond what a float can hold")
        return number

    def _op(self, where: str) -> Op:
        if self._next.kind != "op":
            raise self._error(f"one of <=, >=, <, >, = {where}")
        op = self._take().text
        return "=" if op == "==" else op  # pyright: ignore[reportReturnType]

    def _takes(self, sign: str) -> bool:
        if self._next != ("sign", sign):
            return False
        self._take()
        return True

    def _expect(self, sign: str) -> None:
        if not self._takes(sign):
            raise self._error(repr(sign))

    def _take(self) -> _Token:
        token = self._next
        self._next = self._read()
        return token

    def _read(self) -> _Token:
        rest = self._text[self._place :].lstrip()
        self._start = len(self._text) - len(rest)
        found = _TOKEN.match(self._text, self._start)
        if found is None or found.lastgroup is None:
            return _Token("other", rest[:20])
        self._place = found.end()
        return _Token(found.lastgroup, found[found.lastgroup])

    def _error(self, expected: str) -> ValueError:
        found = "the end" if self._next.kind == "end" else shown(self._next.text)
        return ValueError(
            f"expected {expected}, found {found} at character {self._start + 1} of {shown(self._text)}"
        )


def _name_text(name: str) -> str:
    return name if _WORD.fullmatch(name) else _text(name)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _number_text(number: float) -> str:
    return str(int(number)) if number == int(number) and abs(number) < 1e15 else repr(number)
