"""Two profiles of a step, of the rows that came in and went out, as what a page shows side by side."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from dataflow_assets.report.profiles import LEFT_OUT

MAX_MEASURES = 1200
_MAX_COLUMNS = 12
_MAX_LABELS = 8
_MAX_TOP = 5
_WIDTH, _HEIGHT = 160.0, 44.0
_QUANTILES = {"min": "min", "p05": "5%", "p50": "median", "p95": "95%", "max": "max", "mean": "mean"}
_NOT_FACTS = ("type", "measures", "shares", "top", "top_is_all", "distinct_is_exact")
_LABELS = {"distinct": "distinct values"}


@dataclass(frozen=True)
class Bars:
    """A histogram: `path` draws it in a box of 160 by 44, `alt` says it in words."""

    path: str
    alt: str
    numbers: list[tuple[str, str]]


@dataclass(frozen=True)
class MeasureView:
    """A measure before and after; one side is None where there is none."""

    name: str
    before: Bars | None
    after: Bars | None
    low: str
    high: str


@dataclass(frozen=True)
class Compared:
    """A number, or a share of a label, before and after, as texts; empty for none."""

    name: str
    before: str
    after: str


@dataclass(frozen=True)
class ColumnView:
    """A column of a step. `status` is `new`, `gone`, `changed` or `read`.

    `constant` are measures with one value in all rows, `as_before` those that the step left as they were.
    """

    name: str
    kind: str
    status: str
    facts: list[Compared] = field(default_factory=list)
    measures: list[MeasureView] = field(default_factory=list)
    shares: list[tuple[str, list[Compared]]] = field(default_factory=list)
    top: list[Compared] = field(default_factory=list)
    constant: list[tuple[str, str]] = field(default_factory=list)
    as_before: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class ProfileView:
    """The columns that changed, the names of those that did not, and those left out for their number."""

    sampled: str
    columns: list[ColumnView]
    same: list[str]
    left_out: list[str]


class Room:
    """How many measures a page still has room for."""

    def __init__(self, measures: int = MAX_MEASURES) -> None:
        self.left = measures

    def first(self, names: Sequence[str]) -> list[str]:
        """As many of these measures as there is room for."""
        taken = list(names[: self.left])
        self.left -= len(taken)
        return taken


def compared(before: Mapping | None, after: Mapping | None, room: Room) -> ProfileView | None:
    """What is to be shown; None where there is no profile at all."""
    if not before and not after:
        return None
    old: Mapping[str, Mapping] = (before or {}).get("columns", {})
    new: Mapping[str, Mapping] = (after or {}).get("columns", {})
    names = [*new, *(name for name in old if name not in new)]
    same = [name for name in names if before and name in old and old[name] == new.get(name)]
    changed = [name for name in names if name not in same]
    shown = changed[:_MAX_COLUMNS]
    views = [_column(name, old.get(name), new.get(name), bool(before), room) for name in shown]
    return ProfileView(_sampled(after or before or {}), views, same, changed[_MAX_COLUMNS:])


def _sampled(profile: Mapping) -> str:
    rows, sampled = profile.get("rows", 0), profile.get("sampled_rows")
    without = profile.get(LEFT_OUT)
    left_out = f" (batches left out: {without:,})" if without else ""
    if sampled is None or sampled >= rows:
        return f"of {rows:,} rows{left_out}"
    return f"of {rows:,} rows{left_out}; lengths and the like of a sample of {sampled:,}"


def _column(
    name: str, before: Mapping | None, after: Mapping | None, has_before: bool, room: Room
) -> ColumnView:
    old, new = before or {}, after or {}
    kinds = list(dict.fromkeys(filter(None, (old.get("type"), new.get("type")))))
    status = "changed" if before and after else "gone" if after is None else "new" if has_before else "read"
    old_measures, new_measures = old.get("measures", {}), new.get("measures", {})
    names = _names(old_measures, new_measures)
    pairs = {each: (old_measures.get(each), new_measures.get(each)) for each in names}
    constant = {each: value for each, pair in pairs.items() if (value := _constant(*pair)) is not None}
    as_before = [each for each, pair in pairs.items() if each not in constant and pair[0] == pair[1]]
    changed = [each for each in names if each not in constant and each not in as_before]
    return ColumnView(
        name,
        " → ".join(kinds),
        status,
        [_fact(fact, old, new) for fact in _names(old, new) if fact not in _NOT_FACTS],
        [_measure(one, *pairs[one]) for one in room.first(changed)],
        [
            (label, _shares(old.get("shares", {}).get(label, {}), new.get("shares", {}).get(label, {})))
            for label in _names(old.get("shares"), new.get("shares"))
        ],
        _top(old.get("top", []), new.get("top", [])),
        [(each.replace("_", " "), number(value)) for each, value in constant.items()],
        [each.replace("_", " ") for each in as_before],
    )


def _constant(*measures: Mapping | None) -> float | None:
    """The value that all rows have, before and after; None where they differ."""
    ends = {each.get(end) for each in measures if each for end in ("min", "max")}
    return ends.pop() if len(ends) == 1 else None


def _names(first: Mapping | None, second: Mapping | None) -> list[str]:
    return list(dict.fromkeys([*(second or ()), *(first or ())]))


def _fact(name: str, old: Mapping, new: Mapping) -> Compared:
    label = _LABELS.get(name, name.replace("_", " "))
    return Compared(label, fact_text(old, name), fact_text(new, name))


def fact_text(column: Mapping, fact: str) -> str:
    """A fact of a column's profile: a share in percent, a count as it is, marked where it is an estimate."""
    value = column.get(fact)
    about = "≈ " if fact == "distinct" and column.get("distinct_is_exact") is False else ""
    if isinstance(value, float) and 0 <= value <= 1:
        return about + percent(value)
    return about + number(value)


def percent(share: float) -> str:
    """`12.5%`; small shares with the digits that tell them from none."""
    if 0 < share < 0.001:
        return "<0.1%"
    return f"{share * 100:.1f}".removesuffix(".0") + "%"


def number(value: object) -> str:
    """A number with thousands set apart; of others than whole ones three digits, or no decimals."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return "" if value is None else str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    if abs(value) >= 999.5:  # with three digits it would be 1e+03
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _shares(before: Mapping[str, float], after: Mapping[str, float]) -> list[Compared]:
    names = sorted(_names(before, after), key=lambda name: -max(before.get(name, 0), after.get(name, 0)))
    return [
        Compared(name, _share_text(before, name), _share_text(after, name)) for name in names[:_MAX_LABELS]
    ]


def _share_text(shares: Mapping[str, float], name: str) -> str:
    return percent(shares[name]) if name in shares else ("0%" if shares else "")


def _top(before: Sequence[Mapping], after: Sequence[Mapping]) -> list[Compared]:
    old = {str(each["value"]): each["count"] for each in before}
    new = {str(each["value"]): each["count"] for each in after}
    names = _names(dict(list(old.items())[:_MAX_TOP]), dict(list(new.items())[:_MAX_TOP]))
    return [Compared(name, number(old.get(name)), number(new.get(name))) for name in names]


def _measure(name: str, before: Mapping | None, after: Mapping | None) -> MeasureView:
    edges = [edge for one in (before, after) for edge in _edges(one)]
    low, high = (min(edges), max(edges)) if edges else (0.0, 0.0)
    peak = max((density for one in (before, after) for density in _densities(one)), default=0.0)
    return MeasureView(
        name.replace("_", " "),
        _bars("before", before, low, high, peak),
        _bars("after", after, low, high, peak),
        number(low),
        f"{number(high)} and more" if any(_goes_on(one) for one in (before, after)) else number(high),
    )


def _goes_on(measure: Mapping | None) -> bool:
    """Whether the last bin has values beyond its end."""
    edges = _edges(measure)
    return bool(measure and edges and measure.get("max", 0) > edges[-1])


def _edges(measure: Mapping | None) -> Sequence[float]:
    return ((measure or {}).get("histogram") or {}).get("edges") or []


def _densities(measure: Mapping | None) -> list[float]:
    """For each bin, the share of the values divided by its width, so that bins of any width compare."""
    histogram = (measure or {}).get("histogram") or {}
    edges, counts = histogram.get("edges") or [], histogram.get("counts") or []
    total = sum(counts) or 1
    return [count / total / ((edges[place + 1] - edges[place]) or 1.0) for place, count in enumerate(counts)]


def _bars(side: str, measure: Mapping | None, low: float, high: float, peak: float) -> Bars | None:
    if not measure:
        return None
    numbers = [
        (label, number(measure[key])) for key, label in _QUANTILES.items() if measure.get(key) is not None
    ]
    told = ", ".join(f"{label} {value}" for label, value in numbers)
    return Bars(_path(measure, low, high, peak), f"Histogram {side}: {told}", numbers)


def _path(measure: Mapping, low: float, high: float, peak: float) -> str:
    edges, span = _edges(measure), (high - low) or 1.0
    parts = []
    for place, density in enumerate(_densities(measure)):
        left = (edges[place] - low) / span * _WIDTH
        right = (edges[place + 1] - low) / span * _WIDTH if edges[place + 1] > edges[place] else left + 2
        if density > 0:
            top = _HEIGHT - max(1.0, density / (peak or 1.0) * _HEIGHT)
            parts.append(f"M{left:.1f} {_HEIGHT:g}V{top:.1f}H{max(right, left + 1):.1f}V{_HEIGHT:g}z")
    return "".join(parts)


def rows_of_measures(profile: Mapping | None) -> Iterable[tuple[str, str, Mapping]]:
    """Column, measure and its numbers, for a summary in words."""
    for name, column in ((profile or {}).get("columns") or {}).items():
        for measure, numbers in (column.get("measures") or {}).items():
            yield name, measure, numbers
