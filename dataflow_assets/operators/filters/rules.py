"""The base of filters that measure a text and compare each measure with a threshold of a profile."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, cast

import pyarrow as pa
from pydantic import BaseModel, Field

from dataflow_assets.batch import Schema, with_column
from dataflow_assets.errors import ConfigError
from dataflow_assets.operators.filters.profile import Profile, profile_of
from dataflow_assets.operators.operator import ColumnParams, Outcome, RowErrors, TextOperator, split_by_reason
from dataflow_assets.text.document import Document
from dataflow_assets.text.language import LANGUAGES, Language
from dataflow_assets.text.words import packages_for

REJECT_VALUE = "reject_value"
REJECT_THRESHOLD = "reject_threshold"
Threshold = float | Literal["off"] | None
# A blank one would be found in every text.
Phrase = Annotated[str, Field(pattern=r"\S")]
Measure = Callable[[Document, Profile], float | None]


@dataclass(frozen=True)
class Rule:
    """One measure of a text and the side on which it must not leave the threshold.

    `reason` is what `reject_reason` says. `name` is the measure's, for the column that
    `mode: annotate` adds; rules of one filter may share a measure. `min` or `max` names the setting
    of the profile that the value is compared with; the threshold belongs to the range. A measure
    gives None where it is not defined, and the rule is kept then. `surely_kept` may say at less
    cost, for a threshold, that the value is within it; False means that it does not know.
    """

    reason: str
    name: str
    measure: Measure
    min: str | None = None
    max: str | None = None
    surely_kept: Callable[[Document, Profile, float], bool] | None = None

    def threshold(self, profile: Profile) -> float | None:
        """The threshold in this profile, or None where the rule is off."""
        return profile.number(self.min or self.max or "")

    def miss(self, document: Document, profile: Profile) -> "Miss | None":
        """What to tell of a text that the rule drops, or None."""
        threshold = self.threshold(profile)
        if threshold is None:
            return None
        if self.surely_kept is not None and self.surely_kept(document, profile, threshold):
            return None
        value = self.measure(document, profile)
        if value is None or (value >= threshold if self.min else value <= threshold):
            return None
        return Miss(self.reason, value, threshold)


class Miss(NamedTuple):
    """Why a row was dropped: the rule, what was measured, and the threshold; None where there is none."""

    reason: str
    value: float | None
    threshold: float | None


# The rows that are dropped by their place in the table, and texts with theirs.
Misses = dict[int, Miss]
PlacedDocuments = Iterable[tuple[int, Document]]


class RuleParams(ColumnParams):
    """Parameters of every filter by rules; a subclass adds its thresholds (`threshold_field`)."""

    mode: Literal["filter", "annotate"] = Field(
        "filter",
        description="`filter` drops rows. `annotate` drops none and adds each measure as a float64 column, "
        "for `filter_by` later.",
    )
    language: Literal["auto", "en", "zh"] = Field(
        "auto", description="The profile; `auto` takes `zh` for a text with a Han share of at least .2."
    )


def threshold_field(description: str) -> Any:
    """A parameter over a threshold of the profile: a number, `off`, or nothing for the profile's own."""
    return Field(None, description=f"{description} Default: of the profile; `off` switches the rule off.")


class RuleFilter(TextOperator):
    """Keeps the rows that miss none of `rules`, which are looked at in their order.

    A subclass gives `name`, `rules`, `Params`, and a section of its name in each file of `profiles/`.
    Rejected rows have `reject_reason`, `reject_value` (what was measured) and `reject_threshold`.
    """

    rules: ClassVar[tuple[Rule, ...]] = ()
    needs_words: ClassVar[bool] = False
    Params: ClassVar[type[BaseModel]] = RuleParams

    def __init__(self, params: BaseModel | None = None) -> None:
        super().__init__(params)
        language = self._settings.language
        languages: tuple[Language, ...] = LANGUAGES if language == "auto" else (language,)
        given = {name: getattr(self.params, name) for name in type(self.params).model_fields}
        self._profiles: dict[Language, Profile] = {
            language: profile_of(self.name, language, given) for language in languages
        }
        self._check_bounds()

    def needed_packages(self) -> Mapping[str, str]:
        """What finds the words, where words count."""
        return packages_for(self._profiles) if self.needs_words else {}

    @property
    def _settings(self) -> RuleParams:
        """The parameters that every filter by rules has; a subclass declares `params` as its own type."""
        return cast(RuleParams, self.params)

    def _check_bounds(self) -> None:
        """Raises ConfigError where no text could pass: the least of a measure is above its most."""
        for language, profile in self._profiles.items():
            least = {rule.name: rule for rule in self.rules if rule.min}
            for most in (rule for rule in self.rules if rule.max and rule.name in least):
                low, high = least[most.name].threshold(profile), most.threshold(profile)
                if low is not None and high is not None and low > high:
                    raise ConfigError(
                        f"operator {self.name!r}: {least[most.name].min} {low:g} is above "
                        f"{most.max} {high:g} in the profile {language!r}: no row could pass"
                    )

    def columns(self) -> list[str]:
        """For each rule the column that `mode: annotate` adds; rules of one measure share it."""
        prefix = self.name.removeprefix("filter_")
        return [f"{prefix}_{rule.name}" for rule in self.rules]

    def measures(self) -> Mapping[str, Measure]:
        """The measures of the rules by column, in order."""
        return {column: rule.measure for column, rule in zip(self.columns(), self.rules, strict=True)}

    def writes(self) -> Schema:
        """The measures in `mode: annotate`, else nothing."""
        return dict.fromkeys(self.measures(), "float64") if self._settings.mode == "annotate" else {}

    def identity(self) -> Mapping[str, object]:
        """The thresholds and lists in force, which a new version of a profile may change."""
        return {language: dict(profile.settings) for language, profile in self._profiles.items()}

    def document(self, text: str) -> Document:
        """The text in its language."""
        language = self._settings.language
        return Document(text, None if language == "auto" else language)

    def profile(self, language: Language) -> Profile:
        """The settings for texts of this language."""
        return self._profiles[language]

    def miss(self, document: Document) -> Miss | None:
        """The first rule that drops the text, or None."""
        profile = self._profiles[document.language]
        for rule in self.rules:
            if (miss := rule.miss(document, profile)) is not None:
                return miss
        return None

    def values(self, document: Document) -> list[float | None]:
        """The measures of a text in the order of `measures`."""
        profile = self._profiles[document.language]
        return [measure(document, profile) for measure in self.measures().values()]

    def apply(self, table: pa.Table) -> Outcome:
        """Keeps or annotates the rows, in order. A measure that raises fails its row."""
        texts = self.texts(table)
        places = range(len(table)) if texts.positions is None else texts.positions.to_pylist()
        documents = zip(places, map(self.document, texts.values.to_pylist()), strict=True)
        work = self.annotated if self._settings.mode == "annotate" else self.judged
        result, misses, errors = work(table, documents)
        if self._settings.on_null == "reject":
            misses.update(dict.fromkeys(texts.nulls, Miss("missing_text", None, None)))
        errors = RowErrors(
            texts.errors.positions + errors.positions, texts.errors.errors + errors.errors
        ).in_order()
        return _split(table, result, misses, errors)

    def judged(self, table: pa.Table, documents: PlacedDocuments) -> tuple[pa.Table, Misses, RowErrors]:
        """The table, the rows that are dropped, and those that failed."""
        misses: Misses = {}
        errors = RowErrors.none()
        for place, document in documents:
            try:
                if (miss := self.miss(document)) is not None:
                    misses[place] = miss
            except (Exception, SystemExit) as error:  # noqa: BLE001  a row that raises fails alone
                errors.add(place, error)
        return table, misses, errors

    def annotated(self, table: pa.Table, documents: PlacedDocuments) -> tuple[pa.Table, Misses, RowErrors]:
        """The table with the measures, no row that is dropped, and the rows that failed."""
        columns: dict[str, list[float | None]] = {name: [None] * len(table) for name in self.measures()}
        errors = RowErrors.none()
        for place, document in documents:
            try:
                for column, value in zip(columns.values(), self.values(document), strict=True):
                    column[place] = value
            except (Exception, SystemExit) as error:  # noqa: BLE001  a row that raises fails alone
                errors.add(place, error)
        for name, column in columns.items():
            table = with_column(table, name, "float64", pa.array(column, pa.float64()))
        return table, {}, errors


def _split(table: pa.Table, result: pa.Table, misses: Misses, errors: RowErrors) -> Outcome:
    """Kept rows of the result; rejected ones of the table with reason, value and threshold, failed ones."""
    reasons: list[str | None] = [None] * len(table)
    for place, miss in misses.items():
        reasons[place] = miss.reason
    column = pa.array(reasons, pa.large_string())
    outcome = split_by_reason(table, column, errors)
    if result is not table:
        outcome = outcome._replace(kept=split_by_reason(result, column, errors).kept)
    if outcome.rejected is None:
        return outcome
    told = [misses[place] for place in sorted(misses.keys() - set(errors.positions))]
    rejected = outcome.rejected
    for name, numbers in (
        (REJECT_VALUE, [miss.value for miss in told]),
        (REJECT_THRESHOLD, [miss.threshold for miss in told]),
    ):
        rejected = with_column(rejected, name, "float64", pa.array(numbers, pa.float64()))
    return outcome._replace(rejected=rejected)
