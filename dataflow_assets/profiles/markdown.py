"""A step's profile beside that of the step before, as Markdown for Dagster's UI."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from dataflow_assets.io.preview import markdown_cell
from dataflow_assets.profiles.numbers import shared_histograms
from dataflow_assets.profiles.pictures import as_markdown, histogram_png
from dataflow_assets.profiles.profile import Profile

_MOST_COLUMNS = 8
_QUANTILES = ("p05", "p50", "p95")
_PICTURED = ("chars", "tokens", "turns", "turn_tokens", "value")
Numbers = Mapping[str, float | int]


def numbers_of(profile: Profile) -> dict[str, float]:
    """What is worth a plot over the batches, of the column that has most text; nothing without one."""
    column = main_column(profile)
    if column is None:
        return {}
    found: dict[str, float] = {}
    for measure, name in (("chars", "chars_p50"), ("tokens", "tokens_p50")):
        if measure in profile.measures_of(column) and len(values := profile.measure(column, measure)):
            found[name] = float(np.median(values))
    for measure in ("special_share", "digit_share"):
        if measure in profile.measures_of(column) and len(values := profile.measure(column, measure)):
            found[measure] = round(float(values.mean()), 6)
    contents = profile.columns[column].contents
    if contents is not None and contents.duplicates is not None:
        found["duplicates"] = round(contents.duplicates, 6)
    return found


def main_column(profile: Profile) -> str | None:
    """The column that is profiled in depth and has most characters, or most tokens a turn."""

    def size(name: str) -> float:
        measures = profile.measures_of(name)
        for measure in ("tokens", "turn_tokens"):
            if measure in measures and len(values := profile.measure(name, measure)):
                return float(values.mean())
        return -1.0

    names = [name for name in profile.columns if size(name) >= 0]
    return max(names, key=size, default=None)


def profile_markdown(after: Profile, before: Profile | None = None) -> str:
    """A table for each column, quantiles of each measure and what else is known; pictures of lengths."""
    whole = len(after.sample.deep) >= after.rows
    seen = f"all {after.rows:,}" if whole else f"a sample of {len(after.sample.deep):,} of {after.rows:,}"
    parts = [f"Measured on {seen} rows. Grey and the left of an arrow: before the step."]
    shown = [name for name in after.columns if after.measures_of(name) or after.columns[name].top]
    for name in shown[:_MOST_COLUMNS]:
        parts += [f"**{markdown_cell(name)}**", *_column_parts(name, after, before)]
    if len(shown) > _MOST_COLUMNS:
        parts.append(f"{len(shown) - _MOST_COLUMNS} more columns are in the report.")
    return "\n\n".join(parts)


def _column_parts(name: str, after: Profile, before: Profile | None) -> Iterator[str]:
    earlier = before if before is not None and name in before.columns else None
    facts = list(_facts(name, after, earlier))
    if facts:
        yield "; ".join(facts)
    rows = list(_measure_rows(name, after, earlier))
    if rows:
        head = ["measure", "mean", *_QUANTILES]
        yield "\n".join(f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *rows])
    for measure in _PICTURED:
        if measure in after.measures_of(name) and len(after.measure(name, measure)):
            yield _picture(name, measure, after, earlier)


def _facts(name: str, after: Profile, before: Profile | None) -> Iterator[str]:
    column = after.columns[name]
    old = before.columns[name] if before is not None else None
    yield f"nulls {_change(column.nulls, old and old.nulls)}"
    for label, attribute in (("duplicates", "contents"), ("near-duplicates", "near")):
        contents = getattr(column, attribute)
        if contents is not None and contents.duplicates is not None:
            was = getattr(old, attribute, None)
            yield f"{label} {_change(contents.duplicates, was and was.duplicates)}"
    for label in column.sampled.labels:
        counts = after.labels(name, label)
        frequent = counts.most_common(4)
        shares = [f"{markdown_cell(value)} {count / counts.total():.1%}" for value, count in frequent]
        if shares:
            yield f"{label}: {', '.join(shares)}"
    if column.top_is_all and column.top:
        top = sorted(column.top.items(), key=lambda pair: -pair[1])[:6]
        yield ", ".join(f"{markdown_cell(value)} {count:,}" for value, count in top)


def _measure_rows(name: str, after: Profile, before: Profile | None) -> Iterator[Sequence[str]]:
    for measure in after.measures_of(name):
        values = after.measure(name, measure)
        if not len(values):
            continue
        old = before.measure(name, measure) if before and measure in before.measures_of(name) else None
        numbers = _numbers(values)
        earlier = _numbers(old) if old is not None and len(old) else {}
        yield [measure, *(_change(number, earlier.get(key)) for key, number in numbers.items())]


def _numbers(values: np.ndarray) -> Numbers:
    quantiles = np.quantile(values, [0.05, 0.5, 0.95], method="inverted_cdf").tolist()
    return {"mean": float(values.mean()), **dict(zip(_QUANTILES, quantiles, strict=True))}


def _change(now: float, before: float | None) -> str:
    shown = f"{now:,.4g}" if abs(now) < 1e5 else f"{now:,.0f}"
    if before is None:
        return shown
    was = f"{before:,.4g}" if abs(before) < 1e5 else f"{before:,.0f}"
    return shown if was == shown else f"{was} → {shown}"


def _picture(name: str, measure: str, after: Profile, before: Profile | None) -> str:
    values = after.measure(name, measure)
    old = before.measure(name, measure) if before and measure in before.measures_of(name) else None
    edges, counts, earlier = shared_histograms(values, old if old is not None and len(old) else None)
    picture = as_markdown(histogram_png(counts, earlier), f"histogram of {measure}")
    return f"{measure}, from {edges[0]:,.6g} to {edges[-1]:,.6g}\n\n{picture}"
