"""Filters texts by the language that they are in."""

from collections.abc import Mapping
from typing import Literal

import pyarrow as pa
from pydantic import Field, field_validator

from dataflow_assets.batch import Schema, column_of
from dataflow_assets.operators.operator import ColumnParams, Outcome, RowErrors, TextFilter
from dataflow_assets.operators.registry import register
from dataflow_assets.optional_packages import version_of
from dataflow_assets.text.language_identification import NEEDED, check_known, identify

_COLUMNS: Schema = {"language": "string", "language_score": "float64"}
_MIN_SCORE = 0.65
_MIN_SCORES = {"zh": 0.692}


class _LanguageParams(ColumnParams):
    languages: list[str] = Field(
        min_length=1, description="The languages that stay, as codes of ISO 639-1, e.g. `en`, `zh`."
    )
    min_score: float | None = Field(
        None, ge=0, le=1, description="The least probability of the language; by default .65, for zh .692."
    )

    mode: Literal["filter", "annotate"] = Field(
        "filter",
        description="`filter` drops rows. `annotate` drops none and adds `language` and `language_score`.",
    )

    @field_validator("languages")
    @classmethod
    def _are_known(cls, codes: list[str]) -> list[str]:
        if version_of("py3langid"):  # else the run says that it is missing
            check_known(codes)
        return codes


@register
class FilterLanguage(TextFilter):
    """Keeps the rows whose text is in one of some languages, and surely so.

    Grain: one row in, at most one out; order, ids and values unchanged. Reads `column` (string);
    `mode: annotate` drops none and adds `language` (string) and `language_score` (float64). The language is
    the likeliest of those that the model of py3langid knows (offline, a part of the package), its score that
    language's probability. `zh` includes Wu and Cantonese, which the model seldom tells from other Chinese,
    unless `languages` names `wuu` or `yue`. A text without letters is in `und` with score 0. Rejected rows
    have the reason `other_language`, or `unsure_language` where the score is too low. Raises nothing on text.
    Needs the extra `language`. Source of the bounds: FineWeb (Penedo et al. 2024) .65, FineWeb-2's for
    Chinese .692; both were set for another model.

    Example:
        - {name: chinese_or_english, type: filter_language, params: {languages: [zh, en]}}
    """

    name = "filter_language"
    version = "2"
    Params = _LanguageParams
    params: _LanguageParams

    def needed_packages(self) -> Mapping[str, str]:
        """The model of languages."""
        return NEEDED

    def writes(self) -> Schema:
        """Language and score in `mode: annotate`, else nothing."""
        return dict(_COLUMNS) if self.params.mode == "annotate" else {}

    def apply(self, table: pa.Table) -> Outcome:
        """Keeps or annotates the rows, in order."""
        if self.params.mode == "filter":
            return super().apply(table)
        texts = self.texts(table)
        found = [identify(text, apart=self.params.languages) for text in texts.values.to_pylist()]
        columns = {
            name: column_of([row[place] for row in found], kind)
            for place, (name, kind) in enumerate(_COLUMNS.items())
        }
        return self.with_columns(table, texts, columns, RowErrors.none())

    def reason(self, text: str) -> str | None:
        """`other_language`, `unsure_language`, or None."""
        language, score = identify(text, apart=self.params.languages)
        if language not in self.params.languages:
            return "other_language"
        least = self.params.min_score
        if least is None:
            least = _MIN_SCORES.get(language, _MIN_SCORE)
        return "unsure_language" if score < least else None
