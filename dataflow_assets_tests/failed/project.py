"""Small pipelines whose rows fail as long as the file `sick` names them; runs of them, counted."""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import dagster as dg
import pytest

from dataflow_assets.failed_queue.put_back import drop_edits, put_back
from dataflow_assets.failed_queue.retry import StepRetried, retry_failed
from dataflow_assets.failed_queue.rows_file import export_failed
from dataflow_assets.failed_queue.selection import Which
from dataflow_assets.pipeline.file import load_pipeline
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets.run import run_pipeline
from dataflow_assets_tests.crash.command import Finished, finish, start
from dataflow_assets_tests.crash.compare import final_files

MODULE = "dataflow_assets_tests.failed.row_functions"
FILE = "queue.yaml"
_FUNCTION = f'{{function: "{MODULE}:answer", columns: {{answer: string}}}}'
ANSWERED = f"{{name: answered, type: map_python, params: {_FUNCTION}}}"
UNIQUE = "{name: unique, type: drop_duplicates, params: {columns: [q]}}"
LOWER = "{name: lower, type: lowercase, params: {column: q}}"
IN_THREE = f'{{name: parts, type: "{MODULE}:InThree"}}'
DROPPED = ANSWERED.replace(":answer", ":answer_or_drop")
SHORT = ANSWERED.replace(":answer", ":only_short")


def write_project(
    folder: Path, *steps: str, sick: Iterable[int] = (), rows: int = 12, head: str = "batch_rows: 4"
) -> Path:
    """The project in `folder`; `q` repeats after 9 rows."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"id": n, "q": f"Q{n % 9}", "x": n / 2, "tags": [n]}) for n in range(rows)]
    (folder / "in.jsonl").write_text("\n".join(lines) + "\n")
    listed = "".join(f"  - {step}\n" for step in steps)
    (folder / FILE).write_text(
        f"name: queue\nroot: data\n{head}\nsource: {{path: in.jsonl}}\nsteps:\n{listed}"
    )
    heal(folder, sick)
    return folder


def heal(folder: Path, still_sick: Iterable[int] = ()) -> None:
    """From now on only these ids fail."""
    (folder / "sick").write_text(" ".join(map(str, still_sick)))


def do(folder: Path, command: str, *arguments: str, kill: str | None = None) -> Finished:
    """`dataflow-assets COMMAND queue.yaml ARGUMENTS` in a process of its own."""
    return finish(start(folder, command, FILE, *arguments, kill=kill))


class Queue:
    """One project, run in this process."""

    def __init__(self, folder: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.instance, self._monkeypatch = folder, instance, monkeypatch

    def at(self, name: str, *steps: str, sick: Iterable[int] = (), head: str = "batch_rows: 4") -> "Queue":
        """Another project, in a folder of that name, run once."""
        queue = self.of(name, *steps, sick=sick, head=head)
        queue.run()
        queue.calls()
        return queue

    def of(self, name: str, *steps: str, sick: Iterable[int] = (), head: str = "batch_rows: 4") -> "Queue":
        """Another project, never run."""
        write_project(self.folder / name, *steps, sick=sick, head=head)
        return self.over(name)

    def over(self, name: str) -> "Queue":
        """The project that is in this folder."""
        return Queue(self.folder / name, self.instance, self._monkeypatch)

    @property
    def work(self) -> PipelineWork:
        """The pipeline as its file is now; the working folder is its folder."""
        self._monkeypatch.chdir(self.folder)
        return PipelineWork(load_pipeline(self.folder / FILE))

    def run(self) -> None:
        run_pipeline(self.work, self.instance)

    def retry(self, **which: object) -> list[StepRetried]:
        return retry_failed(self.work, self.instance, Which(**which))  # pyright: ignore[reportArgumentType]

    def export(self, step: str = "answered") -> Path:
        """The failed rows of the step in a file."""
        export_failed(self.work, Which([step], parked="in"), self.folder / "failed.jsonl")
        return self.folder / "failed.jsonl"

    def put_back(self, *rows: dict, step: str = "answered") -> list[StepRetried]:
        """Puts these rows back."""
        file = self.folder / "edited.jsonl"
        file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        return put_back(self.work, self.instance, step, file)

    def drop(self, *row_ids: str, step: str = "answered") -> list[StepRetried]:
        """Takes back the edits of these rows, or all."""
        file = self.folder / "dropped.jsonl"
        file.write_text("".join(f"{json.dumps({'row_id': row_id})}\n" for row_id in row_ids))
        return drop_edits(self.work, self.instance, step, file if row_ids else None)

    def events(self, step: str) -> list[str]:
        """The batches of a step that Dagster was told of, in order."""
        found = self.instance.fetch_materializations(dg.AssetKey(["queue", step]), limit=100, ascending=True)
        return [str(record.partition_key) for record in found.records]

    def files(self) -> dict[str, object]:
        """All files but profiles, which are made again of rows that were put together anew."""
        files = final_files(self.folder / "data")
        return {name: content for name, content in files.items() if "/_profiles/" not in name}

    def calls(self) -> Counter[int]:
        """How often the function was called for each id since the last look."""
        return calls(self.folder)

    def stored(self, step: int, part: str = "") -> list[dict]:
        """The rows of a step's files, in the order of the batches."""
        return stored(self.folder, step, part)

    def generations(self, step: int) -> list[int]:
        """How often each batch of a step was committed."""
        records = sorted((self.folder / "data" / "queue" / f"queue_step{step}" / "_commits").glob("*.json"))
        return [json.loads(record.read_bytes())["generation"] for record in records]


def calls(folder: Path) -> Counter[int]:
    """How often the function was called for each id since the last look."""
    file = folder / "calls"
    found = Counter(map(int, file.read_text().split())) if file.exists() else Counter()
    file.unlink(missing_ok=True)
    return found


def stored(folder: Path, step: int, part: str = "") -> list[dict]:
    """The rows of a step's files, in the order of the batches."""
    place = folder / "data" / "queue" / f"queue_step{step}"
    whole = place.with_suffix(".jsonl")
    files = [whole] if whole.exists() and not part else sorted((place / part).glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.open(encoding="utf-8")]
