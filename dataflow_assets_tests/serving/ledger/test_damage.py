"""A ledger that is damaged, foreign or out of reach is refused by name, with what to do."""

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from dataflow_assets.errors import ConfigError, LedgerError
from dataflow_assets.serving.ledger import Ledger
from dataflow_assets_tests.serving.ledger.answers import get, held, put
from dataflow_assets_tests.serving.ledger.postgres import PASSWORD


def _filled(path: Path) -> Path:
    with Ledger.at(path) as ledger:
        put(ledger, *map(str, range(300)))
    return path


def _cut(size: int) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(path.read_bytes()[:size])


def _foreign_database(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE people (name)")
    connection.close()


def _of_another_version(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE ledger_about SET version = 99")
    connection.close()


DAMAGES: dict[str, Callable[[Path], object]] = {
    "empty": _cut(0),
    "cut in the header": _cut(50),
    "cut in the first page": _cut(2000),
    "cut after some pages": _cut(5 * 4096),
    "cut within a page": _cut(9 * 4096 + 17),
    "text": lambda path: path.write_text("answers\n" * 1000),
    "another database": _foreign_database,
    "another version": _of_another_version,
    "folder": lambda path: (path.unlink(), path.mkdir()),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_refused_and_left_as_it_is(tmp_path: Path, damage: str) -> None:
    path = _filled(tmp_path / "ledger")
    DAMAGES[damage](path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(LedgerError, match=f"{path}.*(move the file away|another place)"), Ledger.at(path):
        pass
    assert (path.read_bytes() if path.is_file() else None) == before


def test_a_log_without_its_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    (tmp_path / "ledger-wal").write_bytes(b"frames")
    with pytest.raises(LedgerError, match="ledger-wal"):
        Ledger.at(path)
    assert not path.exists()


def test_damage_in_the_middle_is_told_when_it_is_met(tmp_path: Path) -> None:
    path = _filled(tmp_path / "ledger")
    data = bytearray(path.read_bytes())
    data[4096 * 3 :] = b"\xff" * (len(data) - 4096 * 3)
    path.write_bytes(data)
    with (
        pytest.raises(LedgerError, match=f"{path} cannot be read.*move the file away"),
        Ledger.at(path) as it,
    ):
        get(it, *map(str, range(300)))


def test_something_else_under_a_key_is_told_with_the_key(tmp_path: Path) -> None:
    path = _filled(tmp_path / "ledger")
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE ledger_answers SET answer = x'7b' WHERE key = '7'")
    connection.close()
    with Ledger.at(path) as ledger:
        assert get(ledger, "8") != [None]
        with pytest.raises(LedgerError, match=r"under 7 .*--fresh"):
            get(ledger, "7")


def test_a_ledger_is_made_with_its_folder_and_nothing_else(tmp_path: Path) -> None:
    Ledger.at(tmp_path / "a" / "b" / "ledger.sqlite").close()
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == ["ledger.sqlite"]


def test_a_place_where_no_file_can_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerError, match=r"file/ledger cannot be opened.*another place"):
        Ledger.at(tmp_path / "file" / "ledger")


def test_looking_makes_no_ledger(place: str, tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"no ledger|not a ledger"):
        Ledger(place, create=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "url", ["mysql://u:pa55-w0rd@h/d", "sqlite://", "sqlite:///:memory:", "://pa55-w0rd"]
)
def test_another_kind_of_url_is_a_mistake(url: str) -> None:
    with pytest.raises(ConfigError, match="expected") as error:
        Ledger(url)
    assert PASSWORD not in str(error.value)


def test_a_server_out_of_reach_is_told_without_the_password() -> None:
    with pytest.raises(LedgerError, match=r"127\.0\.0\.1/answers cannot be read.*server") as error:
        Ledger(f"postgresql://someone:{PASSWORD}@127.0.0.1:1/answers?connect_timeout=5")
    assert PASSWORD not in str(error.value)


def test_a_lost_connection_to_the_server_is_made_again(database: str) -> None:
    import psycopg

    with Ledger(database) as ledger:
        put(ledger, "a")
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        put(ledger, "b")
        assert None not in get(ledger, "a", "b")


def test_a_ledger_that_another_process_writes_is_waited_for(tmp_path: Path) -> None:
    path = _filled(tmp_path / "ledger")
    holder = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    holder.execute("BEGIN IMMEDIATE")
    with Ledger.at(path) as ledger:
        letting_go = threading.Timer(0.3, holder.execute, ["COMMIT"])
        letting_go.start()
        put(ledger, "new")
        letting_go.join()
    holder.close()
    assert held(str(path), ["new"]) == {"new"}
