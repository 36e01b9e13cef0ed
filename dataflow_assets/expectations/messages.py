"""What is said of a rule: expected, actual, share, the size of the sample, and rows that show it."""

import math
from collections.abc import Sequence

from dataflow_assets.expectations.drift import Distance
from dataflow_assets.expectations.examples import ExampleRow
from dataflow_assets.expectations.findings import Finding
from dataflow_assets.pipeline.problems import printable
from dataflow_assets.pipeline.rule_grammar import Conflicts, Count, OfColumn, Rule, ShareOf, StatOf

_LARGE, _LARGEST_WHOLE = 1e4, 2.0**53
_OPPOSITE = {"<=": ">", ">=": "<", "<": ">=", ">": "<=", "=": "other than"}


def message_of(
    rule: Rule,
    name: str | None,
    found: Finding,
    examples: Sequence[ExampleRow],
    so_far: str | None = None,
) -> str:
    """`Turns: expected tokens.p95 <= 30, found 57: 38% of 1,000 rows are > 30; e.g. b0003 r7 (91) “…”`."""
    begin = f"{printable(name)}: " if name else ""
    shown = "nothing to measure" if found.value is None else f"found {number_text(found.value)}"
    parts = [f"{begin}expected {printable(str(rule))}, {shown}{_detail(rule, found)}"]
    if so_far is not None:
        parts.append(so_far)
    if examples:
        parts.append(f"e.g. {', '.join(map(str, examples))}")
    return "; ".join(parts)


def number_text(number: float) -> str:
    """Up to four figures; of large numbers all before the point, up to the largest that are whole."""
    if abs(number) >= _LARGEST_WHOLE:
        return f"{number:.4g}"
    if float(number).is_integer():
        return f"{number:,.0f}"
    return f"{number:.4g}" if abs(number) < _LARGE else f"{number:,.1f}"


def percent(share: float) -> str:
    """`38%`, `0.5%`."""
    return f"{100 * share:.3g}%"


def _detail(rule: Rule, found: Finding) -> str:
    if found.value is None:
        return ""
    if found.distance is not None:
        return _of_distance(found.distance, found.sampled)
    of = f"{found.rows:,} {'sampled ' if found.sampled else ''}{_unit(rule)}"
    if isinstance(rule.value, StatOf):
        if found.cases is not None:
            opposite = f"{_OPPOSITE[rule.op]} {number_text(rule.limit)}"
            return f"{_margin(found)}: {percent(found.cases / found.rows)} of {of} are {opposite}"
        return f" in {of}{_margin(found)}"
    if found.cases is not None:
        return f": {found.cases:,} of {of}{_margin(found)}"
    return f" in {of}{_margin(found)}" if isinstance(rule.value, OfColumn) and found.sampled else ""


def _unit(rule: Rule) -> str:
    value = rule.value
    if isinstance(value, Count):
        return "rows that came in"
    if isinstance(value, OfColumn) and value.what in ("duplicates", "near_duplicates", "distinct"):
        return "values"
    return "rows" if isinstance(value, Conflicts | ShareOf | StatOf | OfColumn) else "values"


def _margin(found: Finding) -> str:
    """How far the value of all rows may be from that of the sample, at 99.9%."""
    if not found.sampled:
        return ""
    if math.isinf(found.low) and math.isinf(found.high):
        return ""
    low = number_text(found.low) if math.isfinite(found.low) else "…"
    high = number_text(found.high) if math.isfinite(found.high) else "…"
    return f" (of all rows {low} to {high} at 99.9%)"


def _of_distance(distance: Distance, is_sample: bool) -> str:
    grown = f", {printable(distance.grown)!r} grew most" if isinstance(distance.grown, str) else ""
    sampled = "sampled " if is_sample else ""
    return (
        f" between {distance.seen:,} {sampled}values and {distance.seen_before:,} of the reference{grown} "
        f"(by chance up to {number_text(distance.by_chance)} at 99.9%)"
    )
