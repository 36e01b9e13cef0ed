"""What a run shows while it goes on, and the table at its end."""

import contextlib
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from dataflow_assets.checks import CheckResult
from dataflow_assets.cli.console import console, print_line, print_table, shown_counts, shown_path
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


def shown_usage(usage: Mapping[str, float]) -> str:
    """`12 calls (3 answers from the ledger), 1,234 tokens in, 567 out, cost 0.0123`."""
    cached = f" and {usage['cached']:,.0f} answers from the ledger" if usage["cached"] else ""
    tokens = f"{usage['tokens_in']:,.0f} tokens in, {usage['tokens_out']:,.0f} out"
    return f"{usage['calls']:,.0f} calls{cached}, {tokens}, cost {usage['cost']:.4f}"


def shown_check(check: CheckResult) -> str:
    """`check mean_score failed: 3.1 in batch in_b00002 (min_mean 5), a warning`."""
    word = {None: "not looked at yet", True: "passed", False: "failed"}[check.passed]
    value = "" if check.passed is None else f": {check.value_text}"
    batch = f" in batch {check.batch}" if check.batch else ""
    kind = "blocking" if check.blocking else "a warning"
    return f"check {check.name} {word}{value}{batch} ({check.limit_text}), {kind}"


def print_status(status: PipelineStatus, folder: Path) -> None:
    """The table of a pipeline's steps, and what steps that are no more left in its folder."""
    rejected = f", {shown_counts(status.source_rejected)} lines rejected" if status.source_rejected else ""
    print_line(f"{status.pipeline}: {status.state}, {status.rows_read:,} rows read{rejected}")
    if status.why:
        print_line(
            f"{status.paused.who} since {status.paused.when}: {status.why}" if status.paused else status.why
        )
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
    for step in status.steps:
        if step.usage:
            print_line(f"{step.name}: {shown_usage(step.usage)}")
        for check in step.checks:
            print_line(f"{step.name}: {shown_check(check)}")
    if status.leftover_steps:
        print_line(
            f"left in {shown_path(folder)} by steps that are no more: {', '.join(status.leftover_steps)}; "
            "nothing reads them, they can be deleted"
        )
