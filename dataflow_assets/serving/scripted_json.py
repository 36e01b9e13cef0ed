"""Fills a JSON schema with sentences, for answers that fit it without a model."""

import math
from collections.abc import Mapping, Sequence
from typing import cast

import xxhash

_ITEMS = 2
_MAX_DEPTH = 6
_NUMBERS = 10
_MIDDLE_OF = 5
_ABOUT_CHARS = 40
_ABOUT = ("question", "query", "instruction")
_PAIRED = (*_ABOUT, "answer", "evidence", "quote", "source")
_FORMATS = {
    "date": "2024-01-01",
    "date-time": "2024-01-01T00:00:00Z",
    "time": "00:00:00Z",
    "email": "name@example.org",
    "uri": "https://example.org/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}

Schema = Mapping[str, object]


def value_for(schema: Schema, sentences: Sequence[str]) -> object:
    """A value that fits the schema. Equal arguments give equal values.

    Texts are sentences; a question is made of one, and its answer and evidence are that one. Numbers
    are the maximum, for every fifth text the middle; of an enumeration it is the first; an array has
    `minItems`, or two. `pattern`, `not` and `if` are not looked at.
    """
    return _Filler(schema, sentences).value(schema)


class _Filler:
    def __init__(self, root: Schema, sentences: Sequence[str]) -> None:
        self._root = root
        self._sentences = sentences

    def value(self, schema: object, name: str = "", at: int = 0, place: int = 0, depth: int = 0) -> object:
        """The value of one place: `at` is the sentence to take, `place` the position in an array."""
        found = self._plain(schema)
        if "const" in found:
            return found["const"]
        if isinstance(options := found.get("enum"), list) and options:
            return options[place % len(options)]
        kind = _kind(found)
        if kind == "object":
            return self._object(found, at, depth)
        if kind == "array":
            return self._array(found, name, at, depth)
        if kind in ("integer", "number"):
            return self._number(found, name, at, place, whole=kind == "integer")
        return {"boolean": True, "null": None}[kind] if kind != "string" else self._text(found, name, at)

    def _plain(self, schema: object) -> Schema:
        """The schema itself, with references, alternatives and parts put in."""
        found = cast(Schema, schema) if isinstance(schema, Mapping) else {}
        for _ in range(_MAX_DEPTH):
            if isinstance(reference := found.get("$ref"), str):
                found = {**self._referred(reference), **_without(found, "$ref")}
            elif options := found.get("anyOf") or found.get("oneOf"):
                found = {**_without(found, "anyOf", "oneOf"), **_first_of(cast(Sequence[Schema], options))}
            elif parts := found.get("allOf"):
                found = self._merged([_without(found, "allOf"), *cast(Sequence[Schema], parts)])
            else:
                break
        return found

    def _merged(self, parts: Sequence[Schema]) -> Schema:
        merged: dict[str, object] = {}
        for part in map(self._plain, parts):
            properties = {**_mapping(merged, "properties"), **_mapping(part, "properties")}
            required = [*_list(merged, "required"), *_list(part, "required")]
            merged |= part
            merged |= {"properties": properties, "required": required} if properties else {}
        return merged

    def _referred(self, reference: str) -> Schema:
        """What `#/$defs/Name` stands for; any value where it stands for nothing."""
        found: object = self._root
        for name in reference.removeprefix("#").strip("/").split("/"):
            plain = name.replace("~1", "/").replace("~0", "~")
            found = cast(Schema, found).get(plain) if plain and isinstance(found, Mapping) else found
        return cast(Schema, found) if isinstance(found, Mapping) else {}

    def _object(self, schema: Schema, at: int, depth: int) -> dict[str, object]:
        """Question, answer and evidence are of one sentence; other texts are of one after the other."""
        properties, required = _mapping(schema, "properties"), _list(schema, "required")
        names = [name for name in properties if depth < _MAX_DEPTH or name in required]
        values: dict[str, object] = {}
        others = 0
        for name in names:
            paired = _is(name, _PAIRED)
            values[name] = self.value(properties[name], name, at if paired else at + others, 0, depth + 1)
            others += not paired
        return values

    def _array(self, schema: Schema, name: str, at: int, depth: int) -> list[object]:
        least, most = schema.get("minItems"), schema.get("maxItems")
        count = least if isinstance(least, int) and least else (0 if depth >= _MAX_DEPTH else _ITEMS)
        count = min(count, most) if isinstance(most, int) else count
        first = _list(schema, "prefixItems")
        items = [*first[:count], *[schema.get("items", {})] * (count - len(first))]
        return [self.value(item, name, at + place, place, depth + 1) for place, item in enumerate(items)]

    def _number(self, schema: Schema, name: str, at: int, place: int, whole: bool) -> int | float:
        step = _float(schema, "multipleOf") or (1.0 if whole else 0.5)
        low, high = _bounds(schema, step)
        digest = xxhash.xxh3_64_intdigest(f"{name} {self._sentence(at)}".encode())
        if low is None and high is None:
            low, high = 0.0, float(digest % _NUMBERS)
        low = low if low is not None else cast(float, high) - _NUMBERS
        high = high if high is not None else low + digest % _NUMBERS
        wanted = (low + high) / 2 if digest % _MIDDLE_OF == 0 else high - place * step
        value = max(math.floor(wanted / step), math.ceil(low / step)) * step
        return int(value) if whole else value

    def _text(self, schema: Schema, name: str, at: int) -> str:
        if isinstance(form := schema.get("format"), str) and form in _FORMATS:
            return _FORMATS[form]
        text = _question(self._sentence(at)) if _is(name, _ABOUT) else self._sentence(at)
        least, most = schema.get("minLength"), schema.get("maxLength")
        while isinstance(least, int) and len(text) < least:
            at += 1
            text = f"{text} {self._sentence(at)}"
        return text[:most] if isinstance(most, int) else text

    def _sentence(self, at: int) -> str:
        """The sentence at this place; after the last one they begin anew, with a number."""
        again, place = divmod(at, len(self._sentences))
        return f"{self._sentences[place]} ({again + 1})" if again else self._sentences[place]


def _kind(schema: Schema) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), "null")
    if isinstance(kind, str):
        return kind
    return "object" if "properties" in schema else "array" if "items" in schema else "string"


def _first_of(options: Sequence[Schema]) -> Schema:
    """The first alternative that is not null."""
    return next((option for option in options if option.get("type") != "null"), options[0])


def _bounds(schema: Schema, step: float) -> tuple[float | None, float | None]:
    low, high = _float(schema, "minimum"), _float(schema, "maximum")
    above, below = _float(schema, "exclusiveMinimum"), _float(schema, "exclusiveMaximum")
    if above is not None:
        inside = (math.floor(above / step) + 1) * step
        low = inside if low is None else max(low, inside)
    if below is not None:
        inside = (math.ceil(below / step) - 1) * step
        high = inside if high is None else min(high, inside)
    return low, high


def _question(sentence: str) -> str:
    """A question that the sentence answers."""
    about = sentence[:_ABOUT_CHARS].rstrip(" .。！？；!?;…")
    if any("\u3400" <= character <= "\u9fff" for character in about):
        return f"关于“{about}”，文中说了什么？"
    words = about.rsplit(" ", 1)[0] if len(sentence) > _ABOUT_CHARS else about
    return f'What does the text say about "{words}"?'


def _is(name: str, words: Sequence[str]) -> bool:
    return any(word in name.lower() for word in words)


def _without(schema: Schema, *names: str) -> Schema:
    return {name: value for name, value in schema.items() if name not in names}


def _mapping(schema: Schema, name: str) -> Schema:
    found = schema.get(name)
    return cast(Schema, found) if isinstance(found, Mapping) else {}


def _list(schema: Schema, name: str) -> list[object]:
    found = schema.get(name)
    return found if isinstance(found, list) else []


def _float(schema: Schema, name: str) -> float | None:
    found = schema.get(name)
    return float(found) if isinstance(found, int | float) and not isinstance(found, bool) else None
