"""Profiles: batches add up to the whole, samples are near the truth, odd rows stop nothing."""

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from dataflow_assets.batch import table_of
from dataflow_assets.expectations.drift import reference_of
from dataflow_assets.profiles.making import HowToProfile, Pair, labels_of_inputs, profile_of_rows
from dataflow_assets.profiles.profile import Profile, merged, pair_name
from dataflow_assets.profiles.sampling import Labelled, Rates, rates_for
from dataflow_assets.profiles.stored import from_bytes, to_bytes

SCHEMA = {
    "row_id": "string",
    "text": "string",
    "kind": "string",
    "score": "float64",
    "n": "int64",
    "ok": "bool",
    "messages": "json",
}
ASKED = Pair(("q",), "a")
THIN = HowToProfile(Rates(0.2, 0.5))


def rows(count: int, seed: int = 0) -> pa.Table:
    """Rows of all column types: texts of many lengths, some of them twice, with nulls here and there."""
    chance = np.random.default_rng(seed)
    words = ["plain", "words", "of", "a", "text", "中文", "<b>bold</b>", "http://x.org", "12"]
    texts: list[str | None] = []
    for number in range(count):
        length = int(chance.lognormal(3, 1)) + 1
        texts.append(" ".join(chance.choice(words, length)) + f" {number}.")
        if number % 10 == 9:
            texts[-1] = texts[number // 2]
        if number % 50 == 0:
            texts[-1] = None
    turns = [
        [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": text or ""}] for text in texts
    ]
    columns = {
        "row_id": [f"in:{number}" for number in range(count)],
        "text": texts,
        "kind": [["a", "b", "c", None][number % 4] for number in range(count)],
        "score": [float("nan") if number % 30 == 0 else float(chance.normal()) for number in range(count)],
        "n": [int(chance.integers(0, 10**6)) for _ in range(count)],
        "ok": [number % 3 == 0 for number in range(count)],
        "messages": turns,
    }
    return table_of(columns, SCHEMA)


def in_pieces(table: pa.Table, size: int, how: HowToProfile) -> Profile:
    starts = range(0, table.num_rows, size)
    return merged(profile_of_rows(table.slice(start, size), "b", how) for start in starts)


def as_json(profile: Profile) -> dict:
    """The plain values, without what a piece alone knows: which values are frequent in it."""
    found = profile.as_json()
    for column in found["columns"].values():
        if not column.pop("top_is_all", True):
            del column["top"]
    return found


@pytest.mark.parametrize("how", [HowToProfile(), THIN], ids=["all rows", "a sample"])
@pytest.mark.parametrize("size", [7, 100, 999])
def test_batches_add_up_to_the_whole(size: int, how: HowToProfile) -> None:
    table = rows(1000)
    assert as_json(in_pieces(table, size, how)) == as_json(profile_of_rows(table, "b", how))


@pytest.mark.parametrize("size", [10, 40, 400])
@pytest.mark.parametrize("long", [20, 200])
def test_how_short_and_long_titles_are_cut_into_batches_makes_no_difference(size: int, long: int) -> None:
    titles: list[str | None] = ["Wet tea", None] * 200
    titles[:long] = ["All of this is about the tea that we had. Subscribe to our news."] * long
    table = table_of(
        {"row_id": [f"in:{n}" for n in range(400)], "title": titles}, {"row_id": "string", "title": "string"}
    )
    parts, whole = in_pieces(table, size, HowToProfile()), profile_of_rows(table, "b", HowToProfile())
    assert parts.as_json()["columns"] == whole.as_json()["columns"]
    assert reference_of(parts) == reference_of(whole)
    assert parts.boilerplate("title") == long / (200 + long / 2)
    assert ("tokens" in parts.measures_of("title"), "language" in parts.labels_of("title")) == (
        long > 20,
    ) * 2


def test_parts_at_several_rates_add_up_at_the_lowest() -> None:
    table = rows(600)
    mixed = merged(
        [
            profile_of_rows(table.slice(0, 300), "b", HowToProfile()),
            profile_of_rows(table.slice(300), "b", THIN),
        ]
    )
    even = as_json(in_pieces(table, 300, THIN))
    assert as_json(mixed)["columns"]["text"]["measures"] == even["columns"]["text"]["measures"]
    assert mixed.rates == THIN.rates


def test_quantiles_are_within_one_percent_of_their_rank() -> None:
    chance = np.random.default_rng(3)
    values = chance.lognormal(5, 1.2, 100_000)
    table = table_of(
        {"row_id": [f"a:{n}" for n in range(len(values))], "x": values.tolist()},
        {"row_id": "string", "x": "float64"},
    )
    measured = in_pieces(table, 10_000, HowToProfile(rates_for(60_000_000))).as_json()["columns"]["x"]
    ordered = np.sort(values)
    for name, share in {"p05": 0.05, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p95": 0.95}.items():
        rank = np.searchsorted(ordered, measured["measures"]["value"][name]) / len(ordered)
        assert rank == pytest.approx(share, abs=0.01)
    assert measured["measures"]["value"]["mean"] == pytest.approx(values.mean(), rel=1e-5)
    assert measured["measures"]["value"]["max"] == pytest.approx(values.max(), rel=1e-5)


@pytest.mark.parametrize("distinct", [1, 100, 3_000, 8_000, 9_000, 17_000, 80_000, 10**9])
def test_distinct_values_and_duplicates_are_within_three_percent(distinct: int) -> None:
    chance = np.random.default_rng(distinct)
    numbers = chance.integers(0, distinct, 100_000)
    table = table_of(
        {"row_id": [f"a:{n}" for n in range(len(numbers))], "x": [f"value {n}" for n in numbers]},
        {"row_id": "string", "x": "string"},
    )
    measured = in_pieces(table, 10_000, HowToProfile(rates_for(60_000_000))).as_json()["columns"]["x"]
    exact = len(set(numbers.tolist()))
    assert measured["distinct"] == pytest.approx(exact, rel=0.03 if exact > 8192 else 0)
    assert measured["duplicates"] == pytest.approx(1 - exact / len(numbers), abs=0.01)


def test_a_stored_profile_is_read_back_whole() -> None:
    pairs = (Pair(("kind",), "ok"),)
    profile = profile_of_rows(rows(300), "in_b00001", replace(THIN, pairs=pairs))
    profile.content_hash = "hash"
    data = to_bytes(profile, "settings")
    again = from_bytes(data, "in_b00001", "hash", "settings")
    assert again is not None
    assert again.as_json() == profile.as_json()
    assert again.sample.row_ids == profile.sample.row_ids
    name = pair_name(("kind",), "ok")
    assert _plain(again.pairs[name]) == _plain(profile.pairs[name])
    assert again.pairs[name].conflicting.tolist() == [True] * 4
    assert from_bytes(data, "in_b00001", "other rows", "settings") is None
    assert from_bytes(data, "in_b00001", "hash", "other settings") is None


def _plain(pair: Labelled) -> list:
    return [
        pair.inputs.rate,
        *(array.tolist() for array in (*pair.inputs[:2], pair.lowest, pair.highest)),
    ]


def test_a_million_different_inputs_have_a_label_each() -> None:
    numbers = pa.array(range(20_000_000, 21_000_000)).cast(pa.string())
    table = pa.table({"q": pc.binary_join_element_wise("question", numbers, " "), "a": numbers})
    found = merged(
        Profile(part.num_rows, Rates(), merged([]).sample, {}, {"pair": labels_of_inputs(part, ASKED)})
        for part in (table.slice(start, 250_000) for start in range(0, 1_000_000, 250_000))
    ).pairs["pair"]
    assert (len(found.inputs.hashes) > 4096, int(found.conflicting.sum())) == (True, 0)
    assert _plain(found) == _plain(labels_of_inputs(table, ASKED))


@pytest.mark.parametrize("size", [7, 100, 999])
def test_the_labels_of_an_input_add_up_over_batches(size: int) -> None:
    how, table = HowToProfile(pairs=(Pair(("text",), "n"), Pair(("kind",), "ok"))), rows(1000)
    parts, whole = in_pieces(table, size, how).pairs, profile_of_rows(table, "b", how).pairs
    assert {name: _plain(pair) for name, pair in parts.items()} == {
        name: _plain(pair) for name, pair in whole.items()
    }
    counts = [pair.inputs.counts[pair.conflicting].sum() for pair in whole.values()]
    texts = Counter(text for text in table["text"].to_pylist())
    assert counts == [sum(count for count in texts.values() if count > 1), 1000]


def test_labels_and_frequent_values_are_counted_exactly() -> None:
    table = rows(400)
    found = in_pieces(table, 64, THIN).as_json()["columns"]
    kinds = Counter(value for value in table["kind"].to_pylist() if value is not None)
    assert {each["value"]: each["count"] for each in found["kind"]["top"]} == kinds
    assert found["kind"]["nulls"] == 100
    assert {each["value"]: each["count"] for each in found["ok"]["top"]} == {"true": 134, "false": 266}


ODD = {
    "no rows": [],
    "nulls alone": [None, None],
    "empty and blank": ["", "   \n"],
    "one character": ["x", "中"],
    "a megabyte in a line": ["word " * 200_000],
    "marks alone": ["?!...", "。。。"],
    "emoji": ["👨‍👩‍👧‍👦" * 20],
    "right to left": ["שלום עולם", "مرحبا بالعالم"],
    "controls": ["\x00\x1b[31mred", "\u202eabc"],
}


@pytest.mark.parametrize("texts", ODD.values(), ids=ODD)
def test_odd_texts_have_a_profile(texts: list[str | None]) -> None:
    table = table_of(
        {"row_id": [f"a:{n}" for n in range(len(texts))], "text": texts},
        {"row_id": "string", "text": "string"},
    )
    profile = profile_of_rows(table, "b", HowToProfile())
    stored = from_bytes(to_bytes(profile, "s"), "b", None, "s")
    assert stored is not None
    assert stored.as_json() == profile.as_json()
    assert profile.as_json()["columns"]["text"]["nulls"] == texts.count(None)
    json.dumps(merged([profile, profile]).as_json(), allow_nan=False)


@pytest.mark.parametrize(
    "value",
    [
        None,
        1,
        "text",
        [],
        [1, 2],
        [{"role": "user"}],
        [{"role": None, "content": None}],
        [{"role": "user", "content": "\ud800"}],
        {"a": [{"role": "user", "content": "x"}]},
    ],
)
def test_odd_values_of_a_json_column_have_a_profile(value: object) -> None:
    good = [{"role": "user", "content": "Is it so?"}, {"role": "assistant", "content": "It is so"}]
    table = table_of({"row_id": ["a:0", "a:1"], "m": [value, good]}, {"row_id": "string", "m": "json"})
    found = profile_of_rows(table, "b", HowToProfile()).as_json()["columns"]["m"]
    assert found["measures"]["turns"]["max"] == 2
    assert found["measures"]["unfinished"]["max"] == 1


def test_own_measures_are_columns_and_those_that_raise_have_no_value() -> None:
    how = HowToProfile(own={"exclaims": lambda row: str(row["text"]).count("!"), "breaks": lambda row: 1 / 0})
    table = table_of(
        {"row_id": ["a:0", "a:1"], "text": ["Oh!!", "no"]}, {"row_id": "string", "text": "string"}
    )
    found = profile_of_rows(table, "b", how).as_json()["columns"]
    assert found["exclaims"]["measures"]["value"]["max"] == 2
    assert found["breaks"] == {"type": "float64", "nulls": 2, "measures": {}, "shares": {}}


def test_columns_that_a_batch_lacks_are_null_in_it() -> None:
    first = table_of({"row_id": ["a:0"], "x": [1]}, {"row_id": "string", "x": "int64"})
    second = table_of({"row_id": ["a:1"], "y": ["text"]}, {"row_id": "string", "y": "string"})
    both = merged(profile_of_rows(table, "b", HowToProfile()) for table in (first, second))
    assert {name: column.nulls for name, column in both.columns.items()} == {"x": 1, "y": 1}
    assert both.measure("x", "value").tolist() == [1.0]


def test_an_own_measure_does_not_hide_a_column_of_its_name() -> None:
    table = table_of({"row_id": ["a:0"], "x": [1]}, {"row_id": "string", "x": "int64"})
    found = profile_of_rows(table, "b", HowToProfile(own={"x": lambda row: 99})).as_json()["columns"]
    assert found["x"]["measures"]["value"]["max"] == 1


def test_numbers_are_kept_as_they_are() -> None:
    numbers = [1_700_000_000 + n for n in range(5)]
    table = table_of(
        {"row_id": [f"a:{n}" for n in range(5)], "x": numbers}, {"row_id": "string", "x": "int64"}
    )
    how = HowToProfile(own={"own": lambda row: float(row["x"]) + 0.5, "endless": lambda row: float("inf")})  # pyright: ignore[reportArgumentType]
    profile = profile_of_rows(table, "b", how)
    stored = from_bytes(to_bytes(profile, "s"), "b", None, "s")
    assert stored is not None
    for each in (profile, stored, merged([stored, profile_of_rows(table.slice(0, 0), "b", how)])):
        assert each.measure("x", "value").tolist() == numbers
        assert each.measure("own", "value").tolist() == [n + 0.5 for n in numbers]
        assert each.as_json()["columns"]["endless"]["measures"] == {}


def test_numbers_whose_sum_is_beyond_all_floats_have_a_mean() -> None:
    table = table_of(
        {"row_id": [f"a:{n}" for n in range(5)], "x": [1e308] * 5}, {"row_id": "string", "x": "float64"}
    )
    profile = profile_of_rows(table, "b", HowToProfile())
    stored = from_bytes(to_bytes(profile, "s"), "b", None, "s")
    assert stored is not None
    for each in (profile, stored, merged([profile, stored])):
        found = each.as_json()["columns"]["x"]["measures"]["value"]
        assert found["mean"] == pytest.approx(1e308)
        assert np.isfinite(found["p50"])
    json.dumps(profile.as_json(), allow_nan=False)
