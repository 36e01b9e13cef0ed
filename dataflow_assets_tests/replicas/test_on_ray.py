"""Replicas on a real Ray: the same rows as inline, whatever dies, and nothing held afterwards."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dagster as dg
import psutil
import pytest

from dataflow_assets.batch import table_of
from dataflow_assets.engines.replicas.chunks import MAX_ATTEMPTS
from dataflow_assets.engines.replicas.host import ReplicaInfo
from dataflow_assets.engines.replicas.pool import ReplicaPool
from dataflow_assets.engines.replicas.ray_connection import RaySettings
from dataflow_assets.engines.replicas.ray_host import RayHost
from dataflow_assets.engines.replicas.request import ReplicaRequest
from dataflow_assets.errors import ConfigError, ReplicaError
from dataflow_assets.pipeline.file import load_pipeline
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets.replicated import replicated
from dataflow_assets.resources.ray_cluster import RayCluster
from dataflow_assets.run import run_pipeline
from dataflow_assets_tests.crash.command import environment
from dataflow_assets_tests.replicas.conftest import CPUS, GPUS, SPOTS, STORE_BYTES
from dataflow_assets_tests.replicas.operators import FaultParams, Score
from dataflow_assets_tests.replicas.tables import ids, numbered

CASE_42 = Path(__file__).parents[1] / "cases/42_actor_death"
MakePool = Callable[..., ReplicaPool]


@pytest.fixture
def made_pool(ray_cluster: RaySettings) -> Iterator[MakePool]:
    """Makes pools on the cluster; after the test they are closed, no actor lives, no GPU is held."""
    pools = []

    def make(request: ReplicaRequest, name: str = "score", **faults: object) -> ReplicaPool:
        operator = Score(FaultParams())
        operator.params = FaultParams(**faults)  # pyright: ignore[reportArgumentType]
        pools.append(ReplicaPool(name, operator, RayHost(name, operator, request, ray_cluster), request))
        return pools[-1]

    yield make
    for pool in pools:
        pool.close()
    _wait_until(lambda: _free("GPU") == GPUS and _free("CPU") == CPUS and _free("spot") == SPOTS)
    assert _actors() == []


def _actors() -> list:
    import ray

    return ray.util.list_named_actors(all_namespaces=True)


def _free(resource: str) -> float:
    import ray

    return ray.available_resources().get(resource, 0.0)


def _wait_until(is_so: Callable[[], bool], timeout_s: float = 30.0) -> None:
    end = time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_rows_and_order_are_those_of_inline(made_pool: MakePool) -> None:
    tables = [numbered(300, 0), numbered(300, 300), numbered(300, 600)]
    for replicas, chunk_rows in ((1, None), (2, 17), (4, 128)):
        pool = made_pool(ReplicaRequest(replicas, chunk_rows=chunk_rows), raise_on=[450])
        with ThreadPoolExecutor(3) as threads:
            outcomes = [done.outcome for done in threads.map(pool.run, tables)]
        inline = Score(FaultParams()).apply(numbered(900)).kept
        expected = list(zip(ids(inline), inline["score"].to_pylist(), strict=True))
        del expected[450]
        kept = [pair for o in outcomes for pair in zip(ids(o.kept), o.kept["score"].to_pylist(), strict=True)]
        assert kept == expected
        assert [ids(outcome.failed) for outcome in outcomes] == [[], [450], []]


def _case_42(file: str) -> Any:
    text = (CASE_42 / file).read_text()
    return json.loads(text) if file.endswith(".json") else [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("chunk_rows", [1, 4])
def test_case_42(made_pool: MakePool, tmp_path: Path, chunk_rows: int) -> None:
    rows, expected = _case_42("input.jsonl"), _case_42("expected.jsonl")
    scored = table_of(
        {
            "row_id": [str(row["id"]) for row in rows],
            **{name: [row[name] for row in rows] for name in rows[0]},
        },
        {"row_id": "string", "id": "int64", "text": "string"},
    )
    request = ReplicaRequest(2, num_gpus=0.5, chunk_rows=chunk_rows)
    for behaviour in ("input.behaviour.json", "input.behaviour_poison.json"):
        faults = {name: ids_ for name, ids_ in _case_42(behaviour).items() if name.startswith("crash")}
        done = made_pool(request, markers=str(tmp_path), **faults).run(scored)
        kept = done.outcome.kept.select(["id", "text", "score"]).to_pylist()
        assert kept == [row for row in expected if row["id"] not in faults["crash_always"]]
        assert ids(done.outcome.failed) == faults["crash_always"]
        assert int(done.notes["replica_deaths"]) >= 1
    assert done.outcome.failed is not None
    assert done.outcome.failed["error_class"].to_pylist() == ["WorkerDied"]
    assert done.outcome.failed["attempts"].to_pylist() == [MAX_ATTEMPTS]


def test_an_operator_that_cannot_be_made_is_one_clear_error(made_pool: MakePool) -> None:
    with pytest.raises(ReplicaError, match=r"FileNotFoundError: weights\.bin"):
        made_pool(ReplicaRequest(2), broken="raise").run(numbered(8))
    with pytest.raises(ConfigError, match="the model is missing"):
        made_pool(ReplicaRequest(1), broken="config").run(numbered(8))


@pytest.mark.parametrize("which", ["one", "all"])
def test_killed_replicas_are_replaced(made_pool: MakePool, which: str) -> None:
    pool = made_pool(ReplicaRequest(2, chunk_rows=5), seconds_a_row=0.01)
    pids: list[int] = []
    while len(pids) < 2:
        pids = sorted(set(pool.run(numbered(20)).outcome.kept["process"].to_pylist()))
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(pool.run, numbered(200))
        _wait_until(lambda: bool(pool._batches) and pool._batches[0].chunks >= 4)
        for pid in pids[: 1 if which == "one" else 2]:
            os.kill(pid, signal.SIGKILL)
        done = running.result(timeout=100)
    killed = 1 if which == "one" else 2
    assert ids(done.outcome.kept) == list(range(200))
    assert done.notes["replica_deaths"] == killed
    assert int(done.notes["redone_chunks"]) <= 2 * killed


def _places(host: RayHost, replicas: int) -> list[ReplicaInfo]:
    """Where so many replicas run; they are ended again."""
    host.open()
    try:
        started = [host.start() for _ in range(replicas)]
        places = [replica.ready.result(timeout=100) for replica in started]
        for replica in started:
            replica.kill()
        return places
    finally:
        host.close()


def test_gpus_are_shared_and_cpu_replicas_see_none(made_pool: MakePool, ray_cluster: RaySettings) -> None:
    operator = Score(FaultParams())
    shared = _places(RayHost("gpus", operator, ReplicaRequest(8, num_gpus=0.25), ray_cluster), 8)
    assert len({place.visible_devices for place in shared}) == 2
    assert all(place.gpus == (place.visible_devices,) for place in shared)
    [alone] = _places(RayHost("cpus", operator, ReplicaRequest(1), ray_cluster), 1)
    assert alone.visible_devices == ""


def test_two_steps_that_want_all_gpus_follow_each_other(made_pool: MakePool) -> None:
    for name in ("first", "second"):
        pool = made_pool(ReplicaRequest(4, num_gpus=1.0), name)
        assert ids(pool.run(numbered(40)).outcome.kept) == list(range(40))
        pool.close()


def test_who_holds_the_gpus_is_told(made_pool: MakePool) -> None:
    holder = made_pool(ReplicaRequest(3, num_gpus=1.0), "holder")
    holder.run(numbered(3))
    _wait_until(lambda: _free("GPU") == 1)
    waiting = made_pool(ReplicaRequest(1, num_gpus=2.0, start_timeout_s=3.0), "waiting")
    with pytest.raises(ReplicaError, match=r"Free now: .*GPU.*Held by: .*3 x 1 GPU by holder of process"):
        waiting.run(numbered(3))


def test_a_request_that_never_fits_is_refused_at_once(made_pool: MakePool) -> None:
    with pytest.raises(ConfigError, match=r"5 x 1 GPU.*4 GPU, 2 CPU on 1 node.*`replicas: 4` would"):
        made_pool(ReplicaRequest(5, num_gpus=1.0)).run(numbered(3))


def test_what_a_replica_logs_comes_back(made_pool: MakePool) -> None:
    done = made_pool(ReplicaRequest(1), log="3 texts were cut").run(numbered(3))
    assert done.notes["replica_log"] == "WARNING scorer: 3 texts were cut"


def test_a_node_that_is_lost_takes_no_rows_with_it(made_pool: MakePool, ray_nodes: Any) -> None:
    node = ray_nodes.add_node(num_cpus=1, resources={"spot": 1}, object_store_memory=STORE_BYTES)
    pool = made_pool(ReplicaRequest(2, resources={"spot": 1}, chunk_rows=5), seconds_a_row=0.01)
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(pool.run, numbered(300))
        _wait_until(lambda: sum(member.is_ready for member in pool._members) == 2)
        ray_nodes.remove_node(node, allow_graceful=False)
        done = running.result(timeout=100)
    assert ids(done.outcome.kept) == list(range(300))
    assert done.outcome.failed is None
    assert done.notes["replica_deaths"] == 1


def test_an_operator_in_python_code(made_pool: MakePool, ray_cluster: RaySettings) -> None:
    with replicated(Score(FaultParams()), replicas=2, num_gpus_per_replica=0.5, ray=ray_cluster) as score:
        assert ids(score.apply(numbered(50)).kept) == list(range(50))
        assert _free("GPU") == GPUS - 1


TWO_STEPS = """
name: two
source: {path: in.jsonl}
batch_rows: 20
steps:
  - {name: lower, type: lowercase}
  - name: score
    type: dataflow_assets_tests.replicas.operators:Score
    params: {log: 3 texts were cut}
    replicas: 2
    num_gpus_per_replica: 0.5
"""


@pytest.fixture
def two_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ray_cluster: RaySettings) -> Path:
    """A file with two steps, whose root is beside it; RAY_ADDRESS is the cluster."""
    monkeypatch.setenv("RAY_ADDRESS", str(ray_cluster.address))
    _write_rows(tmp_path)
    file = tmp_path / "two.yaml"
    file.write_text(TWO_STEPS)
    return file


def _work(file: Path) -> PipelineWork:
    return PipelineWork(load_pipeline(file).with_changes(root=str(file.parent / "data")))


def test_a_batch_in_dagster_tells_of_its_replicas(
    made_pool: MakePool, two_steps: Path, instance: dg.DagsterInstance
) -> None:
    run_pipeline(_work(two_steps), instance)
    event = instance.get_latest_materialization_event(dg.AssetKey(["two", "score"]))
    assert event is not None and event.asset_materialization is not None
    metadata = event.asset_materialization.metadata
    assert int(str(metadata["chunks"].value)) >= 1
    assert "WARNING scorer: 3 texts were cut" in str(metadata["replica_log"].value)


def test_a_request_that_does_not_fit_is_refused_before_any_step(
    made_pool: MakePool, two_steps: Path, instance: dg.DagsterInstance
) -> None:
    two_steps.write_text(TWO_STEPS.replace("per_replica: 0.5", "per_replica: 4"))
    with pytest.raises(ConfigError, match="`replicas: 1` would"):
        run_pipeline(_work(two_steps), instance)
    assert not (two_steps.parent / "data/two/two_step1").exists()


def test_the_resource_of_a_deployment_says_where(
    made_pool: MakePool,
    ray_cluster: RaySettings,
    two_steps: Path,
    instance: dg.DagsterInstance,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    deployed = RayCluster(address=ray_cluster.address)
    monkeypatch.setenv("RAY_ADDRESS", "nowhere:1")
    monkeypatch.setenv("DATAFLOW_RAY", f"{__name__}:DEPLOYED")
    monkeypatch.setattr(sys.modules[__name__], "DEPLOYED", deployed, raising=False)
    run_pipeline(_work(two_steps), instance)
    assert len(list((two_steps.parent / "data/two/two_step2").glob("*.jsonl"))) == 8


PIPELINE = """
name: scored
source: {path: in.jsonl}
batch_rows: 20
steps:
  - name: score
    type: dataflow_assets_tests.replicas.operators:Score
    params: {seconds_a_row: 0.02, raise_on: [33]}
    replicas: 2
    num_gpus_per_replica: 0.5
    chunk_rows: 5
"""


def _command(folder: Path, address: str) -> subprocess.Popen:
    env = environment({"RAY_ADDRESS": address, "DAGSTER_HOME": ""})
    command = [sys.executable, "-m", "dataflow_assets", "run", "scored.yaml", "--root", "data"]
    with open(folder / "output.log", "wb") as log:
        return subprocess.Popen(command, cwd=folder, env=env, stdout=log, stderr=log)


def _commits(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "data/scored/scored_step1/_commits").glob("*.json"))


def _kept(folder: Path) -> list[int]:
    files = sorted((folder / "data/scored/scored_step1").glob("*.jsonl"))
    return [json.loads(line)["id"] for file in files for line in file.read_text().splitlines()]


def _project(folder: Path) -> Path:
    (folder / "scored.yaml").write_text(PIPELINE)
    _write_rows(folder)
    return folder


def _write_rows(folder: Path) -> None:
    rows = ({"id": row, "text": "x" * (row % 7)} for row in range(160))
    (folder / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.slow
def test_a_run_that_is_killed_three_times_goes_on(
    made_pool: MakePool, ray_cluster: RaySettings, tmp_path: Path
) -> None:
    folder = _project(tmp_path)
    for committed in (1, 3, 5):
        run = _command(folder, str(ray_cluster.address))
        _wait_until(lambda: len(_commits(folder)) >= committed, 60.0)  # noqa: B023
        run.kill()
        run.wait()
        _wait_until(lambda: _actors() == [] and _free("GPU") == GPUS)
    before = _commits(folder)
    assert _command(folder, str(ray_cluster.address)).wait() == 5
    assert _kept(folder) == [row for row in range(160) if row != 33]
    assert _commits(folder)[: len(before)] == before
    assert len(_commits(folder)) == 8


def test_a_cluster_of_its_own_ends_with_a_killed_run(tmp_path: Path) -> None:
    folder = _project(tmp_path)
    (folder / "scored.yaml").write_text(PIPELINE.replace("    num_gpus_per_replica: 0.5\n", ""))
    run = _command(folder, "local")
    _wait_until(lambda: bool(_commits(folder)), 100.0)
    # Ray's agents end too, but only after they have tried for a minute to tell the dead cluster about it.
    started = [one for one in psutil.Process(run.pid).children(recursive=True) if "Agent" not in one.name()]
    assert any("raylet" in process.name() for process in started)
    run.kill()
    run.wait()
    _ended, alive = psutil.wait_procs(started, timeout=30)
    assert alive == []
