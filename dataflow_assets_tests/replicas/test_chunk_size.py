"""How rows are divided between replicas, with a clock that only counts."""

import heapq
import random
from collections.abc import Sequence

import pytest

from dataflow_assets.engines.replicas.chunks import TARGET_S, ChunkSize

ROWS = 4096
OVERHEAD_S = 0.003
EVEN = [0.002] * ROWS
QUARTER_DEAR = [0.02] * (ROWS // 4) + [0.002] * (ROWS - ROWS // 4)
_rare = set(random.Random(5).sample(range(ROWS), 40))
RARE_DEAR = [0.1 if row in _rare else 0.002 for row in range(ROWS)]


def time_with_chunks(costs: Sequence[float], replicas: int, fixed: int | None = None) -> float:
    """When the last replica ends, where each takes the next chunk as soon as it is idle."""
    size = ChunkSize(fixed, replicas)
    clocks = [(0.0, number, 0) for number in range(replicas)]
    given = 0
    while given < len(costs):
        now, number, _ = heapq.heappop(clocks)
        rows = min(size.rows(len(costs) - given), len(costs) - given)
        seconds = sum(costs[given : given + rows])
        size.took(rows, seconds)
        given += rows
        heapq.heappush(clocks, (now + seconds + OVERHEAD_S, number, rows))
    return max(clock for clock, _, _ in clocks)


def time_with_shards(costs: Sequence[float], replicas: int) -> float:
    """When the last replica ends, where each has one contiguous shard."""
    shard = -(-len(costs) // replicas)
    return max(sum(costs[start : start + shard]) for start in range(0, len(costs), shard))


@pytest.mark.parametrize(("replicas", "least"), [(2, 1.9), (4, 3.7)])
def test_even_rows_go_through_nearly_as_many_times_faster(replicas: int, least: float) -> None:
    assert sum(EVEN) / time_with_chunks(EVEN, replicas) >= least


@pytest.mark.parametrize("costs", [QUARTER_DEAR, QUARTER_DEAR[::-1]], ids=["first", "last"])
@pytest.mark.parametrize(("replicas", "least"), [(2, 1.5), (4, 2.9)])
def test_dear_rows_in_one_place_beat_contiguous_shards(
    costs: Sequence[float], replicas: int, least: float
) -> None:
    assert time_with_shards(costs, replicas) / time_with_chunks(costs, replicas) >= least


@pytest.mark.parametrize("replicas", [2, 4])
@pytest.mark.parametrize("costs", [EVEN, RARE_DEAR], ids=["even", "rare"])
def test_no_worse_than_contiguous_shards(costs: Sequence[float], replicas: int) -> None:
    assert time_with_shards(costs, replicas) / time_with_chunks(costs, replicas) >= 0.97


def test_a_given_size_is_kept() -> None:
    size = ChunkSize(7, 4)
    size.took(7, 100.0)
    assert size.rows(1000) == 7


def test_a_chunk_grows_to_a_quarter_of_a_second_and_shrinks_near_the_end() -> None:
    size = ChunkSize(None, 2)
    first = size.rows(10_000)
    size.took(first, first * 0.001)
    assert size.rows(10_000) <= 4 * first
    for _ in range(8):
        size.took(200, 0.2)
    assert size.rows(10_000) == int(TARGET_S / 0.001)
    assert size.rows(200) == 50
    assert size.rows(10) == 20


def test_a_row_dearer_than_any_limit_goes_alone() -> None:
    size = ChunkSize(None, 2)
    size.took(4, 400.0)
    assert size.rows(1000) == 1
