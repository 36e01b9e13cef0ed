"""The IO manager: commits each batch as it is pulled, tells Dagster at once, and reads batches back."""

import contextlib
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg
import pyarrow as pa
from pydantic import field_validator

from dataflow_assets.batch import Batch
from dataflow_assets.control import held_signals, look_again, pipeline_lock
from dataflow_assets.errors import ConfigError, Stopped
from dataflow_assets.io.any_table import table_from
from dataflow_assets.io.asset_columns import NO_COLUMNS, AssetColumns
from dataflow_assets.io.batch_stream import BatchStream, Committable, Committed, Handed, Work
from dataflow_assets.io.events import (
    BACKFILL_TAG,
    CODE_VERSION_TAG,
    DEFER_EVENTS_TAG,
    SUMMARY,
    Metadata,
    batch_event,
    batch_metadata,
    count_metadata,
    earlier_metadata,
    operator_counts,
    rejected_metadata,
    sample_metadata,
    usage_metadata,
)
from dataflow_assets.io.formats import EXTENSIONS, Format
from dataflow_assets.io.layout import MANIFEST
from dataflow_assets.io.lineage import Lineage, Parents
from dataflow_assets.io.names import inside, key_to_name
from dataflow_assets.io.objects.places import local_folder, place_of
from dataflow_assets.io.step_folder import Origin, StepFolder
from dataflow_assets.operators.operator import Outcome
from dataflow_assets.pipeline.columns import source_meanings
from dataflow_assets.pipeline_work import SOURCE, PipelineWork
from dataflow_assets.plugins.dagster_runs import end_run, told_in_run
from dataflow_assets.profiles import step_summary
from dataflow_assets.progress import BatchDone, StepBegun, tell, tell_step
from dataflow_assets.running_task import RunningTask, running_task
from dataflow_assets.sources.manifest import Manifest
from dataflow_assets.task_state import TaskStore

if TYPE_CHECKING:
    import pandas as pd

    from dataflow_assets.check_events import StepChecks

FOLDER_METADATA = "dataflow/folder"
FORMAT_METADATA = "dataflow/format"
ONLY_NEW_TAG = "dataflow/only_new_events"
# Tags of a run that brings a pipeline up to date: batches that it leaves as they are get no event.
# Dagster must not announce them either: if the run failed, they would count as failed.
UP_TO_DATE_TAGS = {ONLY_NEW_TAG: "true", DEFER_EVENTS_TAG: "true"}
_NO_PARTITION = "all"


@dataclass(frozen=True)
class StepOutput:
    """What an asset of a pipeline hands to the IO manager.

    A `partitioned` output has an event a batch; any other has one event with the sums. `checks` are
    told of each batch, and at the end. `columns` says what its columns mean.
    """

    work: Committable
    pipeline: PipelineWork
    parents: Parents
    partitioned: bool
    checks: "StepChecks | None" = None
    columns: AssetColumns = NO_COLUMNS


@dataclass(frozen=True)
class StoredBatches:
    """The committed batches of an asset, read when asked for."""

    folder: StepFolder
    keys: Sequence[str]

    def __iter__(self) -> Iterator[Batch]:
        """The batches in partition order, one in memory at a time. Raises MissingBatch, CorruptFile."""
        for key, table in zip(self.keys, self.folder.read_each(self.keys), strict=True):
            yield Batch(key, table)

    def read(self, key: str) -> pa.Table:
        """The rows of one batch. Raises MissingBatch, CorruptFile."""
        table = self.folder.read(key)
        assert table is not None
        return table

    def table(self) -> pa.Table:
        """All rows at once."""
        return pa.concat_tables([batch.table for batch in self], promote_options="permissive")


class StepFilesIOManager(dg.ConfigurableIOManager):
    """Stores every partition as a committed file.

    Assets of pipelines hand over a `StepOutput`. An asset of your own may return a
    `pyarrow.Table`, a pandas DataFrame or a list of dicts; a run over several partitions returns a
    dict of partition key to one of these, and one over a single partition may do so. It is stored under
    `<root>/<asset key>/<partition>.<ext>` with a commit record, and read back as what the parameter is
    annotated with: `pyarrow.Table`, `pandas.DataFrame`, `StoredBatches` (lazy), or without annotation
    a table.
    """

    root: str = "dataflow_data"
    format: str = "jsonl"
    allow_pickle: bool = False

    @field_validator("format")
    @classmethod
    def _is_known(cls, name: str) -> str:
        if name not in EXTENSIONS:
            raise ValueError(f"format {name!r} is unknown; expected one of {', '.join(EXTENSIONS)}")
        return name

    def teardown_after_execution(self, context: dg.InitResourceContext) -> None:
        """Ends what plugins are told of the run."""
        end_run(context.run_id, context.instance)

    def handle_output(self, context: dg.OutputContext, obj: object) -> None:
        """Commits batch by batch. Raises the errors of `dataflow_assets.errors`."""
        if obj is None:
            return
        if isinstance(obj, StepOutput):
            self._commit_step(context, obj)
        else:
            self._commit_tables(context, obj)

    def _commit_step(self, context: dg.OutputContext, output: StepOutput) -> None:
        only_new = ONLY_NEW_TAG in context.step_context.dagster_run.tags
        _write_all_events_here(context)
        lineage = Lineage(context.step_context.instance, output.parents)
        asset = context.asset_key.path[-1]
        totals = Totals(shows_rows=asset == SOURCE)
        last = output.work.keys[-1] if isinstance(output.work, BatchStream) and output.work.keys else None
        with _task(context, output) as task, _closed(output.work.commit_all(task.stop)) as batches:
            for committed in batches:
                totals.add(committed)
                if not committed.again:
                    task.committed(committed.record.batch)
                    task.told.committed(committed.record, committed.reused)
                    tell(BatchDone(asset, committed.record, committed.reused))
                report = output.partitioned and not (only_new and committed.reused)
                if report:
                    more = summary_metadata(output.pipeline, asset) if committed.record.batch == last else {}
                    context.log_event(_event(context, output, committed, lineage, more))
                if output.checks is not None:
                    output.checks.committed(committed, report)
            if output.checks is not None:
                output.checks.finish()
        if not output.partitioned:
            tags = {**_code_version_tags(context), **lineage.tags_of_whole(), **_backfill_tags(context)}
            context.log_event(
                dg.AssetMaterialization(
                    context.asset_key,
                    metadata={**totals.metadata(), **summary_metadata(output.pipeline, asset)},
                    tags=tags,
                )
            )

    def _commit_tables(self, context: dg.OutputContext, obj: object) -> None:
        folder = self._folder(context.asset_key)
        keys = _keys(context)
        for key in keys:
            key_to_name(key)
        tables = _by_partition(obj, keys)
        missing = [key for key in keys if key not in tables]
        if missing:
            found = f"nothing for partition {missing[0]!r}" if isinstance(obj, dict) else type(obj).__name__
            raise ConfigError(
                f"asset {context.asset_key.to_user_string()} returned {found}; expected for the {len(keys)} "
                "partitions of this run a dict of partition key to table"
            )

        def compute(key: str, fingerprint: str, handed: Handed) -> Work:
            table = table_from(tables[key])
            return Work(Outcome(table), Origin("asset", "1", "", fingerprint, table.num_rows, {}, 0.0))

        name = context.asset_key.path[-1]
        stream = BatchStream(name, folder, keys, lambda key, handed: "", compute, reuse=False)
        with held_signals() as stop:
            for committed in stream.commit_all(stop):
                partition = committed.record.batch if context.has_asset_partitions else None
                context.step_context.add_asset_metadata(
                    batch_metadata(committed), context.asset_key, partition
                )

    def load_input(self, context: dg.InputContext) -> "pa.Table | pd.DataFrame | StoredBatches":
        """The upstream's committed batches. Raises MissingBatch, CorruptFile."""
        upstream = context.upstream_output
        metadata = (upstream.definition_metadata or {}) if upstream is not None else {}
        of_pipeline = folder_in(metadata)
        folder = of_pipeline or self._folder(context.asset_key)
        whole = None if of_pipeline is None or context.has_asset_partitions else _read_into(of_pipeline)
        batches = StoredBatches(folder, _keys(context) if whole is None else whole)
        wanted = context.dagster_type.typing_type
        if wanted is StoredBatches:
            return batches
        table = batches.table()
        return table.to_pandas() if getattr(wanted, "__name__", "") == "DataFrame" else table

    def _folder(self, key: dg.AssetKey) -> StepFolder:
        root = local_folder(self.root) if "://" in self.root else Path(self.root).resolve()
        path = root.joinpath(*map(key_to_name, key.path))
        format: Format = self.format  # pyright: ignore[reportAssignmentType]
        look_again(path)
        return StepFolder(inside(root, path), format, allow_pickle=self.allow_pickle)


def folder_metadata(folder: StepFolder) -> dict[str, str | dg.MetadataValue]:
    """What an asset of a pipeline says of its files: `path` to people, the rest to assets that read it."""
    flags = [name for name in ("whole", "allow_pickle") if getattr(folder, name)]
    path = folder.file_of(_NO_PARTITION) if folder.whole else folder.path
    return {
        "path": dg.MetadataValue.path(place_of(path)),
        FOLDER_METADATA: str(folder.path),
        FORMAT_METADATA: " ".join([folder.format, *flags]),
    }


def folder_in(metadata: Mapping[str, object]) -> StepFolder | None:
    """The folder that `folder_metadata` described, or None for an asset of another kind."""
    if FOLDER_METADATA not in metadata:
        return None
    path, format = (
        getattr(metadata[name], "value", metadata[name]) for name in (FOLDER_METADATA, FORMAT_METADATA)
    )
    name, *flags = str(format).split()
    stored: Format = name  # pyright: ignore[reportAssignmentType]
    return StepFolder(Path(str(path)), stored, "whole" in flags, "allow_pickle" in flags)


def _read_into(folder: StepFolder) -> list[str] | None:
    """The batches of a pipeline's source, which is one asset without partitions; None for another asset."""
    manifest = Manifest.read(folder.path.parent / MANIFEST)
    return None if manifest is None else manifest.batches


class Totals:
    """The sums over the batches of an unpartitioned asset; those of the source show some rows."""

    def __init__(self, shows_rows: bool = False) -> None:
        self._shows_rows = shows_rows
        self._shown: Committed | None = None
        self._shown_rejected: Committed | None = None
        self.batches = self.new = self.rows_in = self.rows_out = 0
        self.rejected: dict[str, int] = {}
        self.failed: dict[str, int] = {}
        self.seconds = 0.0
        self.usage: dict[str, float] = {}
        self.counts: dict[str, int] = {}

    def add(self, committed: Committed) -> None:
        """Counts a batch; of one that comes again only the rows that are shown are new."""
        record = committed.record
        if committed.again:
            self._shown = _newer(self._shown, committed)
            self._shown_rejected = _newer(self._shown_rejected, committed)
            return
        self._shown = self._shown or committed
        if record.rejected:
            self._shown_rejected = self._shown_rejected or committed
        self.batches += 1
        self.new += not committed.reused
        self.rows_in += record.rows_in
        self.rows_out += record.rows_out
        self.seconds += 0.0 if committed.reused else record.seconds
        used = {} if committed.reused else record.usage
        for name, amount in used.items():
            self.usage[name] = self.usage.get(name, 0) + amount
        sums = (
            (self.rejected, record.rejected),
            (self.failed, record.failed),
            (self.counts, record.counts),
        )
        for counts, more in sums:
            for name, count in more.items():
                counts[name] = counts.get(name, 0) + count

    def metadata(self) -> dict[str, dg.MetadataValue]:
        """The sums as Dagster shows them."""
        counts = count_metadata(self.rows_in, self.rows_out, self.rejected, self.failed, self.seconds)
        batches = {
            "batches": dg.MetadataValue.int(self.batches),
            "new_batches": dg.MetadataValue.int(self.new),
        }
        numbers = {**counts, **usage_metadata(self.usage), **operator_counts(self.counts), **batches}
        return {**numbers, **self._rows()}

    def _rows(self) -> dict[str, dg.MetadataValue]:
        """The columns, the first rows, and rows that were set aside."""
        if not self._shows_rows or self._shown is None:
            return {}
        schema = self._shown.record.schema
        columns = AssetColumns(source_meanings(schema)).metadata(schema)
        metadata = {**columns, **sample_metadata(self._shown)}
        if self._shown_rejected is not None:
            metadata |= rejected_metadata(self._shown_rejected, self.rejected, self.rows_in)
        return metadata


def _event(
    context: dg.OutputContext, output: StepOutput, committed: Committed, lineage: Lineage, more: Metadata
) -> dg.AssetMaterialization:
    record, instance = committed.record, context.step_context.instance
    earlier = earlier_metadata(instance, context.asset_key, committed) if committed.reused else None
    tags = {**lineage.tags_of_batch(record.batch, record.inputs), **_backfill_tags(context)}
    return batch_event(context.asset_key, committed, tags, more, output.columns, earlier=earlier)


def summary_metadata(work: PipelineWork, asset: str) -> Metadata:
    """What the step, or the source, did to the data; nothing for a state."""
    if not work.has_profile(asset):
        return {}
    text = step_summary(work, asset)
    return {} if text is None else {SUMMARY: dg.MetadataValue.md(text)}


def _write_all_events_here(context: dg.OutputContext) -> None:
    """Keeps Dagster from writing events of its own for this step; other steps of the run keep theirs.

    Its events would follow ours and hide their metadata. It looks at the tags of the run, so this
    step gets a run of its own with one tag more; a test guards it for the pinned Dagster.
    """
    step_context = context.step_context
    run = step_context.dagster_run
    deferred = run.with_tags({**run.tags, DEFER_EVENTS_TAG: "true"})
    step_context._plan_data = step_context.plan_data._replace(dagster_run=deferred)


def _keys(context: dg.OutputContext | dg.InputContext) -> list[str]:
    """The partitions of this run in the order of their definition; Dagster gives them in none."""
    if not context.has_asset_partitions:
        return [_NO_PARTITION]
    asked = set(context.asset_partition_keys)
    ordered = context.asset_partitions_def.get_partition_keys(
        dynamic_partitions_store=context.step_context.instance if context.step_context else None
    )
    return [key for key in ordered if key in asked]


def _by_partition(value: object, keys: Sequence[str]) -> Mapping[str, object]:
    """What is stored for each partition: of one alone the value itself, or what a dict has for it."""
    if isinstance(value, dict) and (len(keys) > 1 or value.keys() == set(keys)):
        return value
    return {keys[0]: value} if len(keys) == 1 else {}


def _code_version_tags(context: dg.OutputContext) -> dict[str, str]:
    version = context.step_context.job_def.asset_layer.get(context.asset_key).code_version
    return {CODE_VERSION_TAG: version} if version else {}


def _backfill_tags(context: dg.OutputContext) -> dict[str, str]:
    tags = context.step_context.dagster_run.tags
    return {BACKFILL_TAG: tags[BACKFILL_TAG]} if BACKFILL_TAG in tags else {}


@contextlib.contextmanager
def _closed(batches: Iterator[Committed]) -> Iterator[Iterator[Committed]]:
    """Ends the threads behind the batches when a batch is the last for an error of ours, not much later."""
    try:
        yield batches
    finally:
        if isinstance(batches, Generator):
            batches.close()


@contextlib.contextmanager
def _task(context: dg.OutputContext, output: StepOutput) -> Iterator[RunningTask]:
    """The asset as part of its pipeline's run: that of the command around it, else that of Dagster."""
    run, instance = context.step_context.dagster_run, context.step_context.instance
    span = context.asset_partition_key_range if output.partitioned else None
    asset, folder = context.asset_key.path[-1], output.pipeline.layout.folder
    batches = len(context.asset_partition_keys) if output.partitioned else None
    told = told_in_run(run.run_id, context.log.warning)
    with (
        pipeline_lock(folder),
        cancelled_when_stopped(instance, run),
        running_task(TaskStore(instance, folder), output.pipeline, run.run_id, told) as task,
        task.told.step(asset, batches, run.run_id),
    ):
        task.begin_step(asset, span and (span.start, span.end), run.run_id)
        tell_step(StepBegun(asset, batches))
        yield task


@contextlib.contextmanager
def cancelled_when_stopped(instance: dg.DagsterInstance, run: dg.DagsterRun) -> Iterator[None]:
    """Turns Stopped into a CANCELED run that Dagster does not retry; its partitions are exact."""
    try:
        yield
    except Stopped as stopped:
        instance.report_run_canceling(run, message=str(stopped))
        raise dg.Failure(description=str(stopped), allow_retries=False) from stopped


def _newer(shown: Committed | None, committed: Committed) -> Committed | None:
    """The batch that is shown, as it is now where it is this one."""
    return committed if shown is not None and shown.record.batch == committed.record.batch else shown
