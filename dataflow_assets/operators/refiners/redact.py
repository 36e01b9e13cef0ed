"""Takes personal data and whatever a pattern finds out of texts, and counts what was taken."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Literal, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import regex
from pydantic import BaseModel, Field, SecretStr, field_validator, model_validator

from dataflow_assets.batch import Schema, json_text, json_value
from dataflow_assets.operators.operator import ColumnParams, Outcome, Params, RowErrors, TextOperator
from dataflow_assets.operators.patterns import (
    check_pattern,
    check_template,
    re2_pattern,
    timeout_error,
)
from dataflow_assets.operators.refiners.pii.kinds import DETECTORS, Detector, IPv4, IPv6, PatternKind
from dataflow_assets.operators.refiners.pii.names import PERSON, PERSON_TAG, PersonNames
from dataflow_assets.operators.refiners.pii.replacements import (
    Substitute,
    by_pseudonym,
    by_rotation,
    by_tag,
    substituted,
)
from dataflow_assets.operators.refiners.pii.spans import WIDE_CHARACTERS, Span, folded, without_overlaps
from dataflow_assets.operators.registry import register
from dataflow_assets.operators.selected_texts import edited_where, one_chunk, texts_by_row
from dataflow_assets.optional_packages import version_of

PiiKind = Literal[
    "email",
    "ipv6",
    "ipv4",
    "id_card",
    "bank_card",
    "phone",
    "mobile",
    "passport",
    "licence_plate",
    "person",
]
_TAGS = {**{kind: detector.tag for kind, detector in DETECTORS.items()}, PERSON: PERSON_TAG}
_DEFAULT_KINDS: tuple[PiiKind, ...] = ("email", "ipv6", "ipv4", "id_card", "bank_card", "phone", "mobile")
_SHORTEST_KEY = 16


class _CountingParams(ColumnParams):
    counts_column: str | None = Field(
        None,
        description="JSON column that gets how often what was replaced, null where nothing was; the sums "
        "are shown with the batch.",
    )

    @model_validator(mode="after")
    def _columns_differ(self) -> "_CountingParams":
        if self.counts_column in (self.column, "row_id"):
            raise ValueError(f"counts_column {self.counts_column!r} is a column that holds something else")
        return self


class _Redacted(NamedTuple):
    """The new texts and the counts of each; the text of a row that failed is null."""

    texts: pa.ChunkedArray
    counts: list[dict[str, int] | None]
    errors: RowErrors


class _Redactor(TextOperator):
    """An operator that replaces parts of a text and counts them."""

    @property
    def _counts_column(self) -> str | None:
        return cast(_CountingParams, self.params).counts_column

    def writes(self) -> Schema:
        """The text column, and the counts where a column for them is named."""
        counts: Schema = {} if self._counts_column is None else {self._counts_column: "json"}
        return {self._column.column: "string", **counts}

    @abstractmethod
    def redact(self, texts: pa.ChunkedArray) -> _Redacted:
        """The texts without what is to be replaced."""

    def apply(self, table: pa.Table) -> Outcome:
        """Redacts the texts; rows without a usable text are failed."""
        texts = self.texts(table)
        redacted = self.redact(texts.values)
        columns = {self._column.column: redacted.texts}
        if self._counts_column is not None:
            found = [None if not counts else json_text(counts) for counts in redacted.counts]
            columns[self._counts_column] = pa.chunked_array([pa.array(found, pa.large_string())])
        return self.with_columns(table, texts, columns, redacted.errors)

    def counts(self, kept: pa.Table) -> Mapping[str, int]:
        """How often what was replaced in these rows, from their counts column."""
        if self._counts_column is None:
            return {}
        total: Counter[str] = Counter()
        for text in kept[self._counts_column].drop_null().to_pylist():
            total.update(cast(dict[str, int], json_value(text)))
        return dict(sorted(total.items()))


class _RedactPiiParams(_CountingParams):
    kinds: list[PiiKind] = Field(
        default_factory=lambda: list(_DEFAULT_KINDS),
        min_length=1,
        description="What is replaced: email, ipv4, ipv6, id_card, bank_card, mobile, phone, and, only where "
        "named, passport, licence_plate, person.",
    )
    replacement: Literal["tag", "pseudonym", "rotate"] = Field(
        "tag",
        description="`tag`: `<EMAIL>`. `pseudonym`: `<EMAIL_0f3a…>`, the same for the same value, by `key`. "
        "`rotate`: harmless values of the same kind.",
    )
    tags: dict[PiiKind, str] = Field({}, description="Other tags by kind, e.g. `{id_card: '[ID]'}`.")
    key: SecretStr | None = Field(
        None,
        description="Secret of the pseudonyms, 16 characters or more, from the environment: `${PII_KEY}`. It "
        "is in no file and no fingerprint.",
    )
    key_id: str = Field(
        "", description="A name of the key; with another one the batches are made anew, the key is not seen."
    )
    public_ips_only: bool = Field(True, description="Leave private, reserved and documentation addresses.")
    names_language: Literal["en", "zh"] = Field("en", description="Language of the texts, for kind `person`.")
    names_model: str = Field("en_core_web_sm", description="spaCy model that finds names, kind `person`.")

    @model_validator(mode="after")
    def _key_fits(self) -> "_RedactPiiParams":
        if self.replacement != "pseudonym":
            if self.key is not None:
                raise ValueError("a key is for `replacement: pseudonym`")
            return self
        if self.key is None:
            raise ValueError("`replacement: pseudonym` needs a key, e.g. `key: ${PII_KEY}`")
        if len(self.key.get_secret_value()) < _SHORTEST_KEY:
            raise ValueError(f"the key is shorter than {_SHORTEST_KEY} characters")
        return self

    @field_validator("kinds")
    @classmethod
    def _each_once(cls, kinds: list[str]) -> list[str]:
        if len(set(kinds)) < len(kinds):
            raise ValueError("a kind is named twice")
        return kinds


@register
class RedactPii(_Redactor):
    """Replaces e-mail and IP addresses, phone, identity and card numbers by tags or pseudonyms.

    Grain: one row in, one row out; order and ids unchanged. Reads and writes `column` (string); adds
    `counts_column` (json, `{"email": 2}`) where it is named.

    * `email`; `ipv4`, `ipv6` (public ones); `mobile` (Chinese, with or without +86); `phone` (+ and
      country code, North American, Chinese with area code); `id_card` (18 characters, date and check
      digit tested); `bank_card` (prefix, length and Luhn digit tested). On demand `passport` and
      `licence_plate` by shape, and `person`, names found by Presidio (slow; extra `pii`).
    * Digits may be full-width, and set apart by spaces or hyphens. A number within a longer number, a
      decimal or an ASCII word is none; Chinese characters beside it make no difference. Where two
      kinds overlap, the first in the order email, ipv6, ipv4, id_card, bank_card, phone, mobile,
      passport, licence_plate, person counts.
    * Pseudonyms are 12 hexadecimal digits of an HMAC-SHA256; two spellings of a number have one.

    Raises ConfigError where `person` is wanted and Presidio or its model is missing. Recall and
    precision: `docs/pii.md`. Sources: RFC 5322, RFC 4291, ITU E.164, GB 11643, ISO/IEC 7812-1, GA 36.

    Example:
        - {name: redacted, type: redact_pii, params: {column: text, counts_column: pii_counts}}
    """

    name = "redact_pii"
    version = "2"
    Params = _RedactPiiParams
    params: _RedactPiiParams

    def __init__(self, params: BaseModel | None = None) -> None:
        super().__init__(params)
        wanted = self.params.kinds
        self._detectors = [self._detector(kind) for kind in DETECTORS if kind in wanted]
        names = PersonNames(self.params.names_language, self.params.names_model) if PERSON in wanted else None
        self._names = names

    def _detector(self, kind: PatternKind) -> Detector:
        detector = DETECTORS[kind]
        return detector(self.params.public_ips_only) if detector in (IPv4, IPv6) else detector()  # pyright: ignore[reportCallIssue]

    def identity(self) -> Mapping[str, object]:
        """The version of Presidio and of the model, where names are looked for."""
        if self._names is None:
            return {}
        return {
            name: version_of(name) or "unknown" for name in ("presidio-analyzer", self.params.names_model)
        }

    @cached_property
    def _substitute(self) -> Substitute:
        tags: dict[str, str] = {**_TAGS, **self.params.tags}
        if self.params.key is not None:
            return by_pseudonym(tags, self.params.key.get_secret_value().encode())
        return by_rotation() if self.params.replacement == "rotate" else by_tag(tags)

    def spans(self, text: str) -> list[Span]:
        """The personal data of one text, in its order."""
        return self._spans(text, folded(text), self._detectors)

    def _spans(self, text: str, searched: str, detectors: Iterable[Detector]) -> list[Span]:
        found = [
            Span(start, end, detector.kind, detector.value(searched[start:end]))
            for detector in detectors
            for start, end in detector.find(searched)
        ]
        if self._names is not None:
            found += [Span(start, end, PERSON, text[start:end]) for start, end in self._names.find(text)]
        return without_overlaps(found)

    def redact(self, texts: pa.ChunkedArray) -> _Redacted:
        """All texts without personal data; only texts with a hint of some kind are looked at closely."""
        wide = pc.match_substring_regex(texts, WIDE_CHARACTERS)
        searched = edited_where(texts, wide, lambda some: texts_by_row(some, folded))
        hints = [_matches(searched, detector.hint) for detector in self._detectors]
        looked_at = np.logical_or.reduce(hints) if hints else np.zeros(len(texts), bool)
        if self._names is not None:
            looked_at = np.ones(len(texts), bool)
        counts: list[dict[str, int] | None] = [None] * len(texts)
        errors = RowErrors.none()
        if not looked_at.any():
            return _Redacted(texts, counts, errors)
        mask = pa.array(looked_at)
        positions = np.flatnonzero(looked_at).tolist()
        changed: dict[int, str | None] = {}
        pairs = zip(texts.filter(mask).to_pylist(), searched.filter(mask).to_pylist(), strict=True)
        for position, (text, folded_text) in zip(positions, pairs, strict=True):
            detectors = [
                detector for detector, hint in zip(self._detectors, hints, strict=True) if hint[position]
            ]
            try:
                spans = self._spans(text, folded_text, detectors)
            except (Exception, SystemExit) as error:  # noqa: BLE001  a row that raises fails alone
                errors.add(position, error)
                continue
            if spans:
                changed[position], counts[position] = substituted(text, spans, self._substitute)
        return _Redacted(_with_changed(texts, changed), counts, errors)


def _matches(texts: pa.ChunkedArray, pattern: str) -> np.ndarray:
    return pc.match_substring_regex(texts, pattern).to_numpy()


def _with_changed(texts: pa.ChunkedArray, changed: Mapping[int, str | None]) -> pa.ChunkedArray:
    if not changed:
        return texts
    mask = np.zeros(len(texts), bool)
    mask[list(changed)] = True
    new = pa.array(changed.values(), pa.large_string())
    return pa.chunked_array([pc.replace_with_mask(one_chunk(texts), pa.array(mask), new)])


class RedactRule(Params):
    """One pattern of `regex_redact`."""

    name: str = Field(min_length=1, description="What it finds; the counts say it.")
    pattern: str = Field(description="A regular expression, searched anywhere in the text.")
    replacement: str | None = Field(
        None, description="What stands in its place, `\\1` is the first group; default: `<NAME>`."
    )

    @property
    def substitute(self) -> str:
        """The replacement, or the name as a tag."""
        if self.replacement is not None:
            return self.replacement
        return f"<{self.name.upper()}>".replace("\\", "\\\\")

    @model_validator(mode="after")
    def _compiles(self) -> "RedactRule":
        check_pattern(self.pattern, "python")
        try:
            check_template(regex.compile(self.pattern), self.substitute)
        except (regex.error, IndexError) as error:
            raise ValueError(
                f"the replacement {self.substitute!r} does not fit the pattern: {error}"
            ) from error
        return self


class _RegexRedactParams(_CountingParams):
    rules: list[RedactRule] = Field(min_length=1, description="Patterns, applied one after another.")
    timeout_s: float = Field(1.0, gt=0, description="The most seconds that a pattern may take on one row.")

    @field_validator("rules")
    @classmethod
    def _each_name_once(cls, rules: list[RedactRule]) -> list[RedactRule]:
        if len({rule.name for rule in rules}) < len(rules):
            raise ValueError("two rules have one name")
        return rules


@register
class RegexRedact(_Redactor):
    r"""Replaces what your own patterns find in a text and counts it by the name of the pattern.

    Grain: one row in, one row out; order and ids unchanged. Reads and writes `column` (string); adds
    `counts_column` (json, `{"case_number": 2}`) where it is named. The patterns mean what they mean to
    Python (syntax: the `regex` module) and are applied in their order, each to the result of the one
    before. Raises PatternTimeout for a row on which a pattern takes longer than `timeout_s`.

    Example:
        - name: without_case_numbers
          type: regex_redact
          params: {rules: [{name: case_number, pattern: '[(（]\d{4}[)）]\w{2,12}号'}], counts_column: found}
    """

    name = "regex_redact"
    version = "2"
    Params = _RegexRedactParams
    params: _RegexRedactParams

    @cached_property
    def _compiled(self) -> Sequence["regex.Pattern[str]"]:
        return [regex.compile(rule.pattern) for rule in self.params.rules]

    @cached_property
    def _hint(self) -> str | None:
        """An RE2 pattern for all texts that any rule changes, if there is one."""
        hints = [re2_pattern(rule.pattern) for rule in self.params.rules]
        return None if None in hints else "|".join(f"(?:{hint})" for hint in hints)

    def redact(self, texts: pa.ChunkedArray) -> _Redacted:
        """All texts with every match replaced."""
        counts: list[dict[str, int] | None] = [None] * len(texts)
        errors = RowErrors.none()
        matching = np.ones(len(texts), bool) if self._hint is None else _matches(texts, self._hint)
        changed: dict[int, str | None] = {}
        positions = np.flatnonzero(matching).tolist()
        for position, text in zip(positions, texts.filter(pa.array(matching)).to_pylist(), strict=True):
            try:
                new, found = self._redacted(text)
            except (Exception, SystemExit) as error:  # noqa: BLE001  a row that raises fails alone
                errors.add(position, error)
                continue
            if found:
                changed[position], counts[position] = new, found
        return _Redacted(_with_changed(texts, changed), counts, errors)

    def _redacted(self, text: str) -> tuple[str, dict[str, int]]:
        found = {}
        for rule, pattern in zip(self.params.rules, self._compiled, strict=True):
            try:
                text, count = pattern.subn(rule.substitute, text, timeout=self.params.timeout_s)
            except TimeoutError:
                raise timeout_error(rule.pattern, self.params.timeout_s) from None
            if count:
                found[rule.name] = count
        text.encode()
        return text, found
