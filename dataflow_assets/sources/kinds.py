"""The kinds of `source` that a pipeline can have, and the short text that each may be written as."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import BeforeValidator, Discriminator, Tag

from dataflow_assets.pipeline.problems import KIND
from dataflow_assets.sources.clickhouse.spec import ClickHouseSource
from dataflow_assets.sources.generated.spec import EmptySource, GeneratorSource
from dataflow_assets.sources.hub.spec import HubSource, ModelScopeSource
from dataflow_assets.sources.spec import SourceSpec
from dataflow_assets.sources.sql.spec import CorpusSource, SqlSource

_KEYS = {
    HubSource: "hf",
    ModelScopeSource: "ms",
    GeneratorSource: "generator",
    EmptySource: "empty",
    SqlSource: "sql",
    CorpusSource: "corpus",
    ClickHouseSource: "clickhouse",
}
_FILES = f"{KIND}files"
_SHORT = ("hf", "ms", "generator")


def _kind(given: object) -> str:
    """The tag of the kind: by the field that only it has; files where there is none."""
    if isinstance(given, Mapping):
        return next((f"{KIND}{key}" for key in _KEYS.values() if key in given), _FILES)
    key = _KEYS.get(type(given))  # type: ignore[arg-type]
    return f"{KIND}{key}" if key else _FILES


def from_text(given: object) -> object:
    """The mapping that a short text stands for: `hf:name:config:split`, `empty:100`, …, else a path."""
    if not isinstance(given, str):
        return given
    kind, colon, rest = given.partition(":")
    if colon and kind in _SHORT:
        return {kind: rest}
    if colon and kind == "empty" and rest.isdecimal() and rest.isascii():
        return {kind: int(rest)}
    return {"path": given}


_Kinds = Annotated[
    Annotated[SourceSpec, Tag(_FILES)]
    | Annotated[HubSource, Tag(f"{KIND}hf")]
    | Annotated[ModelScopeSource, Tag(f"{KIND}ms")]
    | Annotated[GeneratorSource, Tag(f"{KIND}generator")]
    | Annotated[EmptySource, Tag(f"{KIND}empty")]
    | Annotated[SqlSource, Tag(f"{KIND}sql")]
    | Annotated[CorpusSource, Tag(f"{KIND}corpus")]
    | Annotated[ClickHouseSource, Tag(f"{KIND}clickhouse")],
    Discriminator(_kind),
]
AnySource = Annotated[_Kinds, BeforeValidator(from_text, json_schema_input_type=_Kinds | str)]
