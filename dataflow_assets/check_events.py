"""What Dagster is told of a step's checks: their definitions, each evaluation, and what it has missed."""

from collections.abc import Iterator
from dataclasses import asdict

import dagster as dg
import pyarrow as pa
from dagster import DagsterInstance

from dataflow_assets.batch import arrow_schema
from dataflow_assets.checks import (
    CheckResult,
    FailedGate,
    broken_for_sure,
    check_results,
    measures_of,
    raise_if_failed,
    result_of_batch,
)
from dataflow_assets.expectations.judging import StepRules, is_looked_at
from dataflow_assets.io.batch_stream import Committed
from dataflow_assets.io.commit_record import CommitRecord
from dataflow_assets.io.preview import markdown_table
from dataflow_assets.mirror import asset_key
from dataflow_assets.pipeline import Step
from dataflow_assets.pipeline.expectations import ExpectSpec
from dataflow_assets.pipeline_work import PipelineWork

MAX_RETRIES_TAG = "dagster/max_retries"
_Metadata = dict[str, dg.MetadataValue]


def check_specs(step: Step, key: dg.AssetKey) -> list[dg.AssetCheckSpec]:
    """The checks of a step's asset."""
    return [
        dg.AssetCheckSpec(
            check.check_name,
            asset=key,
            blocking=check.blocking,
            description=" and ".join(f"`{name}` {bound:g}" for name, bound in check.limits.items())
            + (f" of `{check.column}`" if check.column else "")
            + (", for each batch" if check.each == "batch" else ", over all batches"),
        )
        for check in step.checks
    ] + [
        dg.AssetCheckSpec(rule.check_name, asset=key, blocking=rule.blocking, description=_rule_text(rule))
        for rule in step.expect
    ]


def _rule_text(rule: ExpectSpec) -> str:
    named = f"{rule.name}: " if rule.name else ""
    return f"{named}`{rule.that}`, over all batches"


class StepChecks:
    """The checks and rules of a step while it is made.

    Checks of each batch are judged at once, rules over the batches so far, and all at the end.
    """

    def __init__(self, work: PipelineWork, step: Step, run: dg.DagsterRun, instance: DagsterInstance) -> None:
        self._work, self._step, self._run, self._instance = work, step, run, instance
        self._key = asset_key(work.pipeline, step.name)
        self._of_batch = [check for check in step.checks if check.each == "batch"]
        self._measures = measures_of(work, step)
        self._results: list[CheckResult] = []
        self._rules, self._so_far = StepRules(work, step), list[CommitRecord]()
        self._batches = len(work.known_manifest().batches) if step.expect else 0
        self._told: set[str] = set()

    def committed(self, committed: Committed, report: bool) -> None:
        """Checks a committed batch, and reports it. Raises CheckFailed where a blocking check fails."""
        gates = []
        for check in self._of_batch:
            result = result_of_batch(check, committed.record, self._measures)
            if report:
                self._instance.report_runless_asset_event(evaluation(self._key, result, partition=True))
            if check.blocking and not result.passed:
                gates.append(FailedGate(self._step.name, result))
        if self._step.expect:
            self._so_far.append(committed.record)
            gates += self._broken_rules()
        if gates:
            self._forbid_retries()
        raise_if_failed(gates)

    def _broken_rules(self) -> list[FailedGate]:
        """The blocking rules that are broken for sure, with batches to come; each is told once, at once."""
        done = len(self._so_far)
        if done >= self._batches or not is_looked_at(done):
            return []
        broken = broken_for_sure(self._work, self._step, self._rules, self._so_far)
        for result in broken:
            if result.name not in self._told:
                self._instance.report_runless_asset_event(evaluation(self._key, result))
        self._told |= {result.name for result in broken}
        return [FailedGate(self._step.name, result) for result in broken if result.blocking]

    def finish(self) -> None:
        """Judges all batches of the step that are committed. Raises CorruptFile, StorageError."""
        self._results = check_results(self._work, self._step, save=True)

    def evaluations(self) -> Iterator[dg.AssetCheckResult]:
        """What the asset's body gives Dagster after its output."""
        if any(result.blocking and not result.passed for result in self._results):
            self._forbid_retries()
        for result in self._results:
            yield dg.AssetCheckResult(
                asset_key=self._key,
                check_name=result.name,
                passed=bool(result.passed),
                severity=_severity(result),
                metadata=_metadata(result),
                description=result.message or None,
            )

    def _forbid_retries(self) -> None:
        """A run that is launched again would find the same rows."""
        self._instance.add_run_tags(self._run.run_id, {MAX_RETRIES_TAG: "0"})


def evaluation(key: dg.AssetKey, result: CheckResult, partition: bool = False) -> dg.AssetCheckEvaluation:
    """The event of a result, with the batch as its partition where that is asked for."""
    return dg.AssetCheckEvaluation(
        asset_key=key,
        check_name=result.name,
        passed=bool(result.passed),
        severity=_severity(result),
        metadata=_metadata(result),
        blocking=result.blocking,
        partition=result.batch if partition else None,
        description=result.message or None,
    )


def report_checks(work: PipelineWork, instance: DagsterInstance) -> int:
    """Tells Dagster of every check that stands otherwise than it knows; gives how many there were.

    Such are those of another Dagster home, and those whose limit was changed: no batch is made again
    for it.
    """
    told = 0
    for step in work.pipeline.ordered_steps:
        for result in check_results(work, step, save=True):
            event = evaluation(asset_key(work.pipeline, step.name), result)
            if result.passed is not None and _known(instance, event) != (event.passed, event.metadata):
                instance.report_runless_asset_event(event)
                told += 1
    return told


def _known(
    instance: DagsterInstance, event: dg.AssetCheckEvaluation
) -> tuple[bool, dict[str, dg.MetadataValue]] | None:
    """Whether the newest evaluation passed, and its metadata; None where Dagster has none."""
    key = event.asset_check_key
    newest = instance.event_log_storage.get_latest_asset_check_execution_by_key([key]).get(key)
    if newest is None or newest.event is None or newest.event.dagster_event is None:
        return None
    if newest.event.dagster_event.event_type != dg.DagsterEventType.ASSET_CHECK_EVALUATION:
        return None
    known = newest.event.dagster_event.asset_check_evaluation_data
    return known.passed, dict(known.metadata)


def _severity(result: CheckResult) -> dg.AssetCheckSeverity:
    return dg.AssetCheckSeverity.ERROR if result.blocking else dg.AssetCheckSeverity.WARN


def _metadata(result: CheckResult) -> _Metadata:
    metadata: _Metadata = {
        **{name: dg.MetadataValue.float(bound) for name, bound in result.limit.items()},
        "batches": dg.MetadataValue.int(result.batches),
    }
    if result.value is not None:
        metadata["value"] = dg.MetadataValue.float(result.value)
    if result.batch is not None:
        metadata["batch"] = dg.MetadataValue.text(result.batch)
    if result.rule:
        metadata["rule"] = dg.MetadataValue.text(result.rule)
    if result.examples:
        rows = [asdict(example) for example in result.examples]
        table = pa.Table.from_pylist(rows, arrow_schema(dict.fromkeys(rows[0], "string")))
        metadata["examples"] = dg.MetadataValue.md(markdown_table(table))
    return metadata
