"""Filters rows by a regular expression of the user."""

from functools import cached_property
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc
import regex
from pydantic import BaseModel, Field

from dataflow_assets.operators.operator import RowErrors, TextFilter
from dataflow_assets.operators.patterns import PatternParams, re2_pattern, timeout_error
from dataflow_assets.operators.registry import register


class _FilterRegexParams(PatternParams):
    keep: Literal["matching", "not_matching"] = Field(
        "matching", description="Which rows go on: those with a match, or those without."
    )


@register
class FilterRegex(TextFilter):
    """Keeps the rows whose text matches a regular expression, or those whose text does not.

    Grain: one row in, at most one out; order, ids and values unchanged. Reads `column` (string). A
    match anywhere counts; `^` and `$` tie it to the ends. The pattern means what it means to
    Python's `re.search` (syntax: the `regex` module), unless `engine` is `re2`. Rejected rows have
    the reason `pattern_not_matched` or, with `keep: not_matching`, `pattern_matched`. Raises
    PatternTimeout for a row on which the pattern takes longer than `timeout_s`.

    Example:
        - {name: with_digits, type: filter_regex, params: {pattern: "[0-9]", keep: matching}}
    """

    name = "filter_regex"
    version = "2"
    Params = _FilterRegexParams
    params: _FilterRegexParams

    def __init__(self, params: BaseModel | None = None) -> None:
        super().__init__(params)
        self.releases_gil = self._re2 is not None

    @cached_property
    def _re2(self) -> str | None:
        if self.params.engine == "re2":
            return self.params.pattern
        return None if self.params.engine == "python" else re2_pattern(self.params.pattern)

    @cached_property
    def _compiled(self) -> "regex.Pattern[str]":
        return regex.compile(self.params.pattern)

    @property
    def _reason(self) -> str:
        return "pattern_not_matched" if self.params.keep == "matching" else "pattern_matched"

    def reason(self, text: str) -> str | None:
        """The reason to drop this text, by the engine that judges a whole column."""
        if self._re2 is not None:
            return self._by_re2(pa.array([text]), self._re2)[0].as_py()
        try:
            found = self._compiled.search(text, timeout=self.params.timeout_s) is not None
        except TimeoutError:
            raise timeout_error(self.params.pattern, self.params.timeout_s, has_engine=True) from None
        return None if found == (self.params.keep == "matching") else self._reason

    def reasons(self, texts: pa.ChunkedArray) -> tuple[pa.Array | pa.ChunkedArray, RowErrors]:
        """The reason to drop each text, or null."""
        if self._re2 is None:
            return super().reasons(texts)
        return self._by_re2(texts, self._re2), RowErrors.none()

    def _by_re2(self, texts: pa.Array | pa.ChunkedArray, pattern: str) -> pa.Array | pa.ChunkedArray:
        found = pc.match_substring_regex(texts, pattern)
        dropped = pc.invert(found) if self.params.keep == "matching" else found
        reason = pa.scalar(self._reason, pa.large_string())
        return pc.if_else(dropped, reason, pa.scalar(None, pa.large_string()))
