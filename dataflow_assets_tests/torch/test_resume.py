import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataflow_assets.errors import ConfigError
from dataflow_assets.torch import FlowDataLoader, FlowDataset, FlowIterableDataset, FlowMixture
from dataflow_assets_tests.torch.made_steps import dataset, ids, made, texts


def loader(rows: FlowDataset | FlowMixture, **options: Any) -> FlowDataLoader:
    return FlowDataLoader(rows, **{"batch_size": 4, "chunk_rows": 12, "shuffle": True, "seed": 3, **options})


def stopped_after(batches: int, one: FlowDataLoader) -> tuple[dict, list[str]]:
    """The state after so many batches, as a file would hold it, and the ids of the rest."""
    running = iter(one)
    for _ in range(batches):
        next(running)
    state = json.loads(json.dumps(one.state_dict()))
    return state, ids(running)


@pytest.mark.parametrize("workers", [0, 1, 4])
def test_a_resumed_epoch_has_exactly_the_rest(hundred: FlowDataset, workers: int):
    state, rest = stopped_after(11, loader(hundred, num_workers=workers))
    resumed = loader(hundred, num_workers=workers)
    resumed.load_state_dict(state)
    assert ids(resumed) == rest
    assert len(rest) == 101 - 44


def test_the_epochs_after_a_resumed_one_are_those_of_an_undisturbed_run(hundred: FlowDataset):
    undisturbed = loader(hundred)
    state, _ = stopped_after(5, undisturbed)
    resumed = loader(hundred)
    resumed.load_state_dict(state)
    list(resumed)
    assert [ids(resumed), ids(resumed)] == [ids(undisturbed), ids(undisturbed)]
    assert resumed.epoch == 3


def test_another_number_of_workers_goes_on_with_the_same_batches(hundred: FlowDataset):
    state, rest = stopped_after(9, loader(hundred, num_workers=4))
    for workers in (0, 2):
        resumed = loader(hundred, num_workers=workers)
        resumed.load_state_dict(state)
        assert ids(resumed) == rest


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 26), st.integers(1, 9), st.integers(1, 30), st.booleans(), st.booleans())
def test_any_moment_can_be_resumed_from(hundred, batches, batch_size, chunk_rows, shuffle, mixed):
    rows = FlowMixture([hundred, hundred], [2, 1]) if mixed else hundred
    options = {"batch_size": batch_size, "chunk_rows": chunk_rows, "shuffle": shuffle}
    one = loader(rows, **options)
    state, rest = stopped_after(min(batches, len(one)), one)
    resumed = loader(rows, **options)
    resumed.load_state_dict(state)
    assert ids(resumed) == rest


def test_set_epoch_of_the_resumed_epoch_keeps_the_place_and_another_begins_anew(hundred: FlowDataset):
    state, rest = stopped_after(20, loader(hundred))
    resumed = loader(hundred)
    resumed.load_state_dict(state)
    resumed.set_epoch(0)
    assert ids(resumed) == rest
    resumed.load_state_dict(state)
    resumed.set_epoch(5)
    assert len(ids(resumed)) == 101


def test_a_state_before_the_first_and_after_the_last_batch(hundred: FlowDataset):
    one = loader(hundred)
    fresh = one.state_dict()
    first, second = ids(one), one.state_dict()
    again = loader(hundred)
    again.load_state_dict(fresh)
    assert ids(again) == first
    again.load_state_dict(second)
    assert (again.epoch, ids(again) == first) == (1, False)


def test_breaking_off_and_iterating_again_begins_at_the_beginning(hundred: FlowDataset):
    one = loader(hundred)
    first = next(iter(one))
    assert next(iter(one)) == first


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"seed": 4}, "order"),
        ({"shuffle": False}, "order"),
        ({"batch_size": 5}, "batch size"),
        ({"rank": 0, "world_size": 2}, "world size"),
        ({"drop_last": True}, "drop last"),
    ],
)
def test_the_state_of_another_loader_is_refused(hundred: FlowDataset, options: dict, named: str):
    state, _ = stopped_after(3, loader(hundred))
    with pytest.raises(ConfigError, match=f"another loader: .*{named}"):
        loader(hundred, **options).load_state_dict(state)


def test_the_state_of_other_rows_is_refused(hundred: FlowDataset, tmp_path: Path):
    state, _ = stopped_after(3, loader(hundred))
    changed = texts(101)
    changed[50]["text"] = "another"
    with pytest.raises(ConfigError, match="the rows of the data set differs"):
        loader(dataset(tmp_path, changed)).load_state_dict(state)


def test_the_same_rows_elsewhere_are_the_same_data_set(hundred: FlowDataset, tmp_path: Path):
    state, rest = stopped_after(3, loader(hundred))
    moved = loader(FlowDataset(made(tmp_path, texts(101)).pipeline))
    moved.load_state_dict(state)
    assert ids(moved) == rest


def test_what_is_no_state_is_refused(hundred: FlowDataset):
    with pytest.raises(ConfigError, match="no state of this loader"):
        loader(hundred).load_state_dict({"epoch": 1})


def test_a_stream_resumes_behind_the_last_row(hundred: FlowDataset):
    stream = FlowIterableDataset(hundred, shuffle=True, seed=2)
    running = iter(stream)
    for _ in range(40):
        next(running)
    state = stream.state_dict()
    rest = list(running)
    resumed = FlowIterableDataset(hundred, shuffle=True, seed=2)
    resumed.load_state_dict(state)
    assert list(resumed) == rest
    assert len(list(resumed)) == 101
