"""Passes: full, of like lengths, in bounded memory, whatever memory there is."""

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow_assets.operators.models.forward_passes import (
    ForwardPasses,
    OutOfMemory,
    is_out_of_memory,
    planned,
)

lengths_lists = st.lists(st.integers(1, 600), max_size=80)


@given(lengths_lists, st.integers(1, 3000))
def test_every_place_is_in_one_pass_and_no_pass_is_too_large(lengths: list[int], limit: int):
    passes = list(planned(lengths, range(len(lengths)), limit))
    assert sorted(place for together in passes for place in together) == list(range(len(lengths)))
    for together in passes:
        of_these = [lengths[place] for place in together]
        padded = max(of_these) * len(of_these)
        assert len(of_these) == 1 or padded <= limit
        assert padded - sum(of_these) <= max(128, 0.1 * sum(of_these))


def test_the_longest_go_first_and_equal_ones_in_their_order():
    assert list(planned([3, 9, 3, 9, 1], range(5), 18)) == [[1, 3], [0, 2, 4]]


@given(lengths_lists, st.integers(1, 3000))
def test_results_come_in_the_order_of_the_sequences(lengths: list[int], limit: int):
    passes = ForwardPasses(limit)
    assert passes.run(lengths, lambda places: [(place, lengths[place]) for place in places]) == list(
        enumerate(lengths)
    )
    assert passes.counts.real_tokens == sum(lengths)


def with_memory_for(
    tokens: int, lengths: Sequence[int], calls: list[int]
) -> Callable[[Sequence[int]], list[int]]:
    def run(places: Sequence[int]) -> list[int]:
        padded = len(places) * max(lengths[place] for place in places)
        calls.append(padded)
        if padded > tokens:
            raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return list(places)

    return run


@given(lengths_lists, st.integers(600, 3000))
def test_when_memory_ends_the_limit_is_halved_and_all_is_done(lengths: list[int], memory: int):
    passes, freed = ForwardPasses(1_000_000, lambda: freed.append(1)), []
    calls: list[int] = []
    assert passes.run(lengths, with_memory_for(memory, lengths, calls)) == list(range(len(lengths)))
    assert len(freed) == passes.counts.halvings == sum(padded > memory for padded in calls)
    assert passes.tokens_per_pass == 1_000_000 or passes.tokens_per_pass <= sum(lengths)


def test_a_row_that_does_not_fit_alone_fails_alone():
    lengths = [10, 5000, 20, 30]
    results = ForwardPasses(10_000).run(lengths, with_memory_for(100, lengths, []))
    assert [isinstance(result, OutOfMemory) for result in results] == [False, True, False, False]
    assert "5000 tokens" in str(results[1]) and results[0] == 0


def test_the_smaller_limit_stays_for_the_next_rows():
    passes, calls = ForwardPasses(1000), []
    lengths = [50] * 20
    passes.run(lengths, with_memory_for(300, lengths, calls))
    failed = sum(padded > 300 for padded in calls)
    passes.run(lengths, with_memory_for(300, lengths, calls))
    assert failed == sum(padded > 300 for padded in calls) == 2 and passes.tokens_per_pass == 250


def test_another_error_is_nobodys_memory():
    def broken(places: Sequence[int]) -> list[int]:
        raise RuntimeError("shapes do not fit")

    with pytest.raises(RuntimeError, match="shapes"):
        ForwardPasses(10).run([1], broken)


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("MPS backend out of memory (MPS allocated: 9 GB)"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate"),
    ],
)
def test_every_device_has_its_own_words_for_it(error: Exception):
    assert is_out_of_memory(error)
