"""A step's profile beside that of the step before, as Markdown for Dagster's UI."""

from collections.abc import Iterator, Sequence

import numpy as np

from dataflow_assets.io.preview import markdown_cell
from dataflow_assets.profiles.numbers import quantiles, shared_histograms
from dataflow_assets.profiles.pictures import as_markdown, histogram_png
from dataflow_assets.profiles.profile import Profile

_MOST_COLUMNS = 8
_NONE = np.empty(0, np.float32)
_QUANTILES = ("p05", "p50", "p95")
_PICTURED = ("chars", "tokens", "turns", "turn_tokens", "value")


def numbers_of(profile: Profile) -> dict[str, float]:
    """What is worth a plot over the batches, of the column that has most text; nothing without one."""
    column = main_column(profile)
    if column is None:
        return {}
    found: dict[str, float] = {}
    for measure in ("chars", "tokens"):
        if (values := _values(profile, column, measure)) is not None:
            found[f"{measure}_p50"] = float(np.median(values))
    for measure in ("special_share", "digit_share"):
        if (values := _values(profile, column, measure)) is not None:
            found[measure] = round(float(values.mean()), 6)
    contents = profile.columns[column].contents
    if contents is not None and contents.duplicates is not None:
        found["duplicates"] = round(contents.duplicates, 6)
    return found


def _values(profile: Profile | None, column: str, measure: str) -> np.ndarray | None:
    """The values of a measure, None where there is not one."""
    if profile is None or column not in profile.columns or measure not in profile.measures_of(column):
        return None
    values = profile.measure(column, measure)
    return values if len(values) else None


def main_column(profile: Profile) -> str | None:
    """The column that is profiled in depth and has most tokens, or most tokens a turn, in the mean."""
    sizes: dict[str, float] = {}
    for name in profile.columns:
        for measure in ("tokens", "turn_tokens") if profile.is_shown_in_depth(name) else ():
            values = profile.columns[name].sampled.deep.get(measure, _NONE)
            values = values[~np.isnan(values)]
            if len(values):
                sizes[name] = float(values.mean(dtype=np.float64))
    return max(sizes, key=sizes.__getitem__, default=None)


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
    yield "; ".join(_facts(name, after, before))
    rows = list(_measure_rows(name, after, before))
    if rows:
        head = ["measure", "mean", *_QUANTILES, "rows"]
        yield "\n".join(f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *rows])
    for measure in _PICTURED:
        if (values := _values(after, name, measure)) is not None:
            yield _picture(measure, values, _values(before, name, measure))


def _facts(name: str, after: Profile, before: Profile | None) -> Iterator[str]:
    column = after.columns[name]
    old = None if before is None else before.columns.get(name)
    yield f"nulls {_change(column.nulls, old and old.nulls)}"
    for label, attribute in (("duplicates", "contents"), ("near-duplicates", "near")):
        contents = getattr(column, attribute)
        if attribute == "near" and not after.is_shown_in_depth(name):
            continue
        if contents is not None and contents.duplicates is not None:
            was = getattr(old, attribute, None)
            yield f"{label} {_change(contents.duplicates, was and was.duplicates)}"
    for label in after.labels_of(name):
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
        if (values := _values(after, name, measure)) is not None:
            old = _values(before, name, measure)
            earlier = {} if old is None else _numbers(old)
            changes = (_change(number, earlier.get(key)) for key, number in _numbers(values).items())
            yield [measure, *changes, f"{len(values):,}"]


def _numbers(values: np.ndarray) -> dict[str, float]:
    return {"mean": float(values.mean()), **quantiles(values, _QUANTILES)}


def _change(now: float, before: float | None) -> str:
    shown = _shown(now)
    if before is None or _shown(before) == shown:
        return shown
    return f"{_shown(before)} → {shown}"


def _shown(number: float) -> str:
    return f"{number:,.4g}" if abs(number) < 1e5 else f"{number:,.0f}"


def _picture(measure: str, values: np.ndarray, before: np.ndarray | None) -> str:
    edges, counts, earlier = shared_histograms(values, before)
    picture = as_markdown(histogram_png(counts, earlier), f"histogram of {measure}")
    return f"{measure}, from {edges[0]:,.6g} to {edges[-1]:,.6g}\n\n{picture}"
