"""The scheduling of chunks, on replicas that are threads of this process."""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataflow_assets.batch import schema_of
from dataflow_assets.control import Pause, StopFlag
from dataflow_assets.engines.engine import check_law
from dataflow_assets.engines.replicas.chunks import MAX_ATTEMPTS, BatchDone
from dataflow_assets.engines.replicas.in_process import InProcessHost
from dataflow_assets.engines.replicas.pool import MAX_DEATHS_IN_A_ROW, MAX_STARTS, ReplicaPool, _raise
from dataflow_assets.engines.replicas.request import ReplicaRequest
from dataflow_assets.errors import ConfigError, Paused, ReplicaError, Stopped
from dataflow_assets_tests.replicas.operators import FaultParams, Score, maker
from dataflow_assets_tests.replicas.tables import ids, numbered


def made_pool(request: ReplicaRequest, **faults: object) -> tuple[ReplicaPool, InProcessHost]:
    host = InProcessHost(maker(**faults))
    return ReplicaPool("score", Score(FaultParams()), host, request), host


def run_all(pool: ReplicaPool, tables: Sequence[pa.Table]) -> list[BatchDone]:
    """All batches at a time, one thread each, and the pool closed at the end."""
    with ThreadPoolExecutor(max(1, len(tables))) as threads:
        try:
            return list(threads.map(pool.run, tables))
        finally:
            pool.close()


def batches(sizes: Sequence[int]) -> list[pa.Table]:
    return [numbered(size, sum(sizes[:place])) for place, size in enumerate(sizes)]


row_sets = st.sets(st.integers(0, 60), max_size=3).map(sorted)


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 30), min_size=1, max_size=4),
    replicas=st.integers(1, 4),
    chunk_rows=st.none() | st.integers(1, 12),
    raise_on=row_sets,
    crash_once=row_sets,
    crash_always=row_sets,
)
def test_any_faults_leave_the_rows_and_their_order(
    sizes, replicas, chunk_rows, raise_on, crash_once, crash_always
) -> None:
    request = ReplicaRequest(replicas, chunk_rows=chunk_rows)
    faults = {"raise_on": raise_on, "crash_once": crash_once, "crash_always": crash_always}
    pool, host = made_pool(request, **faults)
    tables = batches(sizes)
    for table, done in zip(tables, run_all(pool, tables), strict=True):
        check_law(Score(FaultParams()), table, done.outcome, "test")
        bad = [i for i in ids(table) if i in raise_on or i in crash_always]
        assert ids(done.outcome.kept) == [i for i in ids(table) if i not in bad]
        assert ids(done.outcome.failed) == bad
        kept = zip(ids(done.outcome.kept), done.outcome.kept["score"].to_pylist(), strict=True)
        assert all(score == i + i % 7 for i, score in kept)
    assert host.alive == []


def test_no_rows_need_no_replica() -> None:
    pool, host = made_pool(ReplicaRequest(2))
    done = pool.run(numbered(0))
    assert schema_of(done.outcome.kept)["score"] == "int64"
    assert host.started == 0
    pool.close()


def test_a_row_that_raises_is_alone_in_failed() -> None:
    pool, _ = made_pool(ReplicaRequest(2, chunk_rows=512), raise_on=[1000])
    [done] = run_all(pool, [numbered(2048)])
    assert ids(done.outcome.kept) == [i for i in range(2048) if i != 1000]
    failed = done.outcome.failed
    assert failed is not None
    assert failed["error_message"].to_pylist() == ["row 1000 is bad"]
    assert failed["attempts"].to_pylist() == [1]


def test_a_row_that_ends_its_replica_is_found() -> None:
    pool, host = made_pool(ReplicaRequest(2, chunk_rows=64), crash_always=[100])
    [done] = run_all(pool, [numbered(256)])
    failed = done.outcome.failed
    assert failed is not None
    assert ids(failed) == [100]
    assert failed["error_class"].to_pylist() == ["WorkerDied"]
    assert failed["attempts"].to_pylist() == [MAX_ATTEMPTS]
    deaths = 2 * MAX_ATTEMPTS + 5  # the chunk of 64, its parts of 32, 16, 8, 4 and 2, and the row
    assert done.notes["replica_deaths"] == deaths
    assert host.started == 2 + deaths


def test_only_the_chunk_at_work_is_charged_and_few_are_redone() -> None:
    pool, _ = made_pool(ReplicaRequest(2, chunk_rows=2), crash_once=[10, 50, 90])
    [done] = run_all(pool, [numbered(100)])
    assert done.outcome.failed is None
    assert done.notes["replica_deaths"] == 3
    assert 3 <= int(done.notes["redone_chunks"]) <= 3 * 2


def test_a_constructor_that_raises_is_told_once() -> None:
    pool, host = made_pool(ReplicaRequest(3), broken="raise")
    with pytest.raises(ReplicaError, match=r"'score'.*cannot be made.*FileNotFoundError: weights\.bin"):
        pool.run(numbered(3))
    assert host.started == 3
    with pytest.raises(ReplicaError):
        pool.run(numbered(3))


def test_an_error_of_ours_stays_as_it_is() -> None:
    pool, _ = made_pool(ReplicaRequest(1), broken="config")
    with pytest.raises(ConfigError, match="the model is missing"):
        pool.run(numbered(3))


def test_replicas_that_die_at_their_start_are_started_three_times() -> None:
    pool, host = made_pool(ReplicaRequest(1), broken="die")
    with pytest.raises(ReplicaError, match=f"died {MAX_STARTS} times while it made"):
        pool.run(numbered(3))
    assert host.started == MAX_STARTS


def test_replicas_that_die_of_every_row_end_the_step() -> None:
    pool, host = made_pool(ReplicaRequest(2, chunk_rows=50), crash_always=list(range(500)))
    with pytest.raises(ReplicaError, match="none did a chunk meanwhile"):
        pool.run(numbered(500))
    assert host.started <= MAX_DEATHS_IN_A_ROW + 2
    assert host.alive == []


def test_a_replica_that_is_not_ready_in_time_is_an_error() -> None:
    never = threading.Event()

    def make() -> Score:
        never.wait()
        return Score(FaultParams())

    host = InProcessHost(make)  # pyright: ignore[reportArgumentType]
    pool = ReplicaPool("score", Score(FaultParams()), host, ReplicaRequest(2, start_timeout_s=0.1))
    with pytest.raises(ReplicaError, match=r"0 of 2 replicas were ready within 0\.1 s"):
        pool.run(numbered(3))
    never.set()


def test_a_pause_lets_begun_batches_end_and_begins_no_other() -> None:
    stop = StopFlag()
    pool, _ = made_pool(ReplicaRequest(1, chunk_rows=1), seconds_a_row=0.01)
    pool.begin(stop)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(pool.run, numbered(30))
        while not pool._batches or not pool._batches[0].has_begun:
            time.sleep(0.001)
        stop.paused = Pause("p", "me", "now")
        second = threads.submit(pool.run, numbered(30, 30))
        assert ids(first.result().outcome.kept) == list(range(30))
        with pytest.raises(Paused):
            second.result()
    pool.close()


def test_close_frees_whoever_waits() -> None:
    pool, host = made_pool(ReplicaRequest(1, chunk_rows=1), seconds_a_row=0.05)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(pool.run, numbered(1000))
        while not host.alive:
            time.sleep(0.001)
        pool.close()
        with pytest.raises(Stopped):
            waiting.result()
    with pytest.raises(Stopped):
        pool.run(numbered(1))
    assert host.alive == []


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_replica_that_cannot_be_ended_keeps_nobody_else_alive() -> None:
    pool, host = made_pool(ReplicaRequest(3))
    pool.run(numbered(3))
    closed = threading.Event()
    host.close = closed.set
    stuck = host.alive[0]
    kill, stuck.kill = stuck.kill, lambda: _raise(OSError("no connection"))
    pool.close()
    assert host.alive == [stuck] and closed.is_set()
    kill()


def test_an_answered_chunk_is_not_held() -> None:
    pool, host = made_pool(ReplicaRequest(1, chunk_rows=1))
    pool.run(numbered(20))
    assert host.alive[0]._owed == set()
    pool.close()
