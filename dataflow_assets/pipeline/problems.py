"""How a mistake in a pipeline is told: what was found, where, and what is known instead."""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeGuard, get_args

from pydantic import BaseModel, Tag, ValidationError

Path = tuple[str | int, ...]
KIND = "kind:"
"""What the tag of each member of a union of models begins with; it is no part of the data."""
_MAX_FOUND_CHARS = 200
_LOGIN = re.compile(r"(?<=://)[^/\s'\"]*@")
_QUERY = re.compile(r"(://[^\s'\"?#]*)[?#][^\s'\"]*")  # it may sign the URL
_MAX_MESSAGE_CHARS = 600
_MAX_NAMES = 20
_TYPE_HINTS = {
    "int_type": "; unquoted numbers are written like 5 or -3, all else is text",
    "float_type": "; unquoted numbers are written like 5, 0.5 or 1e-4, all else is text",
    "bool_type": "; the two booleans are written true and false, all else is text",
    "string_type": "; quote it to make it text",
}


class Problem(NamedTuple):
    """One mistake: a message, the path of the value in the pipeline, and a line if it is known."""

    message: str
    path: Path = ()
    line: int | None = None

    def under(self, *path: str | int) -> "Problem":
        """The same mistake, seen from further up."""
        return self._replace(path=(*path, *self.path))


def printable(text: str) -> str:
    """The text with control characters and all else that is not printable as escapes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def shortened(text: str, chars: int = _MAX_MESSAGE_CHARS) -> str:
    """The text, cut to this length."""
    return text if len(text) <= chars else f"{text[:chars]}…"


def shown(value: object) -> str:
    """A short, printable form of a value that was found; logins and queries of URLs are left out."""
    plain = _QUERY.sub(r"\1?…", without_logins(repr(value)))
    return printable(shortened(plain, _MAX_FOUND_CHARS))


def without_logins(text: str) -> str:
    """The text with its URLs, but not with the names and passwords in them."""
    return _LOGIN.sub("", text)


def listed(names: Iterable[str]) -> str:
    """The names with commas; of many, the first ones and how many there are."""
    known = list(names)
    more = f", … ({len(known)} in all)" if len(known) > _MAX_NAMES else ""
    return (", ".join(known[:_MAX_NAMES]) + more) or "none"


def near_names(name: str, known: Iterable[str]) -> str:
    """`; did you mean …?` with the nearest of the known names; nothing where none is near."""
    near = difflib.get_close_matches(name, list(known), n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""


def type_hint(kind: str, found: object) -> str:
    """What to write where a value of another type than the pydantic error `kind` expects was found."""
    wants_text = kind == "string_type"
    fits = isinstance(found, bool | int | float) if wants_text else isinstance(found, str)
    return _TYPE_HINTS.get(kind, "") if fits else ""


def problems_of(error: ValidationError, model: type[BaseModel]) -> list[Problem]:
    """The mistakes that pydantic found in the data of this model, in our words."""
    found = error.errors(include_url=False)
    return [_problem(each, model) for each in found if each["type"] != "default_factory_not_called"]


def _problem(found: Mapping, model: type[BaseModel]) -> Problem:
    path, kind = plain_path(found["loc"]), found["type"]
    field = ".".join(map(str, path))
    if kind == "extra_forbidden":
        known = _fields_at(model, tuple(found["loc"])[:-1])
        names = f" (there are: {', '.join(known)})" if known else ""
        return Problem(f"there is no field {shown(field)}{names}{near_names(str(path[-1]), known)}", path)
    if kind == "missing":
        return Problem(f"the field {field!r} is needed", path)
    message = str(found["msg"]).removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    hint = type_hint(kind, found["input"])
    value = f" (found {shown(found['input'])})" if "(found " not in message else ""
    return Problem(f"{field}: {message}{value}{hint}" if field else message, path)


def plain_path(loc: Path) -> Path:
    """Where a value stands in the data: the place that pydantic names, without the kinds it chose."""
    return tuple(part for part in loc if not str(part).startswith(KIND))


def _fields_at(model: type[BaseModel], loc: Sequence[str | int]) -> list[str]:
    """The names of the fields of the model at this place within `model`; of a kind, its own ones first."""
    found: object = model
    for name in loc:
        if str(name).startswith(KIND):
            members = (member for member in get_args(found) if Tag(str(name)) in get_args(member))
            found = next((get_args(member)[0] for member in members), None)
        else:
            field = found.model_fields.get(str(name)) if _is_model(found) else None
            found = field.annotation if field else None
    if not _is_model(found):
        return []
    shared: set[str] = set()
    if any(str(name).startswith(KIND) for name in loc):
        shared = {name for parent in found.__bases__ if _is_model(parent) for name in parent.model_fields}
    return sorted(found.model_fields, key=lambda name: name in shared)


def _is_model(found: object) -> TypeGuard[type[BaseModel]]:
    return isinstance(found, type) and issubclass(found, BaseModel)
