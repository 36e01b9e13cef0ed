"""JSON in the answers of models: found in the text, repaired if wanted, checked against a schema."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any, Literal, NoReturn

import orjson

from dataflow_assets.serving.calls import CallFailed

Language = Literal["en", "zh"]
_MAX_STARTS = 1000
_MAX_SHOWN_CHARS = 80
_THINKING = re.compile(r"<think>.*?</think>", re.DOTALL)
_FENCE = re.compile(r"```[\w+-]*\s*(?=[{\[])")
_START = re.compile(r"[{\[]")
_MEANT_AS_JSON = re.compile(r"""\{\s*["']|\[\s*[{\["]""")
_BLANK = " \t\r\n\ufeff\u00a0"
_WORDS = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}
_TYPES = frozenset(["string", "integer", "number", "boolean", "object", "array", "null"])
_SCHEMA_KEYS = frozenset(["type", "enum", "const", "$ref", "anyOf", "oneOf", "allOf"])


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text} is too large")
    return number


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


_decoder = json.JSONDecoder(strict=False, parse_float=_finite, parse_constant=_no_constant)


def parsed(text: str, repair: bool = False) -> tuple[dict[str, object] | list[object], bool]:
    """The JSON object or array in an answer, and whether it had to be repaired.

    Looked for in this order: the whole text, the first code fence, the longest piece of the text.
    Thinking (`<think>…</think>`) is no part of the answer; line breaks within strings are let
    through. `repair` also takes JSON with mistakes, as the library json-repair mends it. Raises
    CallFailed `json_parse` where there is no object or array, or a text in it is no Unicode.
    """
    answer = _answer_part(text)
    value = _found(answer)
    repaired = value is None and repair
    if repaired:
        value = _mended(answer)
    if value is None:
        raise _no_json(f"found {_shown(answer)}, expected a JSON object or array", text)
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise _no_json("a text in the JSON has half a surrogate pair, which is no character", text) from None
    return value, repaired


def _no_json(problem: str, text: str) -> CallFailed:
    hint = "ask for JSON in the prompt, use a serving with `structured: json_schema`, or set `repair`"
    return CallFailed("json_parse", f"no JSON in the answer: {problem}; {hint}", raw=text)


def _answer_part(text: str) -> str:
    """The text without thinking, unless the whole of it is JSON that speaks of `<think>`."""
    stripped = text.strip(_BLANK)
    if "think>" not in stripped or _whole(stripped) is not None:
        return stripped
    rest = _THINKING.sub("", stripped)
    if "<think>" in rest:
        raise _no_json("the thinking never ends (no `</think>`); raise `max_tokens`", text)
    return rest.rpartition("</think>")[2].strip(_BLANK)


def _found(text: str) -> dict[str, object] | list[object] | None:
    if (value := _whole(text)) is not None:
        return value
    for fence in _FENCE.finditer(text):
        if (piece := _piece(text, fence.end())) is not None:
            return piece[0]
    pieces = _pieces(text)
    return max(pieces, key=_rank)[0] if pieces else None


def _whole(text: str) -> dict[str, object] | list[object] | None:
    try:
        value = _decoder.decode(text) if text[:1] in ("{", "[") else None
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


def _rank(piece: tuple[dict | list, int]) -> tuple[bool, int]:
    """Prose is full of `[1]`: objects, and arrays with some in them, go before other arrays."""
    value, length = piece
    return isinstance(value, dict) or any(isinstance(item, dict) for item in value), length


def _pieces(text: str) -> list[tuple[dict | list, int]]:
    """The JSON values that stand side by side in the text, and the length of each.

    None at all where one of them is broken: its inner values are not what was asked for.
    """
    found: list[tuple[dict | list, int]] = []
    position = 0
    for _ in range(_MAX_STARTS):
        if (start := _START.search(text, position)) is None:
            break
        if (piece := _piece(text, start.start())) is not None:
            position = piece[1]
            found.append((piece[0], piece[1] - start.start()))
        elif _MEANT_AS_JSON.match(text, start.start()):
            return []
        else:
            position = start.end()
    return found


def _piece(text: str, start: int) -> tuple[dict | list, int] | None:
    """The JSON value that begins here, and where it ends."""
    try:
        return _decoder.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None


def _mended(text: str) -> dict[str, object] | list[object] | None:
    import json_repair

    fence = _FENCE.search(text)
    start = _START.search(text, fence.end() if fence else 0)
    if start is None:
        return None
    try:
        value = json_repair.loads(text[start.start() :], skip_json_loads=True)
        return value if isinstance(value, dict | list) and value and _is_plain(value) else None
    except (ValueError, RecursionError):
        return None


def _is_plain(value: object) -> bool:
    json.dumps(value, allow_nan=False)
    return True


def json_schema(schema: Mapping[str, object]) -> dict[str, object]:
    """The JSON schema of a schema as users write it: JSON schema, or the short form.

    Short form: `{question: string, tags: [string], score: {type: integer, minimum: 1}, note: string?}`
    is an object that has exactly these fields; `?` allows null, `any` everything, a mapping without
    `type`, `enum` and the like is an object within. Raises ValueError that names the mistake.
    """
    if not schema:
        raise ValueError("the schema is empty; expected fields with their types, e.g. {question: string}")
    made = dict(schema) if _is_json_schema(schema) else _object(schema)
    if problem := _mistake(made) or _lost_reference(made):
        raise ValueError(f"the schema is no JSON schema: {problem}")
    return made


def _mistake(schema: Mapping[str, object]) -> str:
    cls = _validator_class()
    error = next(iter(cls(cls.META_SCHEMA).iter_errors(schema)), None)
    return "" if error is None else f"at {_place(error.absolute_path)}: {_shortened(error.message)}"


def _lost_reference(schema: Mapping[str, object]) -> str:
    """What is wrong with the first `$ref` that leads nowhere; nothing is ever fetched."""
    resolver = _registry(schema).resolver()
    for reference in _references(schema):
        try:
            resolver.lookup(reference)
        except Exception as error:  # noqa: BLE001  `referencing` raises many kinds
            return f"`$ref: {reference}` leads nowhere within it ({type(error).__name__})"
    return ""


def _registry(schema: Mapping[str, object]) -> Any:
    from referencing import Registry
    from referencing.jsonschema import DRAFT202012

    return Registry().with_resource("", DRAFT202012.create_resource(schema))


def _references(schema: object) -> Iterator[str]:
    if isinstance(schema, Mapping):
        if isinstance(reference := schema.get("$ref"), str):
            yield reference
        schema = list(schema.values())
    for inner in schema if isinstance(schema, list) else ():
        yield from _references(inner)


def _is_json_schema(schema: Mapping[str, object]) -> bool:
    inner = schema.get("properties")
    is_object = isinstance(inner, Mapping) and schema.get("type", "object") == "object"
    return is_object or "$schema" in schema or "$ref" in schema or schema.get("type") in ("object", "array")


def _object(fields: Mapping[str, object]) -> dict[str, object]:
    properties = {name: _field(name, kind) for name, kind in fields.items()}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _field(name: str, kind: object) -> dict[str, object]:
    if isinstance(kind, str):
        return _word(name, kind)
    if isinstance(kind, Mapping) and kind:
        return dict(kind) if _speaks_json_schema(kind) else _object(kind)
    if isinstance(kind, Sequence) and len(kind) == 1:
        return {"type": "array", "items": _field(name, kind[0])}
    raise ValueError(f"field {name!r}: found {kind!r}, expected a type, a list of one type, or a mapping")


def _word(name: str, kind: str) -> dict[str, object]:
    word = kind.removesuffix("?")
    word = _WORDS.get(word, word)
    if word in ("any", "json"):
        return {}
    if word not in _TYPES:
        known = ", ".join(sorted(_TYPES | {"any"}))
        raise ValueError(f"field {name!r}: there is no type {kind!r}; there are: {known}, with ? for or null")
    return {"type": [word, "null"] if kind.endswith("?") else word}


def _speaks_json_schema(kind: Mapping[str, object]) -> bool:
    """Whether a field's mapping is JSON schema, and not an object with a field that is called `type`."""
    words = _SCHEMA_KEYS & kind.keys()
    return bool(words - {"type"}) or (bool(words) and _is_type(kind["type"]) and not _is_all_types(kind))


def _is_type(kind: object) -> bool:
    return kind in _TYPES if isinstance(kind, str) else isinstance(kind, list) and set(kind) <= _TYPES


def _is_all_types(kind: Mapping[str, object]) -> bool:
    """`{type: string, name: string}`: every value is the name of a type, so these are fields."""
    words = [value.removesuffix("?") for value in kind.values() if isinstance(value, str)]
    return len(kind) > 1 and len(words) == len(kind) and all(word in _TYPES | _WORDS.keys() for word in words)


@lru_cache(maxsize=1)
def _validator_class() -> Any:
    """JSON schema 2020-12 in which 1.0 is no integer, so that no value changes in its column."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    checker = Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
    )
    return extend(Draft202012Validator, type_checker=checker)


@lru_cache(maxsize=128)
def _validator(schema: bytes) -> Any:
    whole = json_schema(orjson.loads(schema))
    return _validator_class()(whole, registry=_registry(whole))


def validated(value: object, schema: Mapping[str, object], raw: str = "") -> Any:
    """The value as it is, if it fits the schema (JSON schema or the short form); nothing is converted.

    Raises CallFailed `schema_invalid`, with the place, what was found and what was expected.
    """
    from jsonschema.exceptions import best_match

    error = best_match(_validator(orjson.dumps(schema)).iter_errors(value))
    if error is None:
        return value
    message = (
        f"the answer does not fit the schema: at {_place(error.absolute_path)} found "
        f"{_shown(error.instance)}, expected {_expected(error)}"
    )
    raise CallFailed("schema_invalid", message, raw=raw or json.dumps(value, ensure_ascii=False))


def _place(path: Sequence[str | int]) -> str:
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)


def _expected(error: Any) -> str:
    """What the schema asks for at this place, in a few words."""
    if error.validator == "required":
        missing = [name for name in error.validator_value if name not in error.instance]
        return f"the field{'s' if len(missing) > 1 else ''} {', '.join(map(repr, missing))} too"
    if error.validator == "additionalProperties":
        known = ", ".join(error.schema.get("properties", {})) or "none"
        return f"no other fields than: {known}"
    return f"{error.validator} {_shown(error.validator_value)}"


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=repr)
    return repr(_shortened(text)) if isinstance(value, str) else _shortened(text)


def _shortened(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN_CHARS else f"{text[:_MAX_SHOWN_CHARS]}…"


def schema_prompt(schema: Mapping[str, object], language: Language = "en") -> str:
    """What to say in a prompt so that the answer is JSON of this schema, without response_format."""
    return _schema_prompt(orjson.dumps(schema), language)


@lru_cache(maxsize=128)
def _schema_prompt(schema: bytes, language: Language) -> str:
    text = orjson.dumps(json_schema(orjson.loads(schema))).decode()
    return f"{schema_instruction(language)}\n{text}"


@lru_cache(maxsize=2)
def schema_instruction(language: Language) -> str:
    """The shipped sentence before a schema."""
    folder = files("dataflow_assets.serving") / "prompts" / language
    return (folder / "schema.txt").read_text("utf-8").rstrip("\n")
