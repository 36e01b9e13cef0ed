"""How the checks and rules of a step stand: judged from its commit records, profiles and stored rows.

So all who ask are told the same.
"""

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from dataflow_assets.errors import CheckFailed
from dataflow_assets.expectations.examples import ExampleRow
from dataflow_assets.expectations.judging import Judgement, StepRules
from dataflow_assets.io.commit_record import CommitRecord
from dataflow_assets.io.measures import Kind, Measure, Measures, Wanted
from dataflow_assets.pipeline import Pipeline, Step
from dataflow_assets.pipeline.checks import CheckSpec, Rule
from dataflow_assets.pipeline.expectations import ExpectSpec
from dataflow_assets.pipeline_work import SOURCE, PipelineWork

_KINDS: dict[Rule, Kind] = {"null_rate": "nulls", "mean": "sum", "duplicate_share": "repeats"}


@dataclass(frozen=True)
class CheckResult:
    """How a check stands over the committed `batches` of its step; one of each batch shows its worst one.

    `passed` is None where no batch is committed, `value` where there was nothing to measure: no rows
    came in, or none has a value. `limit` is by the names of the fields in the pipeline. `batch` is the
    batch with the `value` of a check of each batch. A rule of `expect` has its text as `rule`, what is to
    be said of it, and rows that show why it is broken.
    """

    name: str
    passed: bool | None
    value: float | None
    limit: dict[str, float]
    blocking: bool
    batches: int
    batch: str | None = None
    rule: str = ""
    message: str = ""
    examples: list[ExampleRow] = field(default_factory=list)

    @property
    def limit_text(self) -> str:
        """`min_mean 5, max_mean 9`, or the rule."""
        return self.rule or ", ".join(f"{name} {bound:g}" for name, bound in self.limit.items())

    @property
    def value_text(self) -> str:
        """The value, or why there is none."""
        return "nothing to measure" if self.value is None else f"{self.value:.6g}"


@dataclass(frozen=True)
class FailedGate:
    """A blocking check that failed, and its step."""

    step: str
    result: CheckResult

    def __str__(self) -> str:
        found, many = self.result, self.result.batches != 1
        if found.rule:
            return f"step {self.step!r}: rule {found.name!r} is broken: {found.message}; {_held('expect')}"
        over = f"batch {found.batch!r}" if found.batch else f"{found.batches} batch{'es' if many else ''}"
        return (
            f"step {self.step!r}: blocking check {found.name!r} failed: {found.value_text} in {over}, "
            f"expected {found.limit_text}; {_held('checks')}"
        )


def _held(field: str) -> str:
    return (
        "nothing that depends on the step is made, what was committed stays. Change the step or its input, "
        "do failed rows again with `dataflow-assets retry-failed`, or change the limit under "
        f"`{field}`, then run again"
    )


def check_results(work: PipelineWork, step: Step, save: bool = False) -> list[CheckResult]:
    """All checks of a step, over its committed batches. Raises CorruptFile, StorageError.

    With `save` what was measured is stored, for whoever asks next; only for who holds the lock.
    """
    if not step.checks and not step.expect:
        return []
    measures, rules = measures_of(work, step), StepRules(work, step)
    records = _records(work, step)
    results = [_result(check, records, measures) for check in step.checks]
    results += _results_of_rules(work, step, rules, records)
    if save:
        if step.checks:
            measures.save()
        if step.expect:
            rules.save()
    return results


def _results_of_rules(
    work: PipelineWork, step: Step, rules: StepRules, records: Sequence[CommitRecord]
) -> list[CheckResult]:
    judged = rules.results(records, _batches(work)) if step.expect else []
    if not judged:
        return [result_of_rule(spec, None, 0) for spec in step.expect]
    return [result_of_rule(spec, each, len(records)) for spec, each in zip(step.expect, judged, strict=True)]


def result_of_rule(spec: ExpectSpec, judged: Judgement | None, batches: int) -> CheckResult:
    """How a rule stands over so many batches.

    One that is an error, and broken so far but not for sure, blocks nothing yet.
    """
    limit = {spec.rule.op: spec.rule.limit}
    if judged is None:
        return CheckResult(spec.check_name, None, None, limit, spec.blocking, batches, rule=str(spec.rule))
    return CheckResult(
        spec.check_name,
        judged.passed,
        judged.value,
        limit,
        spec.blocking and (judged.passed or judged.is_sure),
        batches,
        rule=str(spec.rule),
        message=judged.message,
        examples=judged.examples,
    )


def _batches(work: PipelineWork) -> int:
    manifest = work.manifest()
    return len(manifest.batches) if manifest else 0


def measures_of(work: PipelineWork, step: Step) -> Measures:
    """The measures that the checks of a step need."""
    return Measures(work.folder_of(step.name), {wanted for check in step.checks for wanted in _wanted(check)})


def result_of_batch(check: CheckSpec, record: CommitRecord, measures: Measures) -> CheckResult:
    """How a check stands for one batch. Raises CorruptFile, StorageError."""
    return _result(check, [record], measures)


def failed_gates(work: PipelineWork, step: Step, dirty: Collection[str]) -> list[FailedGate]:
    """The blocking checks of a step that fail whatever is made now; batches in `dirty` are made again.

    A check over all batches fails only where none is dirty, a rule also where it is broken for sure.
    Raises CorruptFile, StorageError.
    """
    if not step.is_gate:
        return []
    records = [record for record in _records(work, step) if record.batch not in dirty]
    blocking = [check for check in step.checks if check.blocking and (check.each == "batch" or not dirty)]
    measures = measures_of(work, step)
    results = [_result(check, records, measures) for check in blocking]
    if step.expect:
        rules = StepRules(work, step)
        judge = broken_for_sure if dirty else _results_of_rules
        results += [result for result in judge(work, step, rules, records) if result.blocking]
    return [FailedGate(step.name, result) for result in results if result.passed is False]


def broken_for_sure(
    work: PipelineWork, step: Step, rules: StepRules, records: Sequence[CommitRecord]
) -> list[CheckResult]:
    """The rules that these batches break, whatever the others hold."""
    found = rules.broken_for_sure(records, _batches(work))
    return [result_of_rule(spec, judged, len(records)) for spec, judged in found]


def raise_if_failed(gates: Iterable[FailedGate]) -> None:
    """Raises CheckFailed with a line for each."""
    lines = [str(gate) for gate in gates]
    if lines:
        raise CheckFailed("\n".join(lines))


def raise_if_held(work: PipelineWork, step: Step) -> None:
    """Raises CheckFailed where a blocking check of a step that this one depends on fails."""
    above = with_all_above(work.pipeline, [step.name]) - {step.name}
    for earlier in work.pipeline.ordered_steps:
        if earlier.name in above:
            raise_if_failed(failed_gates(work, earlier, ()))


def with_all_above(pipeline: Pipeline, steps: Iterable[str]) -> set[str]:
    """The names of these steps, and of all that they depend on."""
    found, waiting = {SOURCE}, list(steps)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += pipeline.parents(name)
    return found - {SOURCE}


def _records(work: PipelineWork, step: Step) -> list[CommitRecord]:
    manifest = work.manifest()
    records = map(work.folder_of(step.name).record, manifest.batches if manifest else ())
    return [record for record in records if record is not None]


def _wanted(check: CheckSpec) -> list[Wanted]:
    """What is measured of each batch; the repeats over all batches are more than those of each."""
    over_all = check.rule == "duplicate_share" and check.each == "step"
    return [] if check.column is None or over_all else [Wanted(_KINDS[check.rule], check.column)]


def _result(check: CheckSpec, records: Sequence[CommitRecord], measures: Measures) -> CheckResult:
    groups = [records] if check.each == "step" else [[record] for record in records]
    if not records:
        return CheckResult(check.check_name, None, None, check.limits, check.blocking, 0)
    judged = [_judged(check, group, measures) for group in groups]
    worst = min(range(len(judged)), key=lambda place: judged[place][0])
    margin, value = judged[worst]
    batch = records[worst].batch if check.each == "batch" else None
    return CheckResult(
        check.check_name, margin >= 0, value, check.limits, check.blocking, len(records), batch
    )


def _judged(
    check: CheckSpec, records: Sequence[CommitRecord], measures: Measures
) -> tuple[float, float | None]:
    """How far within its limits the value is, and the value.

    No rows pass every check; rows without one number do not pass a check of their mean.
    """
    measure = _measured(check, records, measures)
    if measure.whole:
        value = measure.part / measure.whole
        return check.margin(value), value
    has_rows = any(record.rows_out for record in records)
    return (-math.inf if check.rule == "mean" and has_rows else math.inf), None


def _measured(check: CheckSpec, records: Sequence[CommitRecord], measures: Measures) -> Measure:
    if check.column is None:
        dropped = [_dropped(check.rule, record) for record in records]
        rows_in = sum(record.rows_in for record in records)
        return Measure(sum(dropped) if check.rule == "failed_share" else rows_in - sum(dropped), rows_in)
    if not (wanted := _wanted(check)):
        return measures.repeats_over(check.column, records)
    parts = [measures.of_batch(wanted[0], record) for record in records]
    return Measure(math.fsum(each.part for each in parts), sum(each.whole for each in parts))


def _dropped(rule: Rule, record: CommitRecord) -> int:
    failed = sum(record.failed.values())
    return failed if rule == "failed_share" else failed + sum(record.rejected.values())
