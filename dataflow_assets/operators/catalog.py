"""What is said of an operator: its kind, its description, its parameters, what it reads and writes."""

import inspect
import json
import textwrap
import types
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from dataflow_assets.batch import Schema
from dataflow_assets.errors import ConfigError
from dataflow_assets.operators.operator import Operator
from dataflow_assets.operators.registry import build_operator, operators

PACKAGE = "dataflow_assets.operators."
OTHER = "other"
_EXAMPLE = "Example:\n"
_ORDER = (
    "filters",
    "refiners",
    "deduplication",
    "splitting",
    "conversion",
    "tables",
    "models",
    "llm",
    "opendcai",
)
_BOUNDS = {
    "ge": "{} or more",
    "gt": "more than {}",
    "le": "at most {}",
    "lt": "less than {}",
    "min_length": "length {} or more",
    "max_length": "length at most {}",
}


@dataclass(frozen=True)
class Parameter:
    """One parameter, in words: `default` is JSON or `required`, `range` may be empty."""

    name: str
    type: str
    default: str
    range: str
    meaning: str


@dataclass(frozen=True)
class Described:
    """An operator in words. `reads` and `writes` are those of the example; None where it cannot be built."""

    name: str
    kind: str
    version: str
    scope: str
    summary: str
    description: str
    example: str
    parameters: list[Parameter]
    reads: list[str] | None
    writes: Schema | None

    def as_json(self, operator: type[Operator]) -> dict[str, object]:
        """The same as plain JSON values, with a JSON schema of the parameters."""
        return {**asdict(self), "params": operator.Params.model_json_schema()}

    @property
    def columns(self) -> str:
        """What the example reads and writes, as a sentence; empty where it is not known."""
        if self.reads is None or self.writes is None:
            return ""
        reads = ", ".join(f"`{name}`" for name in self.reads) or "no column"
        writes = ", ".join(f"`{name}` ({kind})" for name, kind in self.writes.items()) or "none"
        return f"As in the example, it reads {reads} and writes {writes}."


def kind_of(operator: type[Operator]) -> str:
    """The folder of the operator in this package; `other` for those of other packages."""
    if not operator.__module__.startswith(PACKAGE):
        return OTHER
    return operator.__module__.removeprefix(PACKAGE).partition(".")[0]


def by_kind(found: Mapping[str, type[Operator]] | None = None) -> dict[str, list[type[Operator]]]:
    """The operators, by default all, in the order of their kinds, each kind sorted by name."""
    kinds: dict[str, list[type[Operator]]] = {}
    for _, operator in sorted((operators() if found is None else found).items()):
        kinds.setdefault(kind_of(operator), []).append(operator)
    places = {kind: place for place, kind in enumerate(_ORDER)} | {OTHER: len(_ORDER) + 1}
    return dict(sorted(kinds.items(), key=lambda pair: (places.get(pair[0], len(_ORDER)), pair[0])))


def summary_of(operator: type[Operator]) -> str:
    """The first line of the operator's docstring."""
    return inspect.cleandoc(operator.__doc__ or "").partition("\n")[0]


def split_docstring(operator: type[Operator]) -> tuple[str, str, str]:
    """The first line of the operator's docstring, the text behind it, and the example."""
    text, _, example = inspect.cleandoc(operator.__doc__ or "").partition(_EXAMPLE)
    summary, _, rest = text.partition("\n")
    return summary, rest.strip(), textwrap.dedent(example).strip()


def described(operator: type[Operator]) -> Described:
    """The operator in words, from its docstring and its parameters."""
    summary, text, example = split_docstring(operator)
    built = _built(operator, example)
    return Described(
        operator.name,
        kind_of(operator),
        operator.version,
        operator.scope,
        summary,
        text,
        example,
        [_parameter(name, field) for name, field in operator.Params.model_fields.items()],
        built.reads() if built else None,
        built.writes() if built else None,
    )


def example_params(example: str) -> list[dict[str, object]]:
    """The parameters of each step of an example; none where it is not written as steps."""
    try:
        steps = yaml.safe_load(example)
        return [step.get("params", {}) for step in steps]
    except (yaml.YAMLError, AttributeError, TypeError):
        return []


def _built(operator: type[Operator], example: str) -> Operator | None:
    """The operator of the example; None where it names code that is not there, or lacks a package."""
    for params in example_params(example):
        try:
            return build_operator(operator.name, params)
        except ConfigError:
            return None
    return None


def _parameter(name: str, field: FieldInfo) -> Parameter:
    default = "required" if field.is_required() else _shown(field.get_default(call_default_factory=True))
    kind, meaning = _type_name(field.annotation), field.description or ""
    return Parameter(name, kind, default, _range(field.metadata), meaning)


def _shown(value: object) -> str:
    if isinstance(value, BaseModel):
        value = value.model_dump(exclude_defaults=True)
    return json.dumps(value, ensure_ascii=False, default=str)


def _range(metadata: Iterable[object]) -> str:
    words = []
    for bound in metadata:
        for attribute, template in _BOUNDS.items():
            if (limit := getattr(bound, attribute, None)) is not None:
                words.append(template.format(f"{limit:,}"))
    return ", ".join(words)


def _type_name(annotation: Any) -> str:
    """The type as one writes it in YAML: `a | b` for words, `text`, `list of int`, `map of text to float`."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return " | ".join(map(str, inner))
    if origin in (Union, types.UnionType):
        return " | ".join(_type_name(part) for part in inner)
    if origin is Annotated:
        return _type_name(inner[0])
    if origin is list:
        return f"list of {_type_name(inner[0])}"
    if origin is dict:
        return f"map of {_type_name(inner[0])} to {_type_name(inner[1])}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return f"{{{', '.join(annotation.model_fields)}}}"
    names = {type(None): "null", str: "text", object: "any value"}
    return names.get(annotation, getattr(annotation, "__name__", str(annotation)))
