import json
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dataflow_assets.errors import ConfigError, UnwritableValue
from dataflow_assets.torch import FlowDataLoader, FlowDataset, Packing

LENGTHS = st.lists(st.integers(0, 30), min_size=1, max_size=40)


def tokens(rows: list[dict[str, Any]]) -> dict[str, list[list[int]]]:
    """A token for each word."""
    found = [[len(word) for word in row["text"].split()] for row in rows]
    return {"input_ids": found, "labels": [[-token for token in each] for each in found]}


def loader(rows: FlowDataset, length: int = 32, too_long: Any = "refuse", **options: Any) -> FlowDataLoader:
    packing = Packing(length, pad_token_id=9, too_long=too_long)
    options = {"shuffle": True, "chunk_rows": 20, **options}
    return FlowDataLoader(rows, 3, tokenize=tokens, packing=packing, **options)


def unpacked(batches: list[dict[str, Any]]) -> dict[str, list[int]]:
    """The tokens of each row, out of the sequences."""
    found: dict[str, list[int]] = {}
    for batch in batches:
        for number, row_ids in enumerate(batch["row_ids"]):
            place = 0
            for row_id, length, begin in zip(
                row_ids, batch["lengths"][number], batch["begins"][number], strict=True
            ):
                piece = batch["input_ids"][number, place : place + length].tolist()
                assert batch["position_ids"][number, place : place + length].tolist() == list(range(length))
                assert len(found.setdefault(row_id, [])) == begin
                found[row_id] += piece
                place += length
    return found


def of_rows(rows: FlowDataset) -> dict[str, list[int]]:
    every = rows.__getitems__(range(len(rows)))
    made = tokens(every)["input_ids"]
    return {row["row_id"]: each for row, each in zip(every, made, strict=True)}


@pytest.mark.parametrize("too_long", ["refuse", "split"])
@pytest.mark.parametrize("workers", [0, 2])
def test_every_token_is_in_one_sequence_with_its_row(hundred: FlowDataset, too_long: Any, workers: int):
    packed = list(loader(hundred, 16, too_long, num_workers=workers))
    assert unpacked(packed) == of_rows(hundred)
    assert {tuple(batch["input_ids"].shape[1:]) for batch in packed} == {(16,)}


def test_what_is_empty_is_filled_up(hundred: FlowDataset):
    batch = next(iter(loader(hundred)))
    used = [sum(lengths) for lengths in batch["lengths"]]
    for number, end in enumerate(used):
        assert set(batch["input_ids"][number, end:].tolist()) <= {9}
        assert set(batch["labels"][number, end:].tolist()) <= {-100}
        assert torch.equal(batch["labels"][number, :end], -batch["input_ids"][number, :end])


def test_little_is_empty(hundred: FlowDataset):
    lengths = [sum(one) for batch in loader(hundred, chunk_rows=101) for one in batch["lengths"]]
    assert sum(lengths) / (32 * len(lengths)) > 0.95


@pytest.mark.parametrize("batches", [0, 1, 4, 9])
@pytest.mark.parametrize("workers", [0, 2])
def test_packed_epochs_resume_exactly(hundred: FlowDataset, batches: int, workers: int):
    one = loader(hundred, num_workers=workers)
    running = iter(one)
    for _ in range(batches):
        next(running)
    state = json.loads(json.dumps(one.state_dict()))
    rest = [batch["row_ids"] for batch in running]
    resumed = loader(hundred)
    resumed.load_state_dict(state)
    assert [batch["row_ids"] for batch in resumed] == rest


def test_ranks_have_each_row_once(hundred: FlowDataset):
    ranks = [list(loader(hundred, rank=rank, world_size=2)) for rank in range(2)]
    first, second = map(unpacked, ranks)
    assert not first.keys() & second.keys()
    assert first | second == of_rows(hundred)


def test_a_row_that_is_too_long_is_refused_or_cut(hundred: FlowDataset):
    with pytest.raises(UnwritableValue, match=r"row 'in:[0-9]+' has [0-9]+ tokens, a sequence 8"):
        list(loader(hundred, 8))
    cut = unpacked(list(loader(hundred, 8, "truncate")))
    assert cut == {row_id: each[:8] for row_id, each in of_rows(hundred).items()}


def test_how_many_batches_is_not_known_before(hundred: FlowDataset):
    with pytest.raises(TypeError, match="not known before"):
        len(loader(hundred))


def test_a_collate_of_ones_own_gets_sequences(hundred: FlowDataset):
    found = next(iter(loader(hundred, collate_fn=lambda sequences: [list(each) for each in sequences])))
    assert found[0] == ["input_ids", "labels", "position_ids", "row_ids", "lengths", "begins"]


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ({"ids": [[1]]}, "found ids"),
        ({"input_ids": [[1]], "lengths": [[1]]}, "'lengths', which packing makes"),
        ({"input_ids": ["text"]}, "list with one number"),
        ({"input_ids": [[1]], "labels": [[1, 2]]}, "list with one number"),
        ({"input_ids": [5]}, "list with one number"),
    ],
)
def test_examples_that_are_no_tokens_are_a_mistake(made: dict, said: str):
    examples = [dict(zip(made, values, strict=True)) for values in zip(*made.values(), strict=True)]
    with pytest.raises(ConfigError, match=said):
        Packing(8).pack(examples, ["in:1"])


@given(LENGTHS, st.integers(1, 35), st.sampled_from(["truncate", "split"]))
def test_any_lengths_are_packed_whole(lengths, length, too_long):
    ids = [f"in:{number}" for number in range(len(lengths))]
    examples = [{"input_ids": [number] * count} for number, count in enumerate(lengths)]
    sequences = Packing(length, too_long=too_long).pack(examples, ids)
    found = [token for sequence in sequences for token in sequence["input_ids"]]
    kept = [count if too_long == "split" else min(count, length) for count in lengths]
    assert [found.count(number) for number in range(len(lengths))] == kept
    assert {row_id for sequence in sequences for row_id in sequence["row_ids"]} == set(ids)
    assert all(len(sequence["input_ids"]) <= length for sequence in sequences)
