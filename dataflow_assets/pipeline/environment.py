"""Puts environment variables into the texts of a pipeline, so that their values are never told.

`${NAME}` is the value of the variable, `${NAME:-default}` the default where it is unset or empty,
`$${` the two characters `${`.
"""

import re
from collections.abc import Mapping

from pydantic import ValidationError

from dataflow_assets.pipeline.problems import Path, plain_path
from dataflow_assets.pipeline.text import typed

_REFERENCE = re.compile(r"\$\$\{|\$\{(?:([A-Za-z_][A-Za-z0-9_]*)(?::-((?:(?!\$\{)[^}])*))?\})?")
_TYPED_ERRORS = {"int_type", "float_type", "bool_type"}
_WHOLE_WORD_CHARS = 4


class EnvironmentText(str):
    """A text with values of the environment in it; its repr is the text before they came in."""

    __slots__ = ("template",)
    template: str

    def __new__(cls, text: str, template: str) -> "EnvironmentText":
        """The text, and what stood in the file."""
        made = super().__new__(cls, text)
        made.template = template
        return made

    def __repr__(self) -> str:
        return repr(self.template)

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        return type(self), (str(self), self.template)


class BadReference(Exception):
    """A `${` that is no reference to a variable, or a variable that is not set."""


class Environment:
    """The variables that a pipeline may use, and which of them it did: `used` is value to `${NAME}`."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables
        self.used: dict[str, str] = {}

    def filled(self, text: str) -> str:
        """The text with its variables put in. Raises BadReference."""
        if "${" not in text:
            return text
        whole = _REFERENCE.sub(self._value, text)
        return EnvironmentText(whole, text)

    def _value(self, reference: "re.Match[str]") -> str:
        if reference.group() == "$${":
            return "${"
        name, default = reference.groups()
        if name is None:
            raise BadReference(
                "`${` begins no variable here; expected ${NAME} or ${NAME:-default}, and $${ for a plain ${"
            )
        value = self._variables.get(name)
        if default is not None and not value:
            return default
        if value is None:
            raise BadReference(
                f"the environment variable {name} is not set; set it, or write ${{{name}:-default}}"
            )
        if not value.isascii():
            self._require_text(name, value)
        if value:
            self.used[value] = f"${{{name}}}"
        return value

    def _require_text(self, name: str, value: str) -> None:
        try:
            value.encode()
        except UnicodeEncodeError:
            raise BadReference(f"the environment variable {name} is not UTF-8 text") from None


def redacted(message: str, used: Mapping[str, str]) -> str:
    """The message with each value of the environment as the `${NAME}` that it came from."""
    names = {form: name for value, name in used.items() for form in (value, repr(value)[1:-1])}
    if not names:
        return message
    forms = [
        re.escape(form) if len(form) >= _WHOLE_WORD_CHARS else rf"(?<!\w){re.escape(form)}(?!\w)"
        for form in sorted(names, key=len, reverse=True)
    ]
    return re.sub("|".join(forms), lambda found: names[found.group()], message)


def typed_by_field(data: Mapping[str, object], error: ValidationError) -> dict[str, object]:
    """The data, with texts of the environment as numbers or booleans where `error` says they must be."""
    changed: object = dict(data)
    for found in error.errors(include_url=False):
        if found["type"] in _TYPED_ERRORS and isinstance(found["input"], EnvironmentText):
            changed = _replaced(changed, plain_path(found["loc"]), found["input"])
    return changed if isinstance(changed, dict) else dict(data)


def _replaced(data: object, path: Path, text: EnvironmentText) -> object:
    """A copy of the data with the typed value of the text at this path; the data where it is not there."""
    if not path:
        return _typed(text) if data is text else data
    if isinstance(data, Mapping) and path[0] in data:
        return {**data, path[0]: _replaced(data[path[0]], path[1:], text)}
    if isinstance(data, list) and isinstance(path[0], int):
        return [_replaced(v, path[1:], text) if place == path[0] else v for place, v in enumerate(data)]
    return data


def _typed(text: EnvironmentText) -> object:
    try:
        value = typed(str(text))
    except ValueError:
        return text
    return text if isinstance(value, str) else value
