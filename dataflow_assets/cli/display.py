"""What a run shows while it goes on, and the table at its end."""

import contextlib
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from dataflow_assets.cli.console import console, print_line, print_table, shown_counts
from dataflow_assets.pipeline_work import SOURCE, PipelineWork
from dataflow_assets.progress import BatchDone, listening
from dataflow_assets.status import PipelineStatus

_LINE_EVERY_S = 5.0


@dataclass
class _Tally:
    """What one asset did so far in this run, from the end of the one before to its own last batch."""

    total: int
    started: float
    last: float
    batches: int = 0
    made: int = 0
    rows: int = 0
    shown: float = field(default_factory=time.monotonic)

    @property
    def elapsed_s(self) -> float:
        return self.last - self.started

    @property
    def rows_per_s(self) -> float:
        return self.rows / self.elapsed_s if self.elapsed_s > 0 else 0.0


class RunDisplay:
    """Per step: batches, rows, rows a second and the time left; plain lines where no person looks."""

    def __init__(self, work: PipelineWork) -> None:
        self._work = work
        self._tallies: dict[str, _Tally] = {}
        self._tasks: dict[str, TaskID] = {}
        self._bars = _bars() if sys.stdout.isatty() else None
        self._last = time.monotonic()
        self.quiet = False

    def on_batch(self, done: BatchDone) -> None:
        """Counts a batch and shows where its step stands."""
        tally = self._tallies.get(done.asset)
        if tally is None:
            tally = self._tallies[done.asset] = _Tally(self._total(done.asset), self._last, self._last)
        tally.last = self._last = time.monotonic()
        tally.batches += 1
        if not done.reused:
            tally.made += 1
            tally.rows += done.record.rows_in
        if self._bars is not None:
            self._show_bar(self._bars, done.asset, tally)
        elif time.monotonic() - tally.shown >= _LINE_EVERY_S:
            tally.shown = time.monotonic()
            print_line(f"  {_line(done.asset, tally)}")

    def _total(self, asset: str) -> int:
        manifest = None if asset == SOURCE else self._work.manifest()
        return len(manifest.batches) if manifest else 0

    def _show_bar(self, bars: Progress, asset: str, tally: _Tally) -> None:
        if asset not in self._tasks:
            self._tasks[asset] = bars.add_task(asset, total=tally.total or None, rows="", speed="")
            bars.start()
        bars.update(
            self._tasks[asset],
            completed=min(tally.batches, tally.total) if tally.total else tally.batches,
            rows=f"{tally.rows:,} rows",
            speed=f"{tally.rows_per_s:,.0f} rows/s",
        )

    def finish(self) -> None:
        """Leaves the last state of the bars, or a line for each asset that did something."""
        if self._bars is not None:
            self._bars.stop()
        elif not self.quiet:
            for asset, tally in self._tallies.items():
                print_line(f"  {_line(asset, tally)}")
            if not self._tallies:
                print_line("  nothing to do: every batch is up to date")


def _line(asset: str, tally: _Tally) -> str:
    of = f"/{tally.total}" if tally.total else ""
    left = ""
    if tally.total > tally.batches and tally.made:
        seconds = tally.elapsed_s / tally.batches * (tally.total - tally.batches)
        left = f", {seconds:.0f} s left"
    reused = f" ({tally.batches - tally.made} as they were)" if tally.batches > tally.made else ""
    speed = f"{tally.rows:,} rows, {tally.rows_per_s:,.0f} rows/s"
    return f"{asset}: {tally.batches}{of} batches{reused}, {speed}{left}"


def _bars() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("batches"),
        TextColumn("{task.fields[rows]}"),
        TextColumn("{task.fields[speed]}"),
        TimeRemainingColumn(),
        console=console(),
    )


@contextlib.contextmanager
def run_display(work: PipelineWork) -> Iterator[RunDisplay]:
    """Shows the batches that are committed meanwhile."""
    display = RunDisplay(work)
    with listening(display.on_batch):
        yield display
    display.finish()


def print_status(status: PipelineStatus) -> None:
    """The table of a pipeline's steps."""
    rejected = f", {shown_counts(status.source_rejected)} lines rejected" if status.source_rejected else ""
    print_line(f"{status.pipeline}: {status.state}, {status.rows_read:,} rows read{rejected}")
    rows = [
        (
            step.step,
            step.name,
            step.type,
            f"{step.batches_done}/{step.batches_total}{' stale' if step.stale else ''}",
            f"{step.rows_in:,}",
            f"{step.rows_out:,}",
            shown_counts(step.rejected),
            f"{step.failed:,}",
        )
        for step in status.steps
    ]
    headers = ("step", "name", "type", "batches", "rows in", "rows out", "rejected", "failed")
    print_table(headers, rows, right=("step", "batches", "rows in", "rows out", "failed"))
