"""Answers come back as they were put, in SQLite and in PostgreSQL."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dataflow_assets.errors import LedgerError
from dataflow_assets.serving.calls import Answer
from dataflow_assets.serving.ledger import Ledger
from dataflow_assets_tests.serving.ledger.answers import ANSWER, get, held, put

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
COUNTS = st.integers(0, 10**9)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
ANSWERS = st.builds(
    Answer,
    texts=st.lists(TEXTS | st.sampled_from(["", "你好，世界", "\x00\x1b[2J\u2028", "\U0001f375"])).map(tuple),
    tokens_in=COUNTS,
    tokens_out=COUNTS,
    model=TEXTS,
    finish_reasons=st.lists(TEXTS).map(tuple),
    vector=st.none() | st.lists(FLOATS, max_size=5).map(tuple),
    cost=st.floats(0, 1e6),
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(answers=st.dictionaries(st.text("0123456789abcdef", min_size=1), ANSWERS, min_size=1, max_size=8))
def test_every_answer_comes_back_as_it_was(ledger: Ledger, answers: dict[str, Answer]) -> None:
    for key, answer in answers.items():
        put(ledger, key, answer=answer)
    expected = [replace(answer, cached=True) for answer in answers.values()]
    assert get(ledger, *answers) == expected


def test_what_was_never_put_is_not_found(ledger: Ledger) -> None:
    put(ledger, "a")
    assert get(ledger, "b", "a", "b") == [None, replace(ANSWER, cached=True), None]


def test_a_thousand_looked_up_at_once_are_all_found(ledger: Ledger) -> None:
    keys = [f"{number:032x}" for number in range(1200)]
    put(ledger, *keys)
    assert None not in get(ledger, *keys)


def test_a_later_answer_replaces_the_earlier(ledger: Ledger) -> None:
    put(ledger, "a")
    put(ledger, "a", answer=replace(ANSWER, texts=("no",)))
    assert get(ledger, "a") == [replace(ANSWER, texts=("no",), cached=True)]


def test_the_last_of_two_at_once_stays(ledger: Ledger) -> None:
    put(ledger, "a", "a", "a")
    assert ledger.stats()[0].answers == 1 and ledger.spent("synthesis@1").calls == 3


def test_answers_are_there_when_it_is_opened_again(place: str) -> None:
    with Ledger(place) as ledger:
        put(ledger, "a", "b")
    assert held(place, "abc") == {"a", "b"}


def test_two_open_ledgers_see_what_the_other_puts(place: str, ledger: Ledger) -> None:
    with Ledger(place) as other:
        put(other, "a")
        assert get(ledger, "a") == [replace(ANSWER, cached=True)]
        put(ledger, "b")
        assert get(other, "b") == [replace(ANSWER, cached=True)]


@pytest.mark.parametrize(
    "answer",
    [
        replace(ANSWER, texts=("\ud83d",)),
        replace(ANSWER, tokens_in=10**30),
        replace(ANSWER, tokens_out=-1),
        replace(ANSWER, cost=float("nan")),
    ],
)
def test_an_answer_that_cannot_be_kept_fails_alone(ledger: Ledger, answer: Answer) -> None:
    put(ledger, "a")
    with pytest.raises(LedgerError):
        put(ledger, "b", answer=answer)
    put(ledger, "c")
    assert [found is None for found in get(ledger, "a", "b", "c")] == [False, True, False]


def test_sync_flushes_the_log_that_holds_the_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[int] = []
    with Ledger.at(tmp_path / "ledger") as ledger:
        put(ledger, "a")
        monkeypatch.setattr(os, "fsync", lambda descriptor: flushed.append(os.fstat(descriptor).st_ino))
        ledger.sync()
        assert flushed == [(tmp_path / "ledger-wal").stat().st_ino, tmp_path.stat().st_ino]


def test_sync_of_postgres_and_of_an_unused_ledger_is_no_error(ledger: Ledger) -> None:
    ledger.sync()
