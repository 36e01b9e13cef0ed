"""What the filters of one rule share: their parameters, and the words that they count."""

from collections.abc import Callable, Mapping

from dataflow_assets.operators.filters.profile import Profile
from dataflow_assets.operators.filters.rules import (
    Measure,
    Rule,
    RuleFilter,
    RuleParams,
    Threshold,
    threshold_field,
)
from dataflow_assets.text.document import Document
from dataflow_assets.text.words import packages_for

SurelyKept = Callable[[Document, Profile, float], bool]


class AtLeast(RuleParams):
    """Parameters of a filter whose measure has a lower bound."""

    min: Threshold = threshold_field("The least that stays.")


class AtMost(RuleParams):
    """Parameters of a filter whose measure has an upper bound."""

    max: Threshold = threshold_field("The most that stays.")


class Within(RuleParams):
    """Parameters of a filter whose measure has both bounds."""

    min: Threshold = threshold_field("The least that stays.")
    max: Threshold = threshold_field("The most that stays.")


class PlainWordsFilter(RuleFilter):
    """A filter that counts `plain_words`: those of Chinese need packages."""

    def needed_packages(self) -> Mapping[str, str]:
        """What finds Chinese words."""
        return packages_for(["zh"]) if "zh" in self._profiles else {}


def at_least(reason: str, name: str, measure: Measure, surely_kept: SurelyKept | None = None) -> Rule:
    """The rule that the measure is not below `min`."""
    return Rule(reason, name, measure, min="min", surely_kept=surely_kept)


def at_most(reason: str, name: str, measure: Measure, surely_kept: SurelyKept | None = None) -> Rule:
    """The rule that the measure is not above `max`."""
    return Rule(reason, name, measure, max="max", surely_kept=surely_kept)


def share(part: float, whole: float) -> float | None:
    """The part of the whole, or None where there is nothing to share."""
    return part / whole if whole else None
