"""A folder with a pipeline that asks the fault server, run by the real command."""

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import orjson
import yaml
from dagster import DagsterInstance

from dataflow_assets.pipeline.file import load_pipeline
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets.task_state import TaskState, TaskStore, new_pause
from dataflow_assets_tests.crash.command import Finished, Running, environment, finish, start
from dataflow_assets_tests.fault_server import FaultServer

KEY = "sk-not-for-anybody-7c1e"
ASKS = {"name": "answered", "type": "generate", "params": {"prompt": "{text}", "output_column": "answer"}}


class Project:
    """One step that generates an answer for each text, unless `steps` says otherwise."""

    def __init__(
        self,
        folder: Path,
        server: FaultServer,
        texts: Sequence[str],
        steps: Sequence[Mapping[str, object]] = (ASKS,),
        serving: Mapping[str, object] = {},
        **pipeline: object,
    ) -> None:
        self.folder = folder
        self.write("in.jsonl", texts)
        openai = {"type": "openai", "model": "m", "base_url": server.url, "api_key": "${THE_KEY}"}
        waits = {"backoff_s": 0.01, "max_wait_s": 0.05}
        self.pipeline = {
            "name": "asks",
            "source": {"path": "in.jsonl"},
            "batch_rows": 10,
            "servings": {"default": {**openai, **waits, **serving}},
            "steps": list(steps),
            **pipeline,
        }
        self.save()

    def save(self) -> None:
        """Writes the pipeline's file."""
        (self.folder / "asks.yaml").write_text(yaml.safe_dump(self.pipeline, sort_keys=False))

    def write(self, name: str, texts: Sequence[str]) -> None:
        """A source file with one text a row."""
        rows = (json.dumps({"id": n, "text": text}, ensure_ascii=False) for n, text in enumerate(texts, 1))
        (self.folder / name).write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")

    def start(self, command: str = "run", *options: str) -> Running:
        """The command, begun."""
        env = environment({"THE_KEY": KEY, "DAGSTER_HOME": str(self.folder / "home")})
        return start(self.folder, command, "asks.yaml", *options, env=env)

    def run(self, command: str = "run", *options: str) -> Finished:
        """The command, to its end."""
        return finish(self.start(command, *options))

    def pause(self, reason: str = "") -> None:
        """What `pause` does, in this process: a command takes seconds to begin."""
        with self._store() as store:
            store.ask_pause(new_pause(self._work().pipeline, reason))

    def state(self) -> TaskState | None:
        """What Dagster's storage says of the task."""
        with self._store() as store:
            return store.state()

    @contextlib.contextmanager
    def _store(self) -> Iterator[TaskStore]:
        with DagsterInstance.from_config(str(self.folder / "home")) as instance:
            yield TaskStore(instance, self._work().layout.folder)

    def _work(self) -> PipelineWork:
        os.environ.setdefault("THE_KEY", KEY)
        pipeline = load_pipeline(self.folder / "asks.yaml")
        return PipelineWork(pipeline.with_changes(root=str(self.folder / "dataflow_data")))

    def rows(self, number: int = 1, part: str = "") -> list[dict]:
        """The rows of a step's files in the order of the batches; `part` is `_failed` or `_rejected`."""
        folder = self.folder / "dataflow_data" / "asks" / f"asks_step{number}" / part
        files = sorted(folder.glob("*.jsonl"))
        return [orjson.loads(line) for file in files for line in file.read_bytes().splitlines()]

    def failed(self) -> dict[str, str]:
        """The class of each failed row by its text."""
        return {row["text"]: row["error_class"] for row in self.rows(part="_failed")}

    def answers(self) -> dict[str, str]:
        """The answer of each row by its text."""
        return {row["text"]: row["answer"] for row in self.rows()}

    def status(self) -> dict:
        """What `status --json` says."""
        return json.loads(self.run("status", "--json").out)
