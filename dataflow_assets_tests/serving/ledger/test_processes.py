"""Real processes: killed, out of room, several at once."""

import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dataflow_assets.serving.ledger import Ledger
from dataflow_assets_tests.crash.command import Running, environment, file_size_limit, finish
from dataflow_assets_tests.dagster_side.waiting import wait_until
from dataflow_assets_tests.serving.ledger.answers import ANSWER, WHERE, get, held, put

PUTTER = "dataflow_assets_tests.serving.ledger.putter"


def _putter(place: str, prefix: str, count: int, preexec_fn: Callable[[], None] | None = None) -> Running:
    arguments = [sys.executable, "-m", PUTTER, place, prefix, str(count)]
    return Running(arguments, env=environment(), preexec_fn=preexec_fn)


@pytest.mark.parametrize("seed", range(3))
def test_every_put_that_returned_survives_a_kill(place: str, seed: int) -> None:
    putter = _putter(place, "k", 10**9)
    enough = random.Random(seed).randint(1, 3000)
    wait_until(lambda: putter.texts()[0].count("\n") >= enough, every_s=0.01)
    putter.kill()
    ended = finish(putter)
    returned = ended.out.split()
    assert ended.code == -signal.SIGKILL and len(returned) >= enough
    assert held(place, returned) == set(returned)


def test_spend_after_a_kill_is_that_of_the_answers(place: str) -> None:
    putter = _putter(place, "k", 10**9)
    wait_until(lambda: putter.texts()[0].count("\n") >= 500, every_s=0.01)
    putter.kill()
    finish(putter)
    with Ledger(place) as ledger:
        answers = ledger.stats()[0].answers
        assert ledger.spent(WHERE.pipeline) == (answers, 10 * answers, 2 * answers, answers * ANSWER.cost)


def test_processes_that_open_and_write_at_once_lose_nothing(place: str) -> None:
    putters = [_putter(place, prefix, 300) for prefix in "abcd"]
    ended = [finish(putter) for putter in putters]
    assert [(one.code, one.err) for one in ended] == [(0, "")] * 4
    keys = {key for one in ended for key in one.out.split()}
    assert len(keys) == 1200 and held(place, keys) == keys
    with Ledger(place) as ledger:
        assert ledger.spent(WHERE.pipeline).calls == 1200


def test_the_same_keys_written_by_two_processes_are_billed_twice(place: str) -> None:
    putters = [_putter(place, "k", 500) for _ in range(2)]
    assert [finish(putter).code for putter in putters] == [0, 0]
    with Ledger(place) as ledger:
        assert (ledger.stats()[0].answers, ledger.spent(WHERE.pipeline).calls) == (500, 1000)


@pytest.mark.parametrize("limit_bytes", [150_000, 400_000])
def test_a_full_disk_fails_the_put_and_keeps_the_others(tmp_path: Path, limit_bytes: int) -> None:
    path = tmp_path / "ledger"
    Ledger.at(path).close()
    ended = finish(_putter(str(path), "k", 10**9, preexec_fn=file_size_limit(limit_bytes)))
    assert ended.code == 1 and ended.is_clean
    assert f"LedgerError: the ledger {path} cannot be written" in ended.err and "make room" in ended.err
    returned = ended.out.split()
    assert returned and held(str(path), returned) == set(returned)


def test_puts_go_on_when_there_is_room_again(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    finish(_putter(str(path), "k", 10**9, preexec_fn=file_size_limit(150_000)))
    with Ledger.at(path) as ledger:
        put(ledger, "after")
        assert get(ledger, "after") != [None]


def test_no_room_to_make_a_ledger_leaves_none(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    ended = finish(_putter(str(path), "k", 1, preexec_fn=file_size_limit(5000)))
    assert ended.code == 1 and f"the ledger {path} cannot be made" in ended.err
    assert list(tmp_path.iterdir()) == []
