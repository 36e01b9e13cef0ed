"""Several filters in one step."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field, PrivateAttr, ValidationInfo, model_validator

from dataflow_assets.operators.filters.rules import Measure, Miss, RuleFilter, RuleParams
from dataflow_assets.operators.operator import Params, TextFilter
from dataflow_assets.operators.registry import build_operator, find_operator, register
from dataflow_assets.text.document import Document

# What the filters by rules have of the step; nulls are the step's alone.
_OF_RULES = ("column", "mode", "language")


class _Filter(Params):
    type: str = Field(min_length=1, description="The name of a filter.")
    params: dict[str, Any] = Field({}, description="Its parameters, those of the step left out.")


class _ChainParams(RuleParams):
    filters: list[_Filter] = Field(
        min_length=1, description="The filters in their order, as steps without names."
    )
    _operators: list[RuleFilter | TextFilter] = PrivateAttr([])

    @property
    def operators(self) -> list[RuleFilter | TextFilter]:
        """The filters, made."""
        return self._operators

    @model_validator(mode="after")
    def _filters_can_be_made(self, info: ValidationInfo) -> "_ChainParams":
        self._operators = [self._made(given, (info.context or {}).get("base_dir")) for given in self.filters]
        columns = [name for made in self._operators for name in _measures(made)]
        if self.mode == "annotate" and len(set(columns)) < len(columns):
            raise ValueError("a filter is given twice: both would write the same columns")
        return self

    def _made(self, given: _Filter, base_dir: Any) -> RuleFilter | TextFilter:
        for name in (*_OF_RULES, "on_null"):
            if name in given.params:
                raise ValueError(f"{name} of {given.type!r} is that of the step: give it beside `filters`")
        names = _OF_RULES if issubclass(find_operator(given.type), RuleFilter) else ("column",)
        of_all = {name: getattr(self, name) for name in names}
        made = build_operator(given.type, {**of_all, **given.params}, base_dir)
        if isinstance(made, RuleFilter) and _only_judges(type(made)):
            return made
        if isinstance(made, TextFilter) and type(made).reason is not TextFilter.reason:
            if self.mode == "filter":
                return made
            raise ValueError(f"{given.type!r} measures nothing: it has no `mode: annotate`")
        raise ValueError(f"{given.type!r} does not judge one text at a time: it needs a step of its own")


@register
class FilterChain(RuleFilter):
    """Keeps the rows that pass several filters, in one step: the words of a text are found once for all.

    Grain: one row in, at most one out; order, ids and values unchanged. Reads `column` (string). The verdict
    and the reason are those of a step for each filter in this order, without the file that each of them would
    write; `mode: annotate` drops none and adds the measures of all. `column`, `mode`, `language` and
    `on_null` stand beside `filters` and count for all. Filters by rules and those by a word list, a language
    or a pattern may stand here; `filter_c4`, which also edits, and filters on several columns may not.
    Rejected rows have the reason of the first filter that they miss, and its value and threshold where it
    has them. Raises what the filters raise.

    Example:
        - {name: a, type: filter_chain, params: {filters: [{type: filter_colon_end}, {type: filter_id_card}]}}
    """

    name = "filter_chain"
    version = "2"
    Params = _ChainParams
    params: _ChainParams

    def needed_packages(self) -> Mapping[str, str]:
        """What the filters need."""
        filters = self.params.operators
        return {name: extra for made in filters for name, extra in made.needed_packages().items()}

    def identity(self) -> Mapping[str, object]:
        """What decides the result of each filter."""
        return {
            str(place): [made.name, made.version, dict(made.fingerprint_of_params()), dict(made.identity())]
            for place, made in enumerate(self.params.operators)
        }

    def measures(self) -> Mapping[str, Measure]:
        """The measures of all filters."""
        return {name: measure for made in self.params.operators for name, measure in _measures(made).items()}

    def values(self, document: Document) -> list[float | None]:
        """The measures of a text by all filters."""
        rule_filters = (made for made in self.params.operators if isinstance(made, RuleFilter))
        return [value for made in rule_filters for value in made.values(document)]

    def miss(self, document: Document) -> Miss | None:
        """What the first filter that drops the text says."""
        for made in self.params.operators:
            if isinstance(made, RuleFilter):
                miss = made.miss(document)
            else:
                reason = made.reason(document.text)
                miss = Miss(reason, None, None) if reason else None
            if miss is not None:
                return miss
        return None


def _only_judges(filter_: type[RuleFilter]) -> bool:
    return filter_.apply is RuleFilter.apply and filter_.judged is RuleFilter.judged


def _measures(made: RuleFilter | TextFilter) -> Mapping[str, Measure]:
    return made.measures() if isinstance(made, RuleFilter) else {}
