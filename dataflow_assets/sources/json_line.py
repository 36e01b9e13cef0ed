"""One JSON text to its exact value, where the fast parser cannot or may not."""

import json
import math


class NotJson(ValueError):
    """The text is no JSON, or no JSON that a row can hold; the message says why."""


def exact_value(text: str) -> object:
    """The value, integers of any size and lone surrogates kept; the last of equal keys wins.

    Raises NotJson, for NaN, Infinity, numbers beyond a double and too deep nesting as well.
    """
    try:
        return json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise NotJson(f"malformed JSON: {error.msg} (character {error.pos + 1})") from error
    except RecursionError as error:
        raise NotJson("the JSON is nested too deep") from error
    except NotJson:
        raise
    except ValueError as error:
        raise NotJson("a number of the JSON has too many digits") from error


def exact_value_of_bytes(line: bytes) -> object:
    """The same for a line of a file. Raises NotJson for invalid UTF-8 as well."""
    return exact_value(utf8_text(line))


def utf8_text(line: bytes) -> str:
    """The text of UTF-8 bytes. Raises NotJson that says where they are invalid."""
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise NotJson(f"invalid UTF-8: at byte {error.start + 1} of the line") from error


def not_a_row(value: object) -> str | None:
    """Why a JSON value is no row, or None: a row is an object whose keys are text."""
    if not isinstance(value, dict):
        return f"not a JSON object: found {_JSON_NAMES.get(type(value), 'something else')}"
    try:
        "".join(value).encode()
    except UnicodeEncodeError:
        return "a key is not valid Unicode (a lone surrogate)"
    return None


def _refuse(constant: str) -> object:
    raise NotJson(f"{constant} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise NotJson(f"a number is beyond a double: {text[:40]}")
    return value


_JSON_NAMES = {
    list: "an array",
    str: "a string",
    int: "a number",
    float: "a number",
    bool: "true or false",
    type(None): "null",
}
