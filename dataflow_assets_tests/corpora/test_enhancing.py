"""Enhancement in place: killed, begun by two, or met by other writers, each turn is done exactly once."""

import contextlib
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from sqlalchemy import text

from dataflow_assets.control import StopFlag
from dataflow_assets.corpora.cursors import Cursor
from dataflow_assets.corpora.enhancing import enhance, enhancement, forget_task
from dataflow_assets.corpora.queries import TurnQuery
from dataflow_assets.corpora.store import Corpora, Dataset
from dataflow_assets.corpora.writing import write_back
from dataflow_assets.errors import ConfigError, CorpusError, Stopped, TaskBusy
from dataflow_assets.operators.registry import build_operator
from dataflow_assets_tests.corpora.marking import expected, filled, marking, responses


@contextlib.contextmanager
def worker(place: str, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """A worker in a process of its own, killed at the end."""
    command = [sys.executable, "-m", "dataflow_assets_tests.corpora.worker", place, *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGKILL)


def done(corpora: Corpora, dataset: Dataset, **options: object) -> Cursor:
    """The marking task, done in this process."""
    return enhance(corpora, dataset, marking(**options), StopFlag())  # type: ignore[arg-type]


def test_each_turn_is_written_once_and_no_row_comes_or_goes(corpora: Corpora) -> None:
    dataset = filled(corpora, 40)
    cursor = done(corpora, dataset, batch_rows=7)
    assert (cursor.processed, cursor.changed, cursor.is_done) == (80, 80, True)
    assert responses(corpora, dataset) == expected(40)
    assert corpora.row_count(dataset) == 80


def test_a_task_that_is_done_does_nothing_again(corpora: Corpora) -> None:
    dataset = filled(corpora, 5)
    assert done(corpora, dataset) == done(corpora, dataset)
    assert responses(corpora, dataset) == expected(5)


def kill_and_go_on(corpora: Corpora, place: str, conversations: int, kills: int, batch_rows: int) -> None:
    """Kills workers at random moments, then lets one end; each response must be marked once."""
    moments = random.Random(f"{place[:4]}{kills}")
    dataset = filled(corpora, conversations)
    before = corpora.row_count(dataset)
    for _ in range(kills):
        with worker(place, str(batch_rows)) as process:
            assert process.stdout is not None
            for _ in range(moments.randint(1, 7)):
                assert process.stdout.readline()
            time.sleep(moments.random() * 0.03)  # somewhere within the next batch
    cursor = done(corpora, dataset, batch_rows=batch_rows)
    assert responses(corpora, dataset) == expected(conversations)
    assert corpora.row_count(dataset) == before == cursor.rows_before == cursor.changed


def test_a_task_that_was_killed_is_done_once(corpora: Corpora, place: str) -> None:
    kill_and_go_on(corpora, place, conversations=200, kills=1, batch_rows=20)


@pytest.mark.long
def test_10_000_rows_killed_at_10_random_moments_are_done_once(corpora: Corpora, place: str) -> None:
    kill_and_go_on(corpora, place, conversations=5000, kills=10, batch_rows=100)


def test_of_two_workers_on_one_task_one_is_refused(corpora: Corpora, place: str) -> None:
    dataset = filled(corpora, 20)
    with worker(place, "10", "wait") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "10\n"
        with pytest.raises(TaskBusy, match="'mark' in"):
            enhance(corpora, dataset, marking(10), StopFlag(), wait_s=0)
    assert done(corpora, dataset, batch_rows=10).processed == 40
    assert responses(corpora, dataset) == expected(20)


def test_two_tasks_go_on_side_by_side(corpora: Corpora, place: str) -> None:
    dataset = filled(corpora, 20)
    with worker(place, "10", "wait") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "10\n"
        assert done(corpora, dataset, task="other", batch_rows=9).processed == 40


def test_a_worker_that_lost_its_connection_cannot_write(corpora: Corpora, place: str) -> None:
    if corpora.database.file:
        pytest.skip("SQLite has no connection that could be lost")
    dataset = filled(corpora, 20)
    with Corpora(place) as other:

        def lose(cursor: Cursor) -> None:
            end_all_connections(other)
            done(other, dataset, batch_rows=10)

        with pytest.raises(CorpusError):
            enhance(corpora, dataset, marking(10), StopFlag(), lose)
        assert responses(other, dataset) == expected(20)


def end_all_connections(corpora: Corpora) -> None:
    """Ends those of all others, as a server that restarts does."""
    with corpora.database.engine.connect() as connection:
        if corpora.database.dialect == "postgresql":
            own = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            connection.execute(text(f"{own} AND datname = current_database()"))
            return
        ids = connection.execute(
            text(
                "SELECT id FROM information_schema.processlist "
                "WHERE id <> connection_id() AND user = 'writer'"
            )
        )
        for id in ids.scalars().all():
            connection.execute(text(f"KILL {id}"))


def test_rows_that_come_meanwhile_are_never_met(corpora: Corpora) -> None:
    dataset = filled(corpora, 10)
    added: list[int] = []

    def add(cursor: Cursor) -> None:
        added.append(len(added))
        filled(corpora, 1, first=1000 + len(added))

    cursor = enhance(corpora, dataset, marking(4), StopFlag(), add)
    assert cursor.processed == 20
    assert [text for text in responses(corpora, dataset) if "+" in text] == expected(10)
    assert corpora.row_count(dataset) == 20 + 2 * len(added)


def test_a_row_that_is_removed_from_the_range_is_found_at_the_end(corpora: Corpora) -> None:
    dataset = filled(corpora, 10)

    def remove(cursor: Cursor) -> None:
        with corpora.database.engine.begin() as connection:
            connection.execute(text("DELETE FROM corpus_turns WHERE row_identifier = 1"))

    with pytest.raises(CorpusError, match="began with 20 turns and ends with 18"):
        enhance(corpora, dataset, marking(10), StopFlag(), remove)


def test_a_turn_that_was_changed_meanwhile_is_not_overwritten(corpora: Corpora) -> None:
    dataset = filled(corpora, 4, turns=1)
    work = marking(10)
    real = work.operators[0].apply

    def meanwhile(table):
        query = TurnQuery(rows=[2])
        corpora.mark_deleted(dataset, query, True)
        return real(table)

    work.operators[0].apply = meanwhile  # type: ignore[method-assign]
    with pytest.raises(CorpusError, match="1 of 4 turns were changed by another"):
        enhance(corpora, dataset, work, StopFlag())
    assert responses(corpora, dataset) == ["0.0", "1.0", "2.0", "3.0"]
    assert done(corpora, dataset, batch_rows=10).changed == 3


def test_turns_that_fail_stay_and_are_told_of(corpora: Corpora) -> None:
    dataset = filled(corpora, 3, turns=1)
    turn = corpora.turns(dataset, TurnQuery(rows=[2]))[0]
    corpora.database.write(lambda on: write_back(on, dataset.id, [{"id": turn.id, "data_response": "bad"}]))
    cursor = done(corpora, dataset)
    assert (cursor.changed, cursor.failed) == (2, 1)
    assert [tuple(one) for one in corpora.left(dataset, "mark", 9)] == [
        (turn.id, "failed", "ValueError: a bad text")
    ]
    assert responses(corpora, dataset) == ["0.0+", "bad", "2.0+"]


def test_deleted_turns_are_passed_over(corpora: Corpora) -> None:
    dataset = filled(corpora, 3, turns=1)
    assert corpora.mark_deleted(dataset, TurnQuery(rows=[2]), True) == 1
    assert done(corpora, dataset).processed == 2
    assert responses(corpora, dataset) == ["0.0+", "1.0", "2.0+"]


def test_a_signal_stops_it_between_two_batches(corpora: Corpora) -> None:
    dataset, stop = filled(corpora, 10), StopFlag()

    def raise_flag(cursor: Cursor) -> None:
        stop.signal = signal.SIGTERM

    with pytest.raises(Stopped):
        enhance(corpora, dataset, marking(7), stop, raise_flag)
    assert done(corpora, dataset, batch_rows=7).processed == 20
    assert responses(corpora, dataset) == expected(10)


def test_a_task_is_not_gone_on_with_by_another_operator(corpora: Corpora) -> None:
    dataset = filled(corpora, 2)
    done(corpora, dataset)
    with pytest.raises(ConfigError, match="begun with other operators"):
        done(corpora, dataset, mark="!")
    forget_task(corpora, dataset, "mark", "main")
    assert done(corpora, dataset, mark="!").processed == 4
    assert responses(corpora, dataset) == expected(2, mark="+!")


@pytest.mark.parametrize(
    ("operator", "params", "reason"),
    [
        ("drop_duplicates", {"columns": ["data_response"]}, "gives a row for each row"),
        ("lowercase", {"column": "text"}, "reads text, which is not there"),
        ("filter_length", {"column": "data_prompt", "min_chars": 1}, "change no column of turns"),
    ],
)
def test_what_cannot_work_in_place_is_refused_before_anything(
    tmp_path, operator: str, params: dict[str, object], reason: str
) -> None:
    with pytest.raises(ConfigError, match=reason):
        enhancement("many", "t", [build_operator(operator, params, tmp_path)])
