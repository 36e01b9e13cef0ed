"""Which failed rows are meant: by step, error class and attempts; and where they are."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from dataflow_assets.io.step_folder import StepFolder
from dataflow_assets.pipeline_work import PipelineWork

MAX_ATTEMPTS = 10


@dataclass(frozen=True)
class Which:
    """Failed rows of these steps and error classes; none named means all.

    A row is parked once it has had `max_attempts` attempts: such rows are left out, in, or alone wanted.
    """

    steps: Sequence[str] = ()
    error_classes: Sequence[str] = ()
    parked: Literal["out", "in", "alone"] = "out"
    max_attempts: int = MAX_ATTEMPTS

    def has_step(self, name: str) -> bool:
        """Whether rows of this step are meant."""
        return not self.steps or name in self.steps

    def rows(self, failed: pa.Table) -> pa.Table:
        """The rows of a failed table that are meant, in order."""
        if self.error_classes:
            classes = pa.array(self.error_classes, pa.large_string())
            failed = failed.filter(pc.is_in(failed["error_class"], classes))
        if self.parked == "in":
            return failed
        is_parked = pc.greater_equal(failed["attempts"], self.max_attempts)
        return failed.filter(is_parked if self.parked == "alone" else pc.invert(is_parked))


class FailedRows(NamedTuple):
    """Failed rows of one batch of a step, as its committed file has them."""

    step: str
    batch: str
    table: pa.Table


def failed_rows(work: PipelineWork, which: Which) -> Iterator[FailedRows]:
    """The failed rows that are meant, batch by batch, steps in order. Raises ConfigError, CorruptFile."""
    for name in which.steps:
        work.pipeline.step(name)
    manifest = work.manifest()
    for step in work.pipeline.ordered_steps if manifest else ():
        assert manifest is not None
        if which.has_step(step.name):
            yield from _of_step(work.folder_of(step.name), step.name, manifest.batches, which)


def _of_step(folder: StepFolder, name: str, keys: Sequence[str], which: Which) -> Iterator[FailedRows]:
    for key in keys:
        table = stored_failed(folder, key)
        if table is not None and (found := which.rows(table)).num_rows:
            yield FailedRows(name, key, found)


def stored_failed(folder: StepFolder, key: str) -> pa.Table | None:
    """All failed rows of a batch; None where none failed or the batch is not committed."""
    record = folder.record(key)
    return folder.read(key, "failed", record) if record is not None and record.failed else None
