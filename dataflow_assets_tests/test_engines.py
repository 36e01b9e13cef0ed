"""Engines give the same outcome; workers that die are replaced, rows that kill fail alone."""

import os
import signal
import threading
from pathlib import Path

import polars as pl
import psutil
import pyarrow as pa
import pytest

from dataflow_assets.batch import rows_of, table_of
from dataflow_assets.control import held_signals
from dataflow_assets.engines.engine import InlineEngine, check_law
from dataflow_assets.engines.processes import MAX_ATTEMPTS, ProcessEngine
from dataflow_assets.engines.worker_pool import WorkerPool
from dataflow_assets.errors import ConfigError, ConservationError, RunError
from dataflow_assets.operators.operator import Outcome, RowOperator
from dataflow_assets.operators.registry import build_operator
from dataflow_assets_tests.crash.command import environment, finish, start
from dataflow_assets_tests.crash.gate import GATE_STEPS, gated, wait_until
from dataflow_assets_tests.crash.project import FUNCTIONS, write_project

COLUMNS = {"row_id": "string", "n": "int64", "text": "string"}
ROW_OPERATORS = {
    "fix_unicode": {},
    "strip_html": {},
    "normalize_whitespace": {},
    "lowercase": {},
    "remove_urls": {},
    "regex_replace": {"pattern": "(?i)row", "replacement": "line"},
    "filter_length": {"min_chars": 9},
    "filter_regex": {"pattern": "[0-9]$"},
    "select_columns": {"drop": ["n"]},
    "rename_columns": {"columns": {"n": "number"}},
    "map_python": {"function": f"{FUNCTIONS}:raise_on_seven"},
}


def table(count: int = 20) -> pa.Table:
    """Texts with markup, links, and every fifth missing."""
    texts = [None if n % 5 == 4 else f"<p>Row&nbsp;{n}  ＡＢ http://a.b/{n}</p>" for n in range(count)]
    return table_of(
        {"row_id": [f"in:{n}" for n in range(count)], "n": list(range(count)), "text": texts}, COLUMNS
    )


def operator(name: str, **params: object) -> RowOperator:
    built = build_operator(name, params)
    assert isinstance(built, RowOperator)
    return built


def parts(outcome: Outcome) -> list[list[dict]]:
    return [rows_of(part) if part is not None else [] for part in outcome]


@pytest.fixture(scope="module")
def processes():
    engine = ProcessEngine(WorkerPool(2), chunk_rows=3)
    yield engine
    engine.close()


@pytest.mark.parametrize("name", ROW_OPERATORS)
def test_processes_do_what_inline_does(processes: ProcessEngine, name: str) -> None:
    built = operator(name, **ROW_OPERATORS[name])
    inline, parallel = InlineEngine().run(built, table()), processes.run(built, table())
    assert parts(parallel) == parts(inline)
    assert parallel.kept.schema.equals(inline.kept.schema, check_metadata=True)
    check_law(built, table(), parallel, "here")


def test_a_table_without_rows(processes: ProcessEngine) -> None:
    assert processes.run(operator("lowercase"), table(0)).kept.num_rows == 0


def only_seven_failed(outcome: Outcome, error_class: str, attempts: int) -> None:
    kept, _, [failed] = parts(outcome)
    assert [row["n"] for row in kept] == [n for n in range(20) if n != 7]
    assert (failed["n"], failed["error_class"], failed["attempts"]) == (7, error_class, attempts)


def test_a_row_that_raises_fails_alone(processes: ProcessEngine) -> None:
    kept, _, failed = parts(
        processes.run(operator("map_python", function=f"{FUNCTIONS}:raise_on_seven"), table())
    )
    assert [row["n"] for row in kept] == [n for n in range(20) if n != 7]
    assert [(row["n"], row["error_class"], row["attempts"]) for row in failed] == [(7, "KeyError", 1)]


def test_a_row_that_kills_its_process_fails_alone() -> None:
    engine = ProcessEngine(WorkerPool(2), chunk_rows=10)
    kept, _, failed = parts(
        engine.run(operator("map_python", function=f"{FUNCTIONS}:kill_on_seven"), table())
    )
    engine.close()
    assert [row["n"] for row in kept] == [n for n in range(20) if n != 7]
    assert [(row["n"], row["error_class"], row["attempts"]) for row in failed] == [
        (7, "WorkerDied", MAX_ATTEMPTS)
    ]


class RaisesOnSeven(RowOperator):
    name = "raises_on_seven"

    def apply(self, table: pa.Table) -> Outcome:
        if 7 in table["n"].to_pylist():
            raise ValueError("seven")
        return Outcome(table)


class NeedsAllRows(RaisesOnSeven):
    needs_all_rows = True


@pytest.mark.parametrize("engine", ["inline", "processes"])
def test_a_row_on_which_a_whole_table_raises_fails_alone(engine: str, processes: ProcessEngine) -> None:
    runs = InlineEngine() if engine == "inline" else processes
    outcome = runs.run(RaisesOnSeven(), table())
    only_seven_failed(outcome, "ValueError", 1)
    check_law(RaisesOnSeven(), table(), outcome, "here")


@pytest.mark.parametrize(
    "error", [ConfigError("wrong"), ImportError("lacks"), MemoryError(), KeyboardInterrupt()]
)
def test_an_error_that_is_nobodys_row_ends_the_step(
    error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(self: RowOperator, table: pa.Table) -> Outcome:
        raise error

    monkeypatch.setattr(RaisesOnSeven, "apply", fails)
    with pytest.raises(type(error)):
        InlineEngine().run(RaisesOnSeven(), table())


def test_rows_that_must_stay_together_are_not_tried_apart() -> None:
    with pytest.raises(ValueError, match="seven"):
        InlineEngine().run(NeedsAllRows(), table())


class ServerError(ImportError):
    """As those of httpx: it cannot be made anew from its text; and it is no row's."""

    def __init__(self, said: str, *, status: int) -> None:
        super().__init__(f"{said} ({status})")


class AsksAServer(RowOperator):
    name = "asks_a_server"

    def apply(self, table: pa.Table) -> Outcome:
        raise ServerError("no such model", status=404)


def test_an_error_that_cannot_leave_its_process_is_told_and_kills_no_row() -> None:
    engine = ProcessEngine(WorkerPool(1))
    with pytest.raises(RunError, match=r"ServerError: no such model \(404\)"):
        engine.run(AsksAServer(), table())
    engine.close()


def in_polars_at_ctrl_c(row: dict) -> dict:
    """The signal comes while polars works, whose own handler raises KeyboardInterrupt at it."""

    def strike(series: pl.Series) -> pl.Series:
        os.kill(os.getpid(), signal.SIGINT)
        return series

    numbers = pl.LazyFrame({"n": [row["n"]]}).select(pl.col("n").map_batches(strike, return_dtype=pl.Int64))
    return {"n": numbers.collect()["n"][0]}


def test_ctrl_c_while_a_worker_is_in_polars_costs_nothing() -> None:
    engine = ProcessEngine(WorkerPool(1))
    struck = operator("map_python", function=f"{__name__}:{in_polars_at_ctrl_c.__name__}")
    outcome = engine.run(struck, table())
    engine.close()
    assert [row["n"] for row in rows_of(outcome.kept)] == list(range(20))


def test_ctrl_c_while_this_process_is_in_polars_is_noted() -> None:
    with held_signals() as stop:
        assert in_polars_at_ctrl_c({"n": 7}) == {"n": 7}
    assert stop.signal == signal.SIGINT


def test_a_worker_that_is_killed_in_mid_row_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in gated(tmp_path).items():
        monkeypatch.setenv(name, value)
    engine, outcomes = ProcessEngine(WorkerPool(2), chunk_rows=10), []
    waiting = operator("map_python", function=f"{FUNCTIONS}:wait_for_the_gate")
    run = threading.Thread(target=lambda: outcomes.append(engine.run(waiting, table(40))))
    run.start()
    wait_until(lambda: any(tmp_path.glob("worker_*")))
    (tmp_path / "gate").unlink()
    os.kill(worker_in(tmp_path), signal.SIGKILL)
    run.join()
    engine.close()
    assert [row["n"] for row in rows_of(outcomes[0].kept)] == list(range(40))


def worker_in(folder: Path) -> int:
    return int(next(folder.glob("worker_*")).name.removeprefix("worker_"))


def test_workers_do_not_outlive_a_killed_run(tmp_path: Path) -> None:
    write_project(tmp_path, steps=GATE_STEPS, workers=2)
    process = start(tmp_path, "run", "four.yaml", env=environment(gated(tmp_path)))
    wait_until(lambda: any(tmp_path.glob("worker_*")), process)
    family = psutil.Process(process.pid).children(recursive=True)
    assert worker_in(tmp_path) in [child.pid for child in family]
    process.kill()
    finish(process)
    _, alive = psutil.wait_procs(family, timeout=60)
    assert alive == []


def losing(rows: pa.Table) -> Outcome:
    return Outcome(rows.slice(1))


def doubling(rows: pa.Table) -> Outcome:
    return Outcome(pa.concat_tables([rows, rows.slice(0, 1)]))


def inventing(rows: pa.Table) -> Outcome:
    ids = pa.array(["made:up", *rows["row_id"].to_pylist()[1:]], pa.large_string())
    return Outcome(rows.set_column(0, rows.schema.field("row_id"), ids))


def keeping_and_rejecting(rows: pa.Table) -> Outcome:
    return Outcome(rows, rows.slice(0, 1))


def adding_a_column(rows: pa.Table) -> Outcome:
    return Outcome(rows.append_column("more", rows["text"]))


def without_a_column(rows: pa.Table) -> Outcome:
    return Outcome(rows.drop_columns(["n"]))


@pytest.mark.parametrize(
    ("break_the_law", "says"),
    [
        (losing, "lost for example in:0"),
        (doubling, "doubled is for example in:0"),
        (inventing, "lost for example in:0"),
        (keeping_and_rejecting, "doubled is for example in:0"),
        (adding_a_column, "gave the columns"),
        (without_a_column, "gave the columns"),
    ],
)
def test_the_law_of_conservation(break_the_law, says: str) -> None:
    with pytest.raises(ConservationError, match=says):
        check_law(operator("lowercase"), table(), break_the_law(table()), "step 'lower', batch 'b'")
