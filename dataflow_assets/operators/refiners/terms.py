"""Replaces or explains the terms of a glossary in texts, at a given rate, by a seed."""

import re
import string
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Literal

import xxhash
from pydantic import Field, PrivateAttr, ValidationInfo, model_validator

from dataflow_assets.errors import ConfigError
from dataflow_assets.operators.operator import ColumnParams, TextMapper
from dataflow_assets.operators.refiners.glossary import Terms, checked_terms, read_glossary
from dataflow_assets.operators.registry import register

_BASE_DIR = "base_dir"
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_WORD_CHARACTERS = frozenset(string.ascii_letters + string.digits + "_")


class _AugmentTermsParams(ColumnParams):
    terms: dict[str, str | list[str]] | None = Field(
        None, description="Term to text, or to several of which one is chosen by the seed."
    )
    glossary: str | None = Field(
        None,
        description="Instead of `terms`: a .yaml, .csv or .jsonl file with term and text; relative paths "
        "begin at the pipeline's folder.",
    )
    mode: Literal["replace", "annotate"] = Field(
        "replace", description="`replace`: the text stands for the term. `annotate`: it is put behind it."
    )
    annotation: str = Field("（{text}）", description="How a text is put behind its term.")
    rate: float = Field(1.0, ge=0, le=1, description="The share of places that are changed, 0 to 1.")
    first_only: bool = Field(False, description="Change a term in a text at its first place only.")
    ignore_case: bool = Field(False, description="Find ASCII letters in either case.")
    seed: int = Field(0, ge=0, lt=2**32, description="Another seed changes other places.")
    _read: Terms = PrivateAttr(default_factory=dict)

    @property
    def texts(self) -> Terms:
        """The terms and their texts, from the parameters or the file."""
        return self._read

    @model_validator(mode="after")
    def _terms_can_be_read(self, info: ValidationInfo) -> "_AugmentTermsParams":
        if (self.terms is None) == (self.glossary is None):
            raise ValueError("give terms or glossary, one of them")
        if "{text}" not in self.annotation:
            raise ValueError("annotation: expected {text} in it, where the text goes")
        try:
            if self.terms is not None:
                self._read = checked_terms(self.terms, "in terms")
            else:
                base = Path(str((info.context or {}).get(_BASE_DIR) or "."))
                self._read = read_glossary(base / str(self.glossary))
        except ConfigError as error:
            raise ValueError(str(error)) from error
        return self


@register
class AugmentTerms(TextMapper):
    """Replaces the terms of a glossary by other words, or puts an explanation behind them.

    Grain: one row in, one row out; order and ids unchanged. Reads and writes `column` (string). The
    longest term at a place counts; one that begins or ends with an ASCII letter or digit is not found
    within a longer ASCII word. At each place a hash of seed, text and place decides whether it is
    changed (at `rate`) and which of several texts is taken: the same row gives the same result in
    every batch and order. An explanation that stands behind its term already is not put there again.
    The content of a glossary file is a part of the operator: with another one the batches are made
    anew. Raises nothing on text.

    Example:
        - name: explained
          type: augment_terms
          params: {terms: {原告: 提起诉讼的一方}, mode: annotate, first_only: true}
    """

    name = "augment_terms"
    Params = _AugmentTermsParams
    params: _AugmentTermsParams

    def identity(self) -> Mapping[str, object]:
        """The terms and texts."""
        return {"terms": {term: list(texts) for term, texts in self.params.texts.items()}}

    @cached_property
    def _texts(self) -> Terms:
        return {self._as_searched(term): texts for term, texts in self.params.texts.items()}

    @cached_property
    def _lengths(self) -> Mapping[str, list[int]]:
        """The lengths of the terms with this first character, the longest first."""
        lengths: dict[str, set[int]] = {}
        for term in self._texts:
            lengths.setdefault(term[0], set()).add(len(term))
        return {first: sorted(some, reverse=True) for first, some in lengths.items()}

    @cached_property
    def _first_characters(self) -> re.Pattern[str]:
        return re.compile(f"[{''.join(map(re.escape, self._lengths))}]")

    def _as_searched(self, text: str) -> str:
        """In lower case where case is ignored; every character in its place."""
        return text.translate(_LOWER) if self.params.ignore_case else text

    def _places(self, searched: str) -> Iterator[tuple[int, int]]:
        """Start and end of the terms, the longest at each place, none inside another."""
        done = 0
        for match in self._first_characters.finditer(searched):
            start = match.start()
            if start < done:
                continue
            for length in self._lengths[match[0]]:
                end = start + length
                if searched[start:end] in self._texts and _is_whole(searched, start, end):
                    yield start, end
                    done = end
                    break

    def edit(self, text: str) -> str:
        """The text with its terms replaced or explained."""
        searched = self._as_searched(text)
        row = xxhash.xxh3_64_intdigest(text.encode(), self.params.seed)
        parts, done, seen = [], 0, set()
        for start, end in self._places(searched):
            term = searched[start:end]
            if term in seen and self.params.first_only:
                continue
            seen.add(term)
            chance = xxhash.xxh3_64_intdigest(f"{row}:{start}".encode())
            if (chance >> 32) / 2**32 >= self.params.rate:
                continue
            texts = self._texts[term]
            new = self._changed(text, start, end, texts[chance % len(texts)], texts)
            parts += [text[done:start], new]
            done = end
        return "".join([*parts, text[done:]])

    def _changed(self, text: str, start: int, end: int, chosen: str, texts: tuple[str, ...]) -> str:
        if self.params.mode == "replace":
            return chosen
        term = text[start:end]
        if any(text.startswith(self._behind(other), end) for other in texts):
            return term
        return term + self._behind(chosen)

    def _behind(self, text: str) -> str:
        return self.params.annotation.replace("{text}", text)


def _is_whole(text: str, start: int, end: int) -> bool:
    """Whether no ASCII word goes on at either side."""
    within_at_start = start > 0 and text[start] in _WORD_CHARACTERS and text[start - 1] in _WORD_CHARACTERS
    within_at_end = end < len(text) and text[end - 1] in _WORD_CHARACTERS and text[end] in _WORD_CHARACTERS
    return not (within_at_start or within_at_end)
