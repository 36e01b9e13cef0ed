"""What the Dagster UI shows of a pipeline's assets before any run: texts, columns, tags, owners, files."""

import contextlib
import json
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import dagster as dg

from dataflow_assets.batch import Schema
from dataflow_assets.errors import DataflowError
from dataflow_assets.io.asset_columns import AssetColumns
from dataflow_assets.io.preview import markdown_cell
from dataflow_assets.io.step_files import folder_metadata
from dataflow_assets.mirror import all_asset_columns
from dataflow_assets.operators.catalog import OTHER, kind_of, split_docstring, summary_of
from dataflow_assets.operators.operator import Operator
from dataflow_assets.pipeline import Step
from dataflow_assets.pipeline_work import SOURCE, PipelineWork

CODE_METADATA = "dagster/code_references"


class AssetPage(NamedTuple):
    """The arguments of an asset's definition that only people read."""

    description: str
    metadata: dict[str, Any]
    tags: dict[str, str]
    kinds: set[str]
    owners: Sequence[str]


class AssetPages:
    """The pages of one pipeline's assets.

    With `complete` off, descriptions are one line and nothing is read from the source: for a run
    whose definitions nobody looks at.
    """

    def __init__(self, work: PipelineWork, complete: bool) -> None:
        self._work, self._complete = work, complete

    def source(self) -> AssetPage:
        """The page of step 0."""
        pipeline = self._work.pipeline
        text = f"What {pipeline.name} reads: {pipeline.description}".rstrip(": ")
        if self._complete:
            text = f"{text}\n\n{self._steps_table()}"
        folder = self._work.layout.step(0)
        metadata = {**folder_metadata(folder), **self._columns(SOURCE), **self._code(None)}
        return AssetPage(text, metadata, {"dataflow/step": "0"}, {pipeline.format}, pipeline.owners)

    def step(self, step: Step) -> AssetPage:
        """The page of a step."""
        pipeline, number = self._work.pipeline, self._work.pipeline.step_number(step.name)
        operator = pipeline.operator(step.name)
        text = f"Step {number}, `{step.type}`: {summary_of(type(operator))}"
        params = pipeline.redacted_values(operator.fingerprint_of_params())
        if self._complete:
            text = f"{text}\n\n{_operator_text(operator, params)}"
        metadata = {
            **folder_metadata(self._work.layout.step(number)),
            "params": params,
            **self._columns(step.name),
            **self._code(step),
        }
        kind = kind_of(type(operator))
        kinds = {pipeline.format} if kind == OTHER else {pipeline.format, kind}
        return AssetPage(text, metadata, self._tags(step), kinds, pipeline.owners)

    def state(self, step: Step) -> AssetPage:
        """The page of what a dataset-scope step decided."""
        pipeline, number = self._work.pipeline, self._work.pipeline.step_number(step.name)
        text = f"What `{step.type}` decided over all batches, for step {number}, {step.name!r}."
        metadata = {**folder_metadata(self._work.layout.verdicts(number)), **self._code(step)}
        return AssetPage(text, metadata, self._tags(step), {"parquet"}, pipeline.owners)

    def _tags(self, step: Step) -> dict[str, str]:
        operator = self._work.pipeline.operator(step.name)
        return {
            "dataflow/operator": _tag_value(operator.name),
            "dataflow/step": str(self._work.pipeline.step_number(step.name)),
            "dataflow/scope": operator.scope,
        }

    def _steps_table(self) -> str:
        """The whole pipeline at a glance."""
        pipeline = self._work.pipeline
        lines = ["| step | name | operator | what it does |", "|---|---|---|---|"]
        for number, step in enumerate(pipeline.ordered_steps, start=1):
            summary = _prose_cell(summary_of(type(pipeline.operator(step.name))))
            lines.append(f"| {number} | `{step.name}` | `{step.type}` | {summary} |")
        return "\n".join(lines)

    def _columns(self, name: str) -> Mapping[str, dg.MetadataValue]:
        if name not in self._known_columns:
            return {}
        columns, schema = self._known_columns[name]
        return columns.metadata(schema)

    @cached_property
    def _known_columns(self) -> Mapping[str, tuple[AssetColumns, Schema]]:
        """Columns as far as they are known without reading all: by the last run, else by the first rows."""
        if not self._complete:
            return {}
        with contextlib.suppress(DataflowError, OSError):
            manifest = self._work.manifest()
            if manifest is None and self._work.pipeline.source.is_far:
                return {}  # a code location loads without a network
            schema = manifest.schema if manifest else self._work.peeked_schema()
            return all_asset_columns(self._work, schema)
        return {}

    def _code(self, step: Step | None) -> Mapping[str, dg.MetadataValue]:
        """The place in the pipeline's file, which the UI offers to open in an editor."""
        file = self._work.pipeline.file
        if file is None or not self._complete:
            return {}
        line = 1 if step is None else self._work.pipeline.line(step) or 1
        reference = dg.LocalFileCodeReference(
            file_path=str(file.resolve()), line_number=line, label=file.name
        )
        return {CODE_METADATA: dg.CodeReferencesMetadataValue(code_references=[reference])}


def _operator_text(operator: Operator, params: Mapping[str, object]) -> str:
    """What the operator says of itself, and its parameters as they are set here."""
    _, text, _ = split_docstring(type(operator))
    return "\n\n".join(filter(None, [text, _parameters_table(operator, params)]))


def _parameters_table(operator: Operator, params: Mapping[str, object]) -> str:
    if not params:
        return ""
    lines = ["| parameter | value | meaning |", "|---|---|---|"]
    fields = type(operator.params).model_fields
    for name, value in params.items():
        meaning = fields[name].description if name in fields else None
        shown = markdown_cell(json.dumps(value, ensure_ascii=False, default=str))
        lines.append(f"| `{name}` | {shown} | {_prose_cell(meaning or '')} |")
    return "\n".join(lines)


def _prose_cell(text: str) -> str:
    """A text of the package's own as one cell; its Markdown stays."""
    return " ".join(text.replace("|", "\\|").split())


def _tag_value(name: str) -> str:
    """The name in the characters that Dagster lets tags have."""
    return re.sub("[^A-Za-z0-9_.-]", "_", name.replace(":", "."))[:63]
