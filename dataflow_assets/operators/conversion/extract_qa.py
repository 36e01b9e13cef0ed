"""Finds questions and answers in texts and JSON: a row for each pair."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from operator import itemgetter

import pyarrow as pa
import regex
from pydantic import Field, model_validator

from dataflow_assets.batch import Schema, column_of, column_type, json_text, schema_of, values_of
from dataflow_assets.errors import MissingValue, RowError, WrongType
from dataflow_assets.operators.conversion.json_path import found_at, parsed_path
from dataflow_assets.operators.operator import RESERVED_COLUMNS, ColumnParams, Outcome, TextOperator
from dataflow_assets.operators.patterns import timeout_error
from dataflow_assets.operators.registry import register
from dataflow_assets.operators.splitting.children import child_rows, rejected_rows
from dataflow_assets.serving.structured import parsed

_FIELDS = {"question": "question", "answer": "answer"}


class _ExtractQaParams(ColumnParams):
    pattern: str | None = Field(
        None, description="A regular expression; each named group is a column, each match a row."
    )
    path: str | None = Field(
        None, description="Instead: where the objects are in JSON, e.g. `$[*]` or `$.data[*].pairs[*]`."
    )
    fields: dict[str, str] = Field(
        _FIELDS, min_length=1, description="With `path`: column -> path within an object, e.g. `qa.question`."
    )
    repair: bool = Field(False, description="With `path`: mend JSON with mistakes (json-repair).")
    timeout_s: float = Field(1.0, gt=0, description="The most seconds that `pattern` may take on one row.")

    @model_validator(mode="after")
    def _finds_columns(self) -> "_ExtractQaParams":
        if (self.pattern is None) == (self.path is None):
            raise ValueError("give pattern or path")
        if self.pattern is not None and "fields" in self.model_fields_set:
            raise ValueError("fields belongs to path; the columns of a pattern are its named groups")
        for path in [self.path or "$", *self.fields.values()]:
            parsed_path(path)
        if not self.columns:
            raise ValueError("the pattern has no named group; expected e.g. `Q: (?P<question>.+)`")
        if taken := sorted(set(self.columns) & set(RESERVED_COLUMNS)):
            raise ValueError(f"the column {taken[0]!r} has a name that this package uses itself")
        return self

    @property
    def columns(self) -> list[str]:
        """The columns that a pair has."""
        return list(self.fields) if self.pattern is None else list(self.compiled.groupindex)

    @property
    def compiled(self) -> "regex.Pattern[str]":
        """The pattern. Raises ValueError where it is none."""
        try:
            return regex.compile(self.pattern or "")
        except regex.error as error:
            raise ValueError(f"the pattern {self.pattern!r} is no regular expression: {error}") from error


@register
class ExtractQa(TextOperator):
    r"""Finds the pairs in a text (by a pattern with named groups) or in JSON (by a path).

    Grain: one row becomes one row a pair, in order. Reads `column` (string, or with `path` also JSON);
    writes a string column for each named group or field, the other columns stay.

    * `pattern`: each match is a pair; syntax of the `regex` module, white space around a group goes.
    * `path`: the JSON is found in the text as in an answer of a model (whole, in a code fence, or the
      longest piece); each object at the path is a pair. Numbers and booleans become their JSON text.

    A text without a pair is rejected as `no_match`. A row without a text fails, unless `on_null` says
    otherwise: `keep` gives it one child whose new columns are null. A row fails where one of its pairs
    lacks a value or has a blank one (MissingValue) or a list or object in it (WrongType), where there is
    no JSON (`json_parse`), or where the pattern takes longer than `timeout_s` (PatternTimeout).

    Example:
        - name: pairs
          type: extract_qa
          params: {column: text, pattern: "(?m)^Q: (?P<question>.+)\nA: (?P<answer>.+)$"}
    """

    name = "extract_qa"
    version = "2"
    splits = True
    Params = _ExtractQaParams
    params: _ExtractQaParams

    def writes(self) -> Schema:
        """A string column for each part of a pair."""
        return dict.fromkeys(self.params.columns, "string")

    def apply(self, table: pa.Table) -> Outcome:
        """The pairs of each row."""
        texts = self.texts(self._as_text(table))
        places = range(table.num_rows) if texts.positions is None else texts.positions.to_pylist()
        errors, pairs, dropped = texts.errors, list[tuple[int, Mapping[str, str | None]]](), dict[int, str]()
        for place, text in zip(places, texts.values.to_pylist(), strict=True):
            try:
                found = list(self._pairs(text))
            except RowError as error:
                errors.add(place, error)
                continue
            pairs += [(place, pair) for pair in found]
            if not found:
                dropped[place] = "no_match"
        if self.params.on_null == "keep":
            nothing = dict.fromkeys(self.params.columns)
            pairs = sorted(pairs + [(place, nothing) for place in texts.nulls], key=itemgetter(0))
        else:
            dropped |= dict.fromkeys(texts.nulls, "missing_text")
        new = {name: [pair[name] for _, pair in pairs] for name in self.params.columns}
        kept = child_rows(table, [place for place, _ in pairs], new, self.output_schema(schema_of(table)))
        return Outcome(kept, rejected_rows(table, dropped), errors.in_order().failed_rows(table))

    def _as_text(self, table: pa.Table) -> pa.Table:
        """The table with lists and objects of the column as JSON text, where a path looks into them."""
        name = self.params.column
        if self.params.path is None or column_type(table.schema.field(name)) != "json":
            return table
        values = values_of(table, name)
        texts = [json_text(value) if isinstance(value, dict | list) else value for value in values]
        index, field = table.schema.get_field_index(name), table.schema.field(name)
        return table.set_column(index, field, column_of(texts, "json"))

    def _pairs(self, text: str) -> Iterator[dict[str, str]]:
        if self.params.pattern is not None:
            yield from self._matches(text)
            return
        for found in found_at(parsed(text, self.params.repair)[0], self._path):
            yield {name: _field(name, found, steps) for name, steps in self._fields.items()}

    def _matches(self, text: str) -> Iterator[dict[str, str]]:
        try:
            for match in self._compiled.finditer(text, timeout=self.params.timeout_s):
                yield {name: _filled(name, value) for name, value in match.groupdict().items()}
        except TimeoutError:
            raise timeout_error(self._compiled.pattern, self.params.timeout_s) from None

    @cached_property
    def _compiled(self) -> "regex.Pattern[str]":
        return self.params.compiled

    @cached_property
    def _path(self) -> list[str | int | None]:
        return parsed_path(self.params.path or "$")

    @cached_property
    def _fields(self) -> dict[str, list[str | int | None]]:
        return {name: parsed_path(path) for name, path in self.params.fields.items()}


def _field(name: str, pair: object, steps: list[str | int | None]) -> str:
    found = found_at(pair, steps)
    if len(found) > 1 or (found and isinstance(found[0], dict | list)):
        shown = str(found[0] if len(found) == 1 else found)[:80]
        raise WrongType(f"wrong type: {name} of a pair is {shown}, expected one text")
    value = found[0] if found else None
    return _filled(name, value if isinstance(value, str) or value is None else json_text(value))


def _filled(name: str, value: str | None) -> str:
    if value is None or not value.strip():
        raise MissingValue(f"missing {name}: a pair of the row has no {name}, or a blank one")
    return value.strip()
