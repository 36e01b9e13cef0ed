from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from dataflow_assets.torch import FlowDataLoader, FlowDataset, FlowIterableDataset
from dataflow_assets.torch.order import Order
from dataflow_assets.torch.shares import Ranks, Schedule, share_of
from dataflow_assets_tests.torch.made_steps import dataset, ids, made, texts
from dataflow_assets_tests.walk import pipeline, walk

ALL = [f"in:{n + 1}" for n in range(101)]
SIZES = st.lists(st.tuples(st.integers(1, 20), st.integers(1, 50)), min_size=1, max_size=12)


def loader(rows: FlowDataset, **options: Any) -> FlowDataLoader:
    return FlowDataLoader(rows, **{"batch_size": 8, "chunk_rows": 16, **options})


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("world_size", [1, 2])
@pytest.mark.parametrize("workers", [0, 1, 4])
def test_ranks_and_workers_have_each_row_once(
    hundred: FlowDataset, shuffle: bool, workers: int, world_size: int
):
    found: list[str] = []
    for rank in range(world_size):
        mine = loader(hundred, shuffle=shuffle, num_workers=workers, rank=rank, world_size=world_size)
        batches = list(mine)
        assert len(batches) == len(mine)
        found += ids(batches)
    assert Counter(found) == Counter(ALL)


@pytest.mark.parametrize("workers", [0, 1, 4])
@pytest.mark.parametrize("shuffle", [False, True])
def test_the_stream_has_each_row_once_over_ranks_and_workers(
    hundred: FlowDataset, shuffle: bool, workers: int
):
    found: list[str] = []
    for rank in range(2):
        stream = FlowIterableDataset(hundred, shuffle=shuffle, rank=rank, world_size=2)
        batches = DataLoader(stream, batch_size=None, num_workers=workers, collate_fn=lambda row: row)
        found += [row["row_id"] for row in batches]
    assert Counter(found) == Counter(ALL)


def test_without_shuffle_rows_come_in_the_order_of_the_pipeline(hundred: FlowDataset):
    assert ids(loader(hundred, num_workers=2)) == ids(loader(hundred)) == ALL


def test_a_seed_and_an_epoch_have_one_order_and_others_another(hundred: FlowDataset):
    orders = []
    for seed, epoch in ((0, 0), (0, 1), (1, 0)):
        shuffled = loader(hundred, shuffle=True, seed=seed)
        shuffled.set_epoch(epoch)
        orders.append(ids(shuffled))
        again = loader(hundred, shuffle=True, seed=seed)
        again.set_epoch(epoch)
        assert ids(again) == orders[-1]
    assert len({tuple(order) for order in [*orders, ALL]}) == 4


def test_the_next_epoch_begins_by_itself(hundred: FlowDataset):
    shuffled = loader(hundred, shuffle=True)
    first, second = ids(shuffled), ids(shuffled)
    assert (shuffled.epoch, first == second, sorted(first) == sorted(second)) == (2, False, True)


def test_drop_last_gives_every_rank_as_many_full_batches(hundred: FlowDataset):
    ranks = [loader(hundred, drop_last=True, rank=rank, world_size=3) for rank in range(3)]
    assert [[len(batch["text"]) for batch in each] for each in ranks] == [[8] * 4] * 3
    assert {each.rows_left_out for each in ranks} == {101 - 3 * 32}


def test_uneven_shares_differ_by_one_row(hundred: FlowDataset):
    ranks = [ids(loader(hundred, rank=rank, world_size=4)) for rank in range(4)]
    assert sorted(map(len, ranks)) == [25, 25, 25, 26]


NONE_LEFT = {"name": "long", "type": "filter_length", "params": {"min_chars": 1000}}


def test_a_step_without_rows_gives_no_batches(tmp_path: Path):
    made(tmp_path, texts(9))
    none = FlowDataset(walk(pipeline(tmp_path, tmp_path / "in.jsonl", NONE_LEFT, batch_rows=4)).pipeline)
    for options in ({}, {"shuffle": True}, {"num_workers": 1}, {"rank": 1, "world_size": 2}):
        assert (list(loader(none, **options)), len(loader(none, **options))) == ([], 0)


def test_more_ranks_than_rows(tmp_path: Path):
    one = dataset(tmp_path, texts(1))
    ranks = [ids(loader(one, shuffle=True, rank=rank, world_size=3)) for rank in range(3)]
    assert sorted(ranks) == [[], [], ["in:1"]]


@settings(deadline=None)
@given(SIZES, st.none() | st.tuples(st.integers(0, 9)), st.integers(1, 120), st.data())
def test_any_stretch_of_any_pass_is_the_same_rows(blocks, seed, window, data):
    order = Order([rows for rows, _ in blocks], [size for _, size in blocks], seed, window)
    total = order.total
    one_pass = order.locate(total, 2 * total)
    assert set(zip(*map(list, one_pass), strict=True)) == {
        (block, row) for block, (rows, _) in enumerate(blocks) for row in range(rows)
    }
    start = data.draw(st.integers(0, total))
    stop = data.draw(st.integers(start, total))
    part = Order(order.rows, order.sizes, seed, window).locate(total + start, total + stop)
    assert [list(column) for column in part] == [list(column[start:stop]) for column in one_pass]


@given(
    st.integers(0, 500),
    st.integers(1, 9),
    st.integers(1, 40),
    st.integers(1, 5),
    st.integers(1, 7),
    st.booleans(),
)
def test_any_schedule_covers_the_shares_once(total, world_size, batch_rows, chunk_batches, lanes, drop_last):
    found: list[int] = []
    counts = set()
    for rank in range(world_size):
        share = share_of(total, Ranks(rank, world_size), batch_rows, drop_last)
        schedule = Schedule(share, batch_rows, chunk_batches, lanes)
        chunks = [schedule.chunk(turn) for turn in range(schedule.chunks)]
        assert all((chunk.stop - chunk.start) % batch_rows == 0 for chunk in chunks[:-1])
        found += [position for chunk in chunks for position in range(*chunk)]
        counts.add(schedule.batches)
    assert len(found) == len(set(found))
    assert set(found) <= set(range(total))
    left_out = total - len(found)
    assert (left_out == 0 and max(counts) - min(counts) <= 1) if not drop_last else len(counts) == 1
