"""The same operator through its own pipeline's storage and through ours, in one environment."""

import importlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from dataflow_assets.operators.opendcai.operator import made_class, object_of
from dataflow_assets_tests.crash.command import environment, finish, start

Row = dict[str, object]


class Case(NamedTuple):
    """An operator, how it is made and run, and the types of the columns that its `run` does not name."""

    operator: str
    run: Mapping[str, object]
    init: Mapping[str, object] = {}
    more: Mapping[str, object] = {}
    type: str = "opendcai"

    def step(self, name: str) -> Row:
        """The step of a pipeline, right behind the source."""
        params = {"operator": self.operator, "init": self.init, "run": self.run, **self.more}
        return {"name": name, "type": self.type, "depends_on": [], "params": params}

    def instance(self, **servings: object) -> Any:
        """The operator itself."""
        init = {name: object_of(value) for name, value in self.init.items()}
        return made_class(self.operator)(**init, **servings)


def theirs(folder: Path, source: Path, case: Case, **servings: object) -> list[Row]:
    """What its own pipeline writes: `FileStorage`, one step."""
    storage = importlib.import_module("dataflow.utils.storage").FileStorage(
        str(source), cache_path=str(folder), file_name_prefix=case.operator
    )
    case.instance(**servings).run(storage=storage.step(), **case.run)
    return [_shown(json.loads(line)) for line in _lines(folder / f"{case.operator}_step1.jsonl")]


def ours(folder: Path, source: Path, cases: Mapping[str, Case], **pipeline: object) -> dict[str, list[Row]]:
    """What the real command makes of the same, each case a step, by the names of the cases."""
    steps = [case.step(name) for name, case in cases.items()]
    whole = {"name": "p", "source": {"path": str(source)}, "batch_rows": 20, **pipeline, "steps": steps}
    (folder / "p.yaml").write_text(yaml.safe_dump(whole, sort_keys=False))
    done = finish(start(folder, "run", "p.yaml", env=environment({"DAGSTER_HOME": str(folder / "home")})))
    assert done.code in (0, 5), done.err + done.out
    return {name: list(_rows(folder, number)) for number, name in enumerate(cases, 1)}


def _rows(folder: Path, number: int) -> Iterator[Row]:
    for file in sorted((folder / "dataflow_data/p").glob(f"p_step{number}/*.jsonl")):
        yield from (_shown(json.loads(line)) for line in _lines(file))
    whole = folder / f"dataflow_data/p/p_step{number}.jsonl"
    yield from (_shown(json.loads(line)) for line in (_lines(whole) if whole.is_file() else []))


def _lines(file: Path) -> list[str]:
    return [line for line in file.read_text("utf-8").split("\n") if line]


def _shown(row: Row) -> Row:
    """The row without its id and nulls; floats with the ten digits that pandas writes."""
    shown = {name: value for name, value in row.items() if name != "row_id" and value is not None}
    return {name: round(value, 10) if isinstance(value, float) else value for name, value in shown.items()}


os.environ.setdefault("DF_LOGGING_LEVEL", "ERROR")
