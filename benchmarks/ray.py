"""Replicas on Ray: rows that sleep, here and through RayOrch in the same go.

    python -m benchmarks.ray [--rows 4096] [--replicas 2 4] [--repeat 3] [--peer-python PATH] [--to FILE.json]

Rows sleep 2 ms (`even`); the first quarter ten times as long (`quarter`); one of a hundred 100 ms
(`rare`). `speedup` is the sum of all sleeps, as one process measures it, over the wall time on warm
replicas, `against_peer` the peer's wall time over ours. `start` has what a cold start takes, from an
idle machine to the first row of a `run`, and what it takes to connect to a warm cluster. `chunk_ms`
is the overhead of a chunk of one row. All walls are medians.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.processes import cost_of
from benchmarks.sleeper import Sleeper
from dataflow_assets.batch import table_of
from dataflow_assets.engines.replicas import ray_connection
from dataflow_assets.engines.replicas.ray_connection import RaySettings
from dataflow_assets.operators.operator import Params
from dataflow_assets.replicated import replicated

_ROW_S = 0.002
_PEER_SCRIPT = Path(__file__).parent / "peers" / "rayorch_sleeper.py"
_CHUNKS = 200
_PIPELINE = """
name: cold
source: {path: in.jsonl}
batch_rows: 1
steps:
  - {name: sleep, type: "benchmarks.sleeper:Sleeper", replicas: 2}
"""


def workloads(rows: int) -> dict[str, list[float]]:
    """The seconds of each row, by the names of the workloads."""
    quarter = rows // 4
    rare = set(random.Random(5).sample(range(rows), max(1, rows // 100)))
    return {
        "even": [_ROW_S] * rows,
        "quarter": [10 * _ROW_S] * quarter + [_ROW_S] * (rows - quarter),
        "rare": [0.1 if row in rare else _ROW_S for row in range(rows)],
    }


def ours(loads: Mapping[str, Sequence[float]], replicas: int, address: str) -> dict[str, float]:
    """The wall seconds of each workload on warm replicas."""
    with replicated(Sleeper(Params()), replicas=replicas, ray=RaySettings(address)) as sleeper:
        sleeper.apply(_table([0.05] * replicas * 8))
        return {name: _timed(lambda: sleeper.apply(_table(seconds))) for name, seconds in loads.items()}  # noqa: B023


def alone(loads: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """The wall seconds of each workload in this process."""
    return {name: _timed(lambda: Sleeper(Params()).apply(_table(s))) for name, s in loads.items()}  # noqa: B023


def peers(loads: Mapping[str, Sequence[float]], replicas: int, python: str) -> dict[str, float]:
    """The same of the peer, on a cluster of its own interpreter."""
    command = [python, str(_PEER_SCRIPT), str(replicas)]
    environment = {**os.environ, "PYTHONPATH": ""}
    run = subprocess.run(
        command, input=json.dumps(list(loads.values())), capture_output=True, text=True, env=environment
    )
    if run.returncode:
        raise RuntimeError(f"the peer ended with {run.returncode}:\n{run.stderr[-3000:]}")
    return dict(zip(loads, json.loads(run.stdout.splitlines()[-1]), strict=True))


def chunk_ms(address: str) -> float:
    """Milliseconds that a chunk of one row takes, where the row takes none."""
    table = _table([0.0] * _CHUNKS)
    with replicated(Sleeper(Params()), replicas=1, chunk_rows=1, ray=RaySettings(address)) as sleeper:
        sleeper.apply(table)
        return round(
            statistics.median(_timed(lambda: sleeper.apply(table)) for _ in range(3)) / _CHUNKS * 1000, 2
        )


def starts(address: str) -> dict[str, float]:
    """Seconds of a whole `run` of one row with a cluster of its own, and of connecting to a warm one."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "cold.yaml").write_text(_PIPELINE)
        (folder / "in.jsonl").write_text('{"seconds": 0.0}\n')
        here = {"PYTHONPATH": str(Path(__file__).parent.parent), "RAY_ADDRESS": "local"}
        command = [sys.executable, "-m", "dataflow_assets", "run", "cold.yaml"]
        cold = cost_of(command, folder, here)
        connect = (
            "import time, ray; t = time.perf_counter(); "
            "from dataflow_assets.engines.replicas.ray_connection import *; "
            f"connect(RaySettings({address!r})); print(time.perf_counter() - t)"
        )
        run = subprocess.run(
            [sys.executable, "-c", connect],
            env={**os.environ, **here},
            capture_output=True,
            text=True,
            check=True,
        )
    return {"cold_run_s": cold.wall_s, "cold_run_cpu_s": cold.cpu_s, "connect_s": round(float(run.stdout), 2)}


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _table(seconds: Sequence[float]):
    columns = {"row_id": [str(row) for row in range(len(seconds))], "seconds": list(seconds)}
    return table_of(columns, {"row_id": "string", "seconds": "float64"})


def _medians(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def measure(rows: int, replicas: int, repeat: int, address: str, peer_python: str | None) -> dict:
    """The entry for one number of replicas; the peer's turns are between ours."""
    loads, mine, theirs = workloads(rows), [], []
    serial = alone(loads)
    for _ in range(repeat):
        mine.append(ours(loads, replicas, address))
        if peer_python:
            theirs.append(peers(loads, replicas, peer_python))
    walls = _medians(mine)
    entry = {
        "replicas": replicas,
        "rows": rows,
        "wall_s": {name: round(wall, 2) for name, wall in walls.items()},
    }
    entry["speedup"] = {name: round(serial[name] / wall, 2) for name, wall in walls.items()}
    if theirs:
        peer = _medians(theirs)
        entry["against_peer"] = {name: round(peer[name] / walls[name], 2) for name in walls}
        entry["peer_speedup"] = {name: round(serial[name] / peer[name], 2) for name in walls}
    return entry


def main() -> None:
    """Measures and prints one JSON line for each number of replicas, and one for the start."""
    from ray.cluster_utils import Cluster

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=4096)
    parser.add_argument("--replicas", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--peer-python", help="interpreter of an environment with open-dataflow and rayorch")
    parser.add_argument("--to", type=Path, help="write all results to this JSON file")
    options = parser.parse_args()
    os.environ.setdefault("RAY_worker_niceness", "0")
    head = {"num_cpus": 4, "include_dashboard": False, "object_store_memory": 100 * 2**20}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    ray_connection.hold()
    try:
        results = []
        for replicas in options.replicas:
            results.append(
                measure(options.rows, replicas, options.repeat, cluster.address, options.peer_python)
            )
            print(json.dumps(results[-1]), flush=True)
        results.append({"start": starts(cluster.address), "chunk_ms": chunk_ms(cluster.address)})
        print(json.dumps(results[-1]), flush=True)
    finally:
        ray_connection.release()
        cluster.shutdown()
    if options.to:
        options.to.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
