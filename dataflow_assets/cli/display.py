"""What a run shows while it goes on, and the table at its end."""

import contextlib
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from rich.console import Console, RenderableType

from dataflow_assets.checks import CheckResult
from dataflow_assets.cli.bars import Bars, shown_seconds
from dataflow_assets.cli.console import (
    KeptConsole,
    a_person_looks,
    console,
    kept_stream,
    print_line,
    shown_counts,
    shown_path,
    shown_table,
)
from dataflow_assets.cli.tally import Tally
from dataflow_assets.pipeline_work import SOURCE, PipelineWork
from dataflow_assets.progress import BatchDone, RowAnswered, StepBegun, listening, listening_closely
from dataflow_assets.serving.usage import shown_cost
from dataflow_assets.sources.notes import left_out_line, missing_columns_line
from dataflow_assets.status import PipelineStatus

_LINE_EVERY_S = 5.0


class RunDisplay:
    """Per step: batches, rows, rows a second, drops, failures, calls and the time left.

    Bars on a terminal; plain lines where no person looks. May be told in any thread.
    """

    def __init__(self, work: PipelineWork) -> None:
        self._work = work
        self._tallies: dict[str, Tally] = {}
        self._lock = threading.RLock()
        self._out, self._err = kept_stream(sys.stdout), kept_stream(sys.stderr)
        self._bars = Bars(self._tallies, self._lock, KeptConsole(self._out)) if a_person_looks() else None
        self.quiet = False

    def on_step(self, begun: StepBegun) -> None:
        """Shows a step from its start on: its first batch may take long."""
        with self._lock:
            now = time.monotonic()
            tally = Tally(begun.asset, now, now, begun.batches or self._batches_of(begun.asset), shown=now)
            tally.rows_wanted = self._rows_wanted(begun.asset)
            self._all_are_over()
            self._tallies.pop(begun.asset, None)
            self._tallies[begun.asset] = tally
        if self._bars is not None:
            self._bars.start()

    def on_row(self, row: RowAnswered) -> None:
        """Counts a row whose batch is still in hand."""
        with self._lock:
            tally = self._tallies.get(row.asset)
            if tally is not None:
                tally.add_row(row)
                self._print_now_and_then(tally)

    def on_batch(self, done: BatchDone) -> None:
        """Counts a batch and shows where its step stands."""
        with self._lock:
            tally = self._tallies[done.asset]
            tally.add(done)
            self._print_now_and_then(tally)

    def _all_are_over(self) -> None:
        for tally in self._tallies.values():
            tally.is_over = True

    def _batches_of(self, asset: str) -> int:
        manifest = None if asset == SOURCE else self._work.manifest()
        return len(manifest.batches) if manifest else 0

    def _rows_wanted(self, asset: str) -> int | None:
        """The rows that will come into a step that asks a model; its batches take too long to count them."""
        names = [step.name for step in self._work.pipeline.steps]
        if asset not in names or self._work.pipeline.serving(asset) is None:
            return None
        folder = self._work.folder_of(self._work.pipeline.parents(asset)[0])
        records = map(folder.record, self._work.known_manifest().batches)
        return sum(record.rows_out for record in records if record is not None)

    def _print_now_and_then(self, tally: Tally) -> None:
        if self._bars is None and time.monotonic() - tally.shown >= _LINE_EVERY_S:
            tally.shown = time.monotonic()
            print_line(f"  {tally_line(tally)}", self._out)

    def on_words(self, text: str) -> None:
        """Says a line of the run: above the bars, where there are some."""
        if self._bars is None:
            print_line(text, self._err)
        else:
            self._bars.say(text)

    def close(self) -> None:
        """Leaves the bars as they are, and closes its own copies of standard output and error."""
        self._end_bars()
        for kept, stream in ((self._out, sys.stdout), (self._err, sys.stderr)):
            if kept is not stream:
                kept.close()

    def _end_bars(self) -> None:
        if self._bars is not None:
            self._bars.close()

    def finish(self) -> None:
        """Leaves the last state of the bars, or a line for each asset that did something."""
        self._all_are_over()
        self._end_bars()
        if self._bars is None and not self.quiet:
            for tally in self._tallies.values():
                print_line(f"  {tally_line(tally)}")
        if not self._tallies and not self.quiet:
            print_line("  nothing to do: every batch is up to date")


def tally_line(tally: Tally) -> str:
    """`lower: 3/6 batches, 30 rows, 1,500 rows/s, 2 rejected, 1 failed, 0:04 left`."""
    of = f"/{tally.batches_wanted}" if tally.batches_wanted else ""
    reused = f" ({tally.batches - tally.made} as they were)" if tally.batches > tally.made else ""
    parts = [
        f"{tally.name}: {tally.batches}{of} batches{reused}",
        f"{tally.rows:,} rows",
        f"{tally.rows_per_s:,.0f} rows/s",
    ]
    parts += [f"{tally.rejected:,} rejected"] if tally.rejected else []
    parts += [f"{tally.failed:,} failed"] if tally.failed else []
    if tally.asks_a_model:
        parts += [f"{tally.tokens:,.0f} tokens", f"cost {shown_cost(tally.cost)}"]
    left = shown_seconds(tally.seconds_left)
    return ", ".join([*parts, *([f"{left} left"] if left else [])])


@contextlib.contextmanager
def run_display(work: PipelineWork) -> Iterator[RunDisplay]:
    """Shows what is done meanwhile; the bars end with it, however it ends."""
    display = RunDisplay(work)
    try:
        with (
            listening(display.on_batch),
            listening_closely(display.on_step, display.on_row, display.on_words),
        ):
            yield display
        display.finish()
    finally:
        display.close()


def shown_usage(usage: Mapping[str, float]) -> str:
    """`12 calls (3 answers from the ledger), 1,234 tokens in, 567 out, cost 0.0123`."""
    cached = f" and {usage['cached']:,.0f} answers from the ledger" if usage["cached"] else ""
    tokens = f"{usage['tokens_in']:,.0f} tokens in, {usage['tokens_out']:,.0f} out"
    return f"{usage['calls']:,.0f} calls{cached}, {tokens}, cost {shown_cost(usage['cost'])}"


def shown_check(check: CheckResult) -> str:
    """`check mean_score failed: 3.1 in batch in_b00002 (min_mean 5), a warning`; of a rule its message."""
    word = {None: "not looked at yet", True: "passed", False: "failed"}[check.passed]
    if check.rule:
        told = check.message or f"expected {check.rule}"
        return f"rule {check.name} {word}: {told}, {'an error' if check.blocking else 'a warning'}"
    value = "" if check.passed is None else f": {check.value_text}"
    batch = f" in batch {check.batch}" if check.batch else ""
    kind = "blocking" if check.blocking else "a warning"
    return f"check {check.name} {word}{value}{batch} ({check.limit_text}), {kind}"


def print_status(status: PipelineStatus, folder: Path) -> None:
    """The table of a pipeline's steps, and what steps that are no more left in its folder."""
    out = console()
    for part in status_parts(status, folder, out):
        if isinstance(part, str):
            print_line(part)
        else:
            out.print(part)


def status_parts(status: PipelineStatus, folder: Path, out: Console) -> Iterator[str | RenderableType]:
    """The same in parts, for a console of its width; texts are lines."""
    rejected = f", {shown_counts(status.source_rejected)} lines rejected" if status.source_rejected else ""
    yield f"{status.pipeline}: {status.state}, {status.rows_read:,} rows read{rejected}"
    if status.left_out:
        yield left_out_line(status.left_out)
    if status.missing_columns:
        yield missing_columns_line(status.missing_columns)
    if status.why:
        yield f"{status.paused.who} since {status.paused.when}: {status.why}" if status.paused else status.why
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
    yield shown_table(headers, rows, ("step", "batches", "rows in", "rows out", "failed"), out)
    for step in status.steps:
        if step.usage:
            yield f"{step.name}: {shown_usage(step.usage)}"
        for check in step.checks:
            yield f"{step.name}: {shown_check(check)}"
    if status.leftover_steps:
        yield (
            f"left in {shown_path(folder)} by steps that are no more: {', '.join(status.leftover_steps)}; "
            "nothing reads them, they can be deleted"
        )
