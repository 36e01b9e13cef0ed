"""What is found of a value: how large it is, of how many rows, and between which bounds it may be."""

import math
from dataclasses import dataclass
from functools import singledispatch

import numpy as np

from dataflow_assets.expectations.bounds import RISK, deviations, quantile_bounds, share_bounds
from dataflow_assets.expectations.drift import (
    Bins,
    Distance,
    as_kept,
    jensen_shannon,
    population_stability,
    value_counts,
)
from dataflow_assets.expectations.evidence import Evidence
from dataflow_assets.expectations.references import check_has
from dataflow_assets.expectations.targets import VALUE, Target
from dataflow_assets.io.commit_record import CommitRecord
from dataflow_assets.pipeline.rule_grammar import (
    Conflicts,
    Count,
    Drift,
    File,
    OfColumn,
    Rule,
    ShareOf,
    StatOf,
    Value,
    compare,
)
from dataflow_assets.profiles.making import short_value
from dataflow_assets.profiles.numbers import QUANTILES, quantile
from dataflow_assets.profiles.profile import pair_name
from dataflow_assets.profiles.sampling import Contents

ENOUGH = 100
_UNCOUNTED = 0.01
_FLOAT32_ROUNDING = float(np.finfo(np.float32).eps) / 2


@dataclass(frozen=True)
class Finding:
    """A value, None where there was nothing to measure, of so many rows or values.

    `low` and `high` are between which the value of all rows is, if the rows to come are like those seen;
    infinite where nobody can say. A value that is `sampled` is of a part of the rows. `cases` are those
    that a share counts; of a statistic, those outside the limit. With `steady` a bound needs no number
    of rows: more rows do not take it back.
    """

    value: float | None
    rows: int = 0
    low: float = -math.inf
    high: float = math.inf
    sampled: bool = False
    cases: int | None = None
    steady: bool = False
    distance: Distance | None = None

    def surely_breaks(self, rule: Rule) -> bool:
        """Whether even the bounds are outside the limit."""
        if self.value is None or not (self.steady or self.rows >= ENOUGH):
            return False
        above, below = self.low > rule.limit, self.high < rule.limit
        if rule.op == "=":
            return above or below
        if rule.op in ("<=", ">="):
            return above if rule.op == "<=" else below
        return self.low >= rule.limit if rule.op == "<" else self.high <= rule.limit


NOTHING = Finding(None)


def finding(rule: Rule, target: Target | None, evidence: Evidence, risk: float = RISK) -> Finding:
    """What is found of the value. Raises ConfigError for a bad reference, CorruptFile, StorageError."""
    return _found(rule.value, rule, target, evidence, risk)


@singledispatch
def _found(value: Value, rule: Rule, target: Target | None, evidence: Evidence, risk: float) -> Finding:
    raise NotImplementedError(value)


@_found.register
def _(value: Count, rule: Rule, target: None, evidence: Evidence, risk: float) -> Finding:
    records = evidence.records
    if value.of == "rows":
        made = sum(record.rows_out for record in records)
        return Finding(made, made, low=made, steady=True)
    cases = sum(rows_of_kind(value, record) for record in records)
    return share(cases, sum(record.rows_in for record in records), risk)


def rows_of_kind(value: Count, record: CommitRecord) -> int:
    """The rows of a batch that were kept, rejected, for this reason or any, or failed."""
    rejected, failed = sum(record.rejected.values()), sum(record.failed.values())
    if value.of == "kept":
        return record.rows_in - rejected - failed
    if value.of == "failed":
        return failed
    return rejected if value.reason is None else record.rejected.get(value.reason, 0)


def share(cases: int, rows: int, risk: float, sampled: bool = False) -> Finding:
    """The share of so many cases."""
    if not rows:
        return NOTHING
    low, high = share_bounds(cases, rows, risk)
    return Finding(cases / rows, rows, low, high, sampled, cases)


@_found.register
def _(value: OfColumn, rule: Rule, target: Target, evidence: Evidence, risk: float) -> Finding:
    profile = evidence.profile
    column = profile.columns.get(target.column)
    if column is None:
        return NOTHING
    if value.what == "null":
        return share(column.nulls, profile.rows, risk)
    if value.what == "boilerplate":
        found, texts = profile.boilerplate(target.column), len(profile.pieces(target.column))
        return NOTHING if found is None else share(round(found * texts), texts, risk, profile.rates.deep < 1)
    if value.what == "distinct":
        return _distinct(len(column.top)) if column.kind == "bool" else _distinct_of(column.contents, risk)
    contents = column.near if value.what == "near_duplicates" else column.contents
    return NOTHING if contents is None else _repeats(contents, risk)


def _distinct(count: int) -> Finding:
    return Finding(count, count, low=count, steady=True)


def _distinct_of(contents: Contents | None, risk: float) -> Finding:
    if contents is None:
        return NOTHING
    margin = deviations(risk) * math.sqrt(len(contents.hashes) * (1 - contents.rate)) / contents.rate
    sampled = contents.rate < 1
    return Finding(
        contents.distinct,
        int(contents.counts.sum()),
        low=contents.distinct - margin,
        sampled=sampled,
        steady=not sampled,
    )


def _repeats(contents: Contents, risk: float) -> Finding:
    """The share of values that repeat an earlier one."""
    return _of_groups(contents.counts - 1, contents.counts, contents.rate, risk)


def _of_groups(cases: np.ndarray, sizes: np.ndarray, rate: float, risk: float) -> Finding:
    """The share of cases in groups of rows that are there, or sampled, as a whole: a ratio of two sums."""
    rows = int(sizes.sum())
    if not rows:
        return NOTHING
    found = int(cases.sum())
    value = found / rows
    margin = deviations(risk) * math.sqrt(np.sum((cases - value * sizes) ** 2)) / rows
    low = max(value - margin, math.ulp(0.0) if found else 0.0)
    return Finding(value, rows, low, min(1.0, value + margin), rate < 1, found)


@_found.register
def _(value: StatOf, rule: Rule, target: Target, evidence: Evidence, risk: float) -> Finding:
    values, is_sample = _numbers(evidence, target)
    if not len(values):
        return NOTHING
    outside = int(np.count_nonzero(~compared(values, target, rule.op, rule.limit)))
    sums = evidence.profile.columns[target.column].sums if target.measure == VALUE else None
    if value.stat in QUANTILES:
        level = QUANTILES[value.stat]
        ends = quantile(values, level), *quantile_bounds(values, level, risk)
        found, low, high = (_or_limit(end, target, rule.limit) for end in ends)
        return Finding(found, len(values), low, high, is_sample, outside)
    if sums is not None and sums.numbers and sums.smallest is not None and sums.largest is not None:
        exact = {"mean": sums.mean, "min": sums.smallest, "max": sums.largest}[value.stat]
        rows, is_sample = sums.numbers, False
    else:
        measured = {"mean": values.mean, "min": values.min, "max": values.max}[value.stat]()
        exact = _or_limit(float(measured), target, rule.limit)
        rows = len(values)
    found = float(exact)
    low = found if value.stat == "max" else -math.inf
    high = found if value.stat == "min" else math.inf
    cases = None if sums is not None and len(values) < rows else outside
    return Finding(found, rows, low, high, is_sample, cases, steady=value.stat != "mean")


def _numbers(evidence: Evidence, target: Target) -> tuple[np.ndarray, bool]:
    """The values of a measure, and whether they are of a part of the rows."""
    profile = evidence.profile
    try:
        values = profile.measure(target.column, target.measure)
    except KeyError:
        return np.empty(0), False
    is_cheap = target.measure in profile.columns[target.column].sampled.cheap
    return values, (profile.rates.cheap if is_cheap else profile.rates.deep) < 1


def compared(values: np.ndarray, target: Target, op: str, limit: float) -> np.ndarray:
    """`compare` of many values of the target."""
    near = _is_limit(values, target, limit)
    if op in ("<=", ">=", "="):
        return near | {"<=": values <= limit, ">=": values >= limit, "=": near}[op]
    return ~near & ((values < limit) if op == "<" else (values > limit))


def _or_limit(number: float, target: Target, limit: float) -> float:
    """The limit itself where a 32-bit float of it was found."""
    return limit if _is_limit(np.array(number), target, limit) else number


def _is_limit(values: np.ndarray, target: Target, limit: float) -> np.ndarray:
    """Whether each value is the limit: measures of texts are kept as 32-bit floats, numbers as they are."""
    rounding = 0.0 if target.measure == VALUE else _FLOAT32_ROUNDING
    return np.abs(values.astype(np.float64) - limit) <= rounding * abs(limit)


@_found.register
def _(value: ShareOf, rule: Rule, target: Target, evidence: Evidence, risk: float) -> Finding:
    profile = evidence.profile
    if isinstance(value.operand, str):
        if target.kind == "value":
            return _share_of_value(value.operand, target, evidence, risk)
        try:
            labels = profile.labels(target.column, target.measure)
        except KeyError:
            return NOTHING
        return share(labels[value.operand], labels.total(), risk, profile.rates.deep < 1)
    values, is_sample = _numbers(evidence, target)
    cases = int(np.count_nonzero(compared(values, target, value.op, value.operand)))
    return share(cases, len(values), risk, is_sample)


def _share_of_value(wanted: str, target: Target, evidence: Evidence, risk: float) -> Finding:
    """Of all values that are there; of many different ones the rare are not counted, so it may be more."""
    profile = evidence.profile
    column = profile.columns.get(target.column)
    if column is None:
        return NOTHING
    found = share(column.top.get(short_value(wanted), 0), profile.rows - column.nulls, risk)
    if found.value is None or column.top_is_all:
        return found
    return Finding(found.value, found.rows, found.low, min(1.0, found.high + _UNCOUNTED), cases=found.cases)


@_found.register
def _(value: Conflicts, rule: Rule, target: None, evidence: Evidence, risk: float) -> Finding:
    joint = evidence.profile.pairs.get(pair_name(value.inputs, value.label))
    if joint is None:
        return NOTHING
    rows = joint.inputs.counts
    return _of_groups(np.where(joint.conflicting, rows, 0), rows, joint.inputs.rate, risk)


@_found.register
def _(value: Drift, rule: Rule, target: Target, evidence: Evidence, risk: float) -> Finding:
    """Nothing where there is no reference yet, or it has nothing of the kind."""
    reference = evidence.reference(value.reference) or {"columns": {}}
    if isinstance(value.reference, File):
        check_has(reference, value.reference.name, target)
    before = reference["columns"].get(target.column)
    column = evidence.profile.columns.get(target.column)
    if before is None or column is None:
        return NOTHING
    if value.distance == "psi":
        values, is_sample = _numbers(evidence, target)
        bins = before["numbers"].get(target.measure)
        if bins is None or not len(values):
            return NOTHING
        distance = population_stability(Bins(bins["edges"], bins["counts"]), as_kept(reference, values))
    else:
        is_label = target.kind == "label"
        is_sample = is_label and evidence.profile.rates.deep < 1
        if is_label and target.measure not in column.sampled.labels:
            return NOTHING
        now = (
            evidence.profile.labels(target.column, target.measure)
            if is_label
            else value_counts(evidence.profile.rows, column)
        )
        then = before["labels"].get(target.measure) if is_label else before.get("values")
        if not then or not sum(now.values()):
            return NOTHING
        distance = jensen_shannon(then, now)
    return Finding(distance.value, distance.seen, sampled=is_sample, distance=distance)


def passes(rule: Rule, found: Finding, has_rows: bool) -> bool:
    """Whether the rule is kept.

    Without rows all are but one of their number. Rows of which nothing can be measured break a statistic
    and a share; a distance that chance gives, too, breaks nothing.
    """
    if found.value is None:
        return not (has_rows and isinstance(rule.value, StatOf | ShareOf))
    is_exact = isinstance(rule.value, StatOf) and rule.value.stat != "mean"
    if compare(found.value, rule.op, rule.limit, is_exact):
        return True
    return found.distance is not None and found.value <= found.distance.by_chance
