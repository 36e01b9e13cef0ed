"""The numbers of a ledger, its pruning, its export, and what is never in it."""

from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from dataflow_assets.errors import StorageError
from dataflow_assets.serving.ledger import Ledger, Pruned
from dataflow_assets_tests.serving.ledger.answers import ANSWER, ASKED, get, held, put
from dataflow_assets_tests.serving.ledger.test_spend import Clock

DAY_S = 86_400


def test_stats_count_by_model(place: str) -> None:
    clock = Clock()
    with Ledger(place, clock=clock) as ledger:
        put(ledger, "a", "b")
        clock.now += 60
        put(ledger, "c", answer=replace(ANSWER, model="other"))
        put(ledger, "d")
        get(ledger, "a", "a", "c", "x")
    with Ledger(place) as ledger:
        one, other = ledger.stats()
    assert (one.model, one.answers, one.tokens_in, one.tokens_out, one.cost, one.hits) == (
        "m",
        3,
        30,
        6,
        1.5,
        2,
    )
    assert (one.oldest, one.newest) == (1_000_000.0, 1_000_060.0) and one.bytes > 3 * 250
    assert (other.model, other.answers, other.hits) == ("other", 1, 1)


def test_answers_not_used_for_long_are_removed(place: str) -> None:
    clock = Clock()
    with Ledger(place, clock=clock) as ledger:
        put(ledger, "a", "b")
        clock.now += 10 * DAY_S
        put(ledger, "c")
        assert ledger.prune(older_than_s=DAY_S)[:2] == (2, 1)
    assert held(place, "abc") == {"c"}


def test_an_answer_that_was_found_counts_as_used_that_day(place: str) -> None:
    clock = Clock()
    with Ledger(place, clock=clock) as ledger:
        put(ledger, "a", "b", "c")
        clock.now += 10 * DAY_S
        get(ledger, "b", "x")
    with Ledger(place, clock=clock) as ledger:
        assert ledger.prune(older_than_s=5 * DAY_S)[:2] == (2, 1)
    assert held(place, "abc") == {"b"}


def test_the_answers_used_longest_ago_make_room(place: str) -> None:
    clock = Clock()
    with Ledger(place, clock=clock) as ledger:
        for key in "bca":
            put(ledger, key)
            clock.now += 1
        size = ledger.stats()[0].bytes // 3
        assert ledger.prune(max_bytes=2 * size + 10) == Pruned(1, 2, 2 * size)
        assert ledger.prune(max_bytes=2 * size) == Pruned(0, 2, 2 * size)
    assert held(place, "abc") == {"a", "c"}


def test_pruning_by_size_and_age_takes_whichever_is_more(place: str) -> None:
    clock = Clock()
    with Ledger(place, clock=clock) as ledger:
        put(ledger, *(f"a{number}" for number in range(20)))
        clock.now += 10 * DAY_S
        put(ledger, *(f"b{number}" for number in range(20)))
        size = ledger.stats()[0].bytes // 40
        assert ledger.prune(older_than_s=5 * DAY_S, max_bytes=15 * size).removed == 25
        assert ledger.prune(older_than_s=5 * DAY_S, max_bytes=30 * size).removed == 0


def test_pruning_nothing_or_an_empty_ledger_removes_nothing(ledger: Ledger) -> None:
    assert ledger.prune() == ledger.prune(older_than_s=0, max_bytes=0) == Pruned(0, 0, 0)


def test_more_answers_than_one_transaction_removes_go_too(ledger: Ledger) -> None:
    put(ledger, *(f"{number:032x}" for number in range(5500)))
    assert ledger.prune(max_bytes=0) == Pruned(5500, 0, 0)


def test_a_pruned_file_is_smaller(tmp_path: Path) -> None:
    with Ledger.at(tmp_path / "ledger") as ledger:
        put(ledger, *map(str, range(2000)), answer=replace(ANSWER, texts=("x" * 1000,)))
        limit = ledger.stats()[0].bytes // 4
        ledger.prune(max_bytes=limit)
    assert (tmp_path / "ledger").stat().st_size < limit * 1.2


def test_export_writes_a_line_for_each_answer_oldest_first(place: str, tmp_path: Path) -> None:
    clock = Clock()
    with Ledger(place, clock=clock) as ledger:
        put(ledger, "b", answer=replace(ANSWER, texts=("茶\x00\u2028",)))
        clock.now += 1
        put(ledger, "a", answer=replace(ANSWER, texts=(), vector=(0.5, -1.0)))
        assert ledger.export(tmp_path / "new" / "answers.jsonl") == 2
    first, second = map(orjson.loads, (tmp_path / "new" / "answers.jsonl").read_bytes().splitlines())
    where = {"pipeline": "synthesis@1", "step": "write", "model": "m", "request": None}
    took = {"tokens_in": 10, "tokens_out": 2, "cost": 0.5}
    assert first == {
        "key": "b",
        "texts": ["茶\x00\u2028"],
        "vector": None,
        "created_at": 1e6,
        **where,
        **took,
    }
    assert second == {"key": "a", "texts": [], "vector": [0.5, -1.0], "created_at": 1e6 + 1, **where, **took}


def test_export_to_where_nothing_can_be_written_says_so(ledger: Ledger, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="file"):
        ledger.export(tmp_path / "file" / "answers.jsonl")


def test_requests_are_kept_where_that_is_wanted(place: str, tmp_path: Path) -> None:
    with Ledger(place, store_requests=True) as ledger:
        put(ledger, "a")
        ledger.export(tmp_path / "answers.jsonl")
    request = orjson.loads((tmp_path / "answers.jsonl").read_bytes())["request"]
    assert request["messages"] == list(ASKED.messages) and request["kind"] == "chat"


def test_nothing_of_what_was_asked_is_in_the_files_otherwise(tmp_path: Path) -> None:
    with Ledger.at(tmp_path / "ledger") as ledger:
        put(ledger, ASKED.key("m"))
        stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"yes" in stored and b"secret of tea" not in stored
