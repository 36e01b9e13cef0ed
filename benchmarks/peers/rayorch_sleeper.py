"""The peer of ray.py: open-dataflow's RayAcceleratedOperator on RayOrch, with the same rows.

Run by the interpreter of an environment with open-dataflow and rayorch: REPLICAS, and on the standard
input a JSON list of lists of seconds. Starts a Ray of its own, as ours is. Prints one JSON list: for
each the wall seconds of a run on warm replicas.
"""

import json
import sys
import time

import pandas as pd
import ray  # noqa: TID253  the peer's own environment
from dataflow.core.operator import OperatorABC
from dataflow.rayorch import RayAcceleratedOperator
from dataflow.rayorch.memory_storage import InMemoryStorage


class Sleeper(OperatorABC):
    """Sleeps the `seconds` of each row."""

    def run(self, storage, input_key="seconds"):
        """Writes the rows as they came."""
        rows = storage.read("dataframe")
        for seconds in rows[input_key].tolist():
            time.sleep(seconds)
        storage.write(rows)


replicas = int(sys.argv[1])
workloads = json.load(sys.stdin)
ray.init(
    address="local", num_cpus=4, include_dashboard=False, object_store_memory=100 * 2**20, log_to_driver=False
)
operator = RayAcceleratedOperator(Sleeper, replicas=replicas)


def timed(seconds):
    storage = InMemoryStorage(
        pd.DataFrame({"row_id": list(map(str, range(len(seconds)))), "seconds": seconds})
    )
    started = time.perf_counter()
    operator.run(storage, input_key="seconds")
    wall = time.perf_counter() - started
    assert storage.result["seconds"].tolist() == seconds
    return wall


timed([0.0] * replicas * 4)
print(json.dumps([timed(seconds) for seconds in workloads]), flush=True)
operator.shutdown()
