from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataflow_assets.errors import ConfigError
from dataflow_assets.torch import FlowDataLoader, FlowDataset, FlowMixture
from dataflow_assets.torch.mixing import Mix, counts_of
from dataflow_assets.torch.order import Order
from dataflow_assets_tests.torch.made_steps import dataset, ids


@pytest.fixture(scope="session")
def ten(tmp_path_factory: pytest.TempPathFactory) -> FlowDataset:
    return dataset(tmp_path_factory.mktemp("ten"), [{"text": f"t{n}", "only_here": n} for n in range(10)], 3)


def test_without_weights_each_row_of_each_comes_once(hundred: FlowDataset, ten: FlowDataset):
    mixed = FlowDataLoader(FlowMixture([hundred, ten]), 4, shuffle=True, num_workers=2)
    expected = [f"in:{n + 1}" for n in range(101)] + [f"in:{n + 1}" for n in range(10)]
    assert Counter(ids(mixed)) == Counter(expected)


def test_columns_of_all_with_none_where_one_has_not(hundred: FlowDataset, ten: FlowDataset):
    batches = list(FlowDataLoader(FlowMixture([hundred, ten]), 111))
    assert set(batches[0]) == {"row_id", "text", "said", "rare", "only_here"}
    assert sum(value is not None for value in batches[0]["only_here"]) == 10


def test_weights_are_shares_until_the_first_is_used_up(hundred: FlowDataset, ten: FlowDataset):
    mixture = FlowMixture([hundred, ten], [3, 1])
    assert (mixture.counts, len(mixture)) == ([30, 10], 40)
    assert max(Counter(ids(FlowDataLoader(mixture, 4, shuffle=True))).values()) <= 2


def test_or_until_the_last_is_used_up(hundred: FlowDataset, ten: FlowDataset):
    mixture = FlowMixture([hundred, ten], [1, 1], until="longest")
    assert mixture.counts == [101, 101]
    found = [row for batch in FlowDataLoader(mixture, 4, shuffle=True) for row in batch["only_here"]]
    assert set(Counter(value for value in found if value is not None).values()) == {10, 11}


def test_the_next_epoch_goes_on_where_this_one_ended(hundred: FlowDataset, ten: FlowDataset):
    loader = FlowDataLoader(FlowMixture([hundred, ten], [3, 1]), 4)
    first, second, third = ids(loader), ids(loader), ids(loader)
    once = Counter(f"in:{n + 1}" for n in range(90)) + Counter({f"in:{n + 1}": 3 for n in range(10)})
    assert Counter(first + second + third) == once


@pytest.mark.parametrize(
    "weights",
    [[1], [1, 0], [1, -1], [1, float("nan")], [1, float("inf")], ["1", 1], "12", [None, 1]],
)
def test_weights_that_cannot_be_are_a_mistake(hundred: FlowDataset, ten: FlowDataset, weights: Any):
    with pytest.raises(ConfigError, match="expected a number above 0 for each"):
        FlowMixture([hundred, ten], weights)


@pytest.mark.parametrize("kind", [float, Fraction, Decimal, np.float32, np.int64])
def test_weights_are_numbers_of_any_kind(hundred: FlowDataset, ten: FlowDataset, kind: Callable[[int], Any]):
    assert FlowMixture([hundred, ten], [kind(3), kind(1)]).counts == [30, 10]


def test_an_unknown_end_and_a_mixture_of_nothing_are_mistakes(ten: FlowDataset):
    with pytest.raises(ConfigError, match="'shortest' or 'longest'"):
        FlowMixture([ten], [1], until="never")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigError, match="no data sets"):
        FlowMixture([])


@given(
    st.lists(st.tuples(st.integers(1, 300), st.floats(0.01, 50)), min_size=1, max_size=5),
    st.sampled_from(["shortest", "longest"]),
)
def test_any_weights_give_their_shares(parts, until):
    rows, weights = [rows for rows, _ in parts], [weight for _, weight in parts]
    counts = counts_of(rows, weights, until)
    total = sum(counts)
    for count, weight in zip(counts, weights, strict=True):
        assert abs(count - total * weight / sum(weights)) < 1 + 1e-6 * total
    if until == "shortest":
        assert all(count <= most for count, most in zip(counts, rows, strict=True))
    else:
        assert all(count >= least for count, least in zip(counts, rows, strict=True))


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(0, 2000), min_size=2, max_size=4), st.integers(0, 3), st.data())
def test_any_stretch_of_a_mix_is_that_of_the_whole(counts, epoch, data):
    mix = Mix([Order([50, 7], [1, 1], (1,), 1) for _ in counts], counts, 5)
    sources, (blocks, rows) = mix.locate(epoch, 0, mix.total)
    assert [int((sources == number).sum()) for number in range(len(counts))] == counts
    start = data.draw(st.integers(0, mix.total))
    stop = data.draw(st.integers(start, min(mix.total, start + 1500)))
    part = mix.locate(epoch, start, stop)
    assert list(part.sources) == list(sources[start:stop])
    assert list(part.located.blocks) == list(blocks[start:stop])
    assert list(part.located.rows) == list(rows[start:stop])
