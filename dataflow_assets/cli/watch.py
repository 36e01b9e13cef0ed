"""Looks again and again at a pipeline that is being run, until its run is over or Ctrl-C."""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from dataflow_assets.cli.console import a_person_looks, print_line
from dataflow_assets.cli.display import print_status, status_parts
from dataflow_assets.control import is_locked, look_again
from dataflow_assets.errors import CorruptFile, MissingBatch, StorageError
from dataflow_assets.io.commit_record import CommitRecord
from dataflow_assets.io.preview import visible
from dataflow_assets.io.step_folder import StepFolder
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets.status import PipelineStatus, status_of

_LOOK_EVERY_S = 1.0
# A run of Dagster frees the pipeline's lock between two assets for a moment.
_BETWEEN_ASSETS_S = 3.0
_MOST_AT_A_LOOK = 5


def looks(folder: Path, is_settled: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """One look a second, while a run holds the pipeline, and one after its end.

    Looks that take long come less often. Where nobody holds the pipeline, a run is waited for for three
    seconds, unless `is_settled` says that there is nothing to wait for.
    """
    held_at = time.monotonic()
    while True:
        is_held, began = is_locked(folder), time.monotonic()
        look_again(folder)
        yield
        now = time.monotonic()
        held_at = now if is_held else held_at
        if not is_held and (is_settled() or now - held_at > _BETWEEN_ASSETS_S):
            return
        time.sleep(max(_LOOK_EVERY_S, 2 * (now - began)))


def watch_status(work: PipelineWork, as_json: bool) -> None:
    """Shows the status until the run ends: redrawn on a terminal, else again each time that it changed."""
    shown: list[PipelineStatus] = []
    with contextlib.suppress(KeyboardInterrupt), _status_shower(work, as_json) as show:
        for _ in looks(work.layout.folder, lambda: shown[-1].state in ("done", "paused")):
            status = status_of(work)
            if not shown or status != shown[-1]:
                show(status)
            shown[:] = [status]


@contextlib.contextmanager
def _status_shower(work: PipelineWork, as_json: bool) -> Iterator[Callable[[PipelineStatus], None]]:
    folder = work.layout.folder
    if as_json:
        yield lambda status: print(orjson.dumps(status.as_json()).decode(), flush=True)  # noqa: T201
    elif a_person_looks():
        out = Console(highlight=False)
        with Live(console=out, auto_refresh=False) as live:
            out.show_cursor(True)
            yield lambda status: live.update(_as_one(status, folder, out), refresh=True)
    else:
        yield lambda status: print_status(status, folder)


def _as_one(status: PipelineStatus, folder: Path, out: Console) -> Group:
    parts = status_parts(status, folder, out)
    return Group(*(Text(visible(part)) if isinstance(part, str) else part for part in parts))


def watch_batches(
    work: PipelineWork, step: str, show: Callable[[CommitRecord], None], nothing_yet: str
) -> None:
    """Shows each batch of a step as it is committed, beginning with the newest that is there."""
    folder = work.folder_of(step)
    seen: dict[str, int] = {}

    def has_all() -> bool:
        manifest = work.manifest()
        return manifest is not None and set(manifest.batches) <= seen.keys()

    with contextlib.suppress(KeyboardInterrupt):
        for _ in looks(work.layout.folder, has_all):
            found = _commits(folder)
            new = [key for key, at in found.items() if seen.get(key) != at]
            if not found and nothing_yet:
                print_line(nothing_yet)
                nothing_yet = ""
            most = _MOST_AT_A_LOOK if seen else 1
            if seen and len(new) > most:
                print_line(f"{len(new) - most:,} more batches")
            seen.update({key: found[key] for key in new[:-most]})
            for key in new[-most:]:
                if _is_shown(folder, key, show):
                    seen[key] = found[key]


def _is_shown(folder: StepFolder, key: str, show: Callable[[CommitRecord], None]) -> bool:
    """Shows a batch, unless it is just being replaced: then it is looked at again."""
    with contextlib.suppress(CorruptFile, MissingBatch, StorageError):
        record = folder.record(key)
        if record is not None:
            show(record)
            return True
    return False


def _commits(folder: StepFolder) -> dict[str, int]:
    """When each batch was committed, the newest last."""
    try:
        files = list(folder.commits.glob("*.json"))
        times = {file.stem: file.stat().st_mtime_ns for file in files}
    except FileNotFoundError:  # no batch yet, or one that is just being replaced
        return {}
    return dict(sorted(times.items(), key=lambda entry: (entry[1], entry[0])))
