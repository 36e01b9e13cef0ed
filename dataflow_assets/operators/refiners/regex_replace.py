"""Replaces what matches a regular expression of the user."""

import re
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc
import regex
from pydantic import BaseModel, Field, model_validator

from dataflow_assets.operators.operator import RowErrors, TextMapper
from dataflow_assets.operators.patterns import PatternParams, check_template, re2_pattern, timeout_error
from dataflow_assets.operators.registry import register

_GROUP_REFERENCE = re.compile(r"\\[1-9](?![0-9])")


class _RegexReplaceParams(PatternParams):
    replacement: str = Field("", description="What stands in its place; `\\1` is the first group.")

    @model_validator(mode="after")
    def _replacement_fits(self) -> "_RegexReplaceParams":
        try:
            if self.engine == "re2":
                pc.replace_substring_regex(pa.array([""]), self.pattern, self.replacement)
            else:
                check_template(regex.compile(self.pattern), self.replacement)
        except (regex.error, IndexError, pa.ArrowInvalid, UnicodeEncodeError) as error:
            reason = str(error)
            raise ValueError(
                f"the replacement {self.replacement!r} does not fit the pattern: {reason}"
            ) from error
        return self


@register
class RegexReplace(TextMapper):
    r"""Replaces every match of a regular expression in a text column.

    Grain: one row in, one row out; order and ids unchanged. Reads and writes `column` (string).
    Pattern and replacement mean what they mean to Python's `re.sub` (syntax: the `regex` module, so
    `\p{Han}` works), unless `engine` is `re2`. Raises PatternTimeout for a row on which the pattern
    takes longer than `timeout_s`; the other rows go on.

    Example:
        - {name: masked, type: regex_replace, params: {pattern: "[0-9]{4,}", replacement: "<number>"}}
    """

    name = "regex_replace"
    version = "2"
    Params = _RegexReplaceParams
    params: _RegexReplaceParams

    def __init__(self, params: BaseModel | None = None) -> None:
        super().__init__(params)
        self.releases_gil = self._re2 is not None

    @cached_property
    def _re2(self) -> str | None:
        params = self.params
        if params.engine == "re2":
            return params.pattern
        rest = _GROUP_REFERENCE.sub("", params.replacement)
        if params.engine == "python" or "\\" in rest:
            return None
        return re2_pattern(params.pattern, groups=rest != params.replacement, empty=False)

    @cached_property
    def _compiled(self) -> "regex.Pattern[str]":
        return regex.compile(self.params.pattern)

    def edit(self, text: str) -> str:
        """The text with every match replaced, by the `regex` module."""
        try:
            return self._compiled.sub(self.params.replacement, text, timeout=self.params.timeout_s)
        except TimeoutError:
            raise timeout_error(self.params.pattern, self.params.timeout_s, has_engine=True) from None

    def edit_column(self, texts: pa.ChunkedArray) -> tuple[pa.ChunkedArray, RowErrors]:
        """All texts with every match replaced."""
        if self._re2 is None:
            return super().edit_column(texts)
        return pc.replace_substring_regex(texts, self._re2, self.params.replacement), RowErrors.none()
