"""Paging, search, soft deletion, and a store that cannot be used."""

import sqlite3
from pathlib import Path

import pytest

from dataflow_assets.batch import table_of
from dataflow_assets.corpora.database import corpus_url
from dataflow_assets.corpora.queries import TurnQuery
from dataflow_assets.corpora.shapes import Shape
from dataflow_assets.corpora.store import Corpora, Dataset, Put, row_hash
from dataflow_assets.corpora.writing import write_back
from dataflow_assets.errors import ConfigError, CorpusError
from dataflow_assets_tests.corpora.marking import filled

TEXTS = ["50% off", "50x off", "a_b", "axb", "Ünïcode 字", "back\\slash", "quote ' \" ;--"]


@pytest.fixture
def texts(corpora: Corpora) -> Dataset:
    """A data set with one turn for each text."""
    dataset = corpora.make_dataset("texts", Shape("columns", "", {"prompt": "q"}))
    rows = {"row_id": [f"t:{number}" for number in range(len(TEXTS))], "q": TEXTS}
    corpora.put(dataset, table_of(rows, {"row_id": "string", "q": "string"}))
    return dataset


def found(corpora: Corpora, dataset: Dataset, **query: object) -> list[str]:
    """The prompts of the turns that fit."""
    return [turn.data_prompt for turn in corpora.turns(dataset, TurnQuery(**query))]  # type: ignore[arg-type]


@pytest.mark.parametrize("text", [*TEXTS, "%", "_", "\\", "字", "'"])
def test_a_text_is_found_as_it_stands(corpora: Corpora, texts: Dataset, text: str) -> None:
    assert found(corpora, texts, text=text) == [one for one in TEXTS if text in one]


def test_case_counts_unless_told(corpora: Corpora, texts: Dataset) -> None:
    assert found(corpora, texts, text="50% OFF") == []
    assert found(corpora, texts, text="50% OFF", ignore_case=True) == ["50% off"]


def test_pages_follow_each_other_without_gap(corpora: Corpora) -> None:
    dataset, pages, after = filled(corpora, 25), [], 0
    while page := corpora.turns(dataset, TurnQuery(), after, 7):
        pages += [(turn.row_identifier, turn.id) for turn in page]
        after = page[-1].id
    assert pages == sorted(pages)
    assert len(set(pages)) == 50


def test_turns_are_found_by_what_they_have_and_lack(corpora: Corpora, texts: Dataset) -> None:
    first = corpora.turns(texts, TurnQuery())[0]
    weighted = [{"id": first.id, "data_weight": 0.5}]
    corpora.database.write(lambda on: write_back(on, texts.id, weighted))
    assert found(corpora, texts, present=["data_weight"]) == TEXTS[:1]
    assert found(corpora, texts, missing=["data_weight"]) == TEXTS[1:]
    assert found(corpora, texts, min_weight=0.5, max_weight=0.5) == TEXTS[:1]
    with pytest.raises(ConfigError, match="no column 'id; drop'"):
        found(corpora, texts, missing=["id; drop"])


def test_a_deleted_conversation_is_not_read_and_comes_back(corpora: Corpora) -> None:
    dataset = filled(corpora, 3)
    before = list(corpora.conversations(dataset))
    assert corpora.mark_deleted(dataset, TurnQuery(rows=[2]), True) == 2
    assert [number for number, _ in corpora.conversations(dataset)] == [1, 3]
    (counts,) = corpora.datasets()
    assert (counts.conversations, counts.turns, counts.deleted_turns) == (2, 4, 2)
    corpora.mark_deleted(dataset, TurnQuery(deleted="only"), False)
    assert list(corpora.conversations(dataset)) == before


def test_a_deleted_turn_is_left_out_of_its_conversation_alone(corpora: Corpora) -> None:
    dataset = filled(corpora, 1)
    first = corpora.turns(dataset, TurnQuery())[0]
    corpora.mark_deleted(dataset, TurnQuery(turn_ids=[first.id]), True)
    ((_, record),) = corpora.conversations(dataset)
    assert [message["content"] for message in record["messages"]] == ["0.1", "0.1"]  # type: ignore[union-attr]


def test_what_was_deleted_stays_so_when_it_is_put_again(corpora: Corpora) -> None:
    dataset = filled(corpora, 2)
    corpora.mark_deleted(dataset, TurnQuery(rows=[1]), True)
    filled(corpora, 2)
    assert [number for number, _ in corpora.conversations(dataset)] == [2]


def test_only_what_is_named_is_kept_and_comes_back(corpora: Corpora, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dataflow_assets.corpora.store._PAGE_ROWS", 2)
    dataset = filled(corpora, 5)
    keys = [corpora.turns(dataset, TurnQuery(rows=[number]))[0].row_key for number in range(1, 6)]

    def keep(*numbers: int) -> Put:
        done = Put()
        for marked in corpora.keep_only(dataset, {row_hash(keys[number - 1]) for number in numbers}):
            done = done.plus(marked)
        return done

    assert keep(2, 3, 5) == Put(deleted=4)
    assert keep(2, 3, 5) == Put()
    assert [number for number, _ in corpora.conversations(dataset)] == [2, 3, 5]
    assert keep(1, 2) == Put(deleted=4, restored=2)
    assert [number for number, _ in corpora.conversations(dataset)] == [1, 2]
    assert keep() == Put(deleted=4)


@pytest.mark.parametrize("name", ["", " a", "a\n", "x" * 191])
def test_a_bad_name_of_a_data_set_is_refused(corpora: Corpora, name: str) -> None:
    with pytest.raises(ConfigError, match="no name of a data set"):
        corpora.make_dataset(name, Shape("messages", "messages"))


def test_an_unknown_data_set_is_refused_with_those_that_are_there(corpora: Corpora) -> None:
    corpora.make_dataset("聊天", Shape("messages", "messages"))
    with pytest.raises(ConfigError, match=r"no data set 'chat'.*'聊天'"):
        corpora.dataset("chat")


def test_no_password_is_in_a_message() -> None:
    with pytest.raises(CorpusError) as error, Corpora("mysql://me:pa55@127.0.0.1:1/x"):
        pass
    assert "pa55" not in str(error.value)
    assert "127.0.0.1/x cannot be read" in str(error.value)


@pytest.mark.parametrize("place", ["oracle://a/b", "mysql://host", "://", "sqlite://"])
def test_another_database_is_refused(place: str) -> None:
    with pytest.raises(ConfigError, match="expected"):
        corpus_url(place)


def test_a_file_that_is_no_store_is_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "other.db") as connection:
        connection.execute("CREATE TABLE people (name)")
    connection.close()
    with pytest.raises(CorpusError, match="a database without corpora"):
        Corpora(str(tmp_path / "other.db"))
    with pytest.raises(CorpusError, match="there are no corpora at"):
        Corpora(str(tmp_path / "none.db"))
    (tmp_path / "text.db").write_text("no database at all " * 100)
    with pytest.raises(CorpusError, match=r"not a database.*put back a copy"):
        Corpora(str(tmp_path / "text.db"))


def test_another_version_is_refused(tmp_path: Path) -> None:
    Corpora(str(tmp_path / "store"), create=True).close()
    with sqlite3.connect(tmp_path / "store") as connection:
        connection.execute("UPDATE corpus_about SET version = 9")
    connection.close()
    with pytest.raises(CorpusError, match="of version 9, expected 1"):
        Corpora(str(tmp_path / "store"))


@pytest.mark.parametrize("shape", [Shape("messages", "messages"), Shape("columns", "", {"prompt": "q"})])
def test_rows_that_would_be_turns_without_a_text_are_refused(corpora: Corpora, shape: Shape) -> None:
    there = corpora.make_dataset("chats", shape)
    with pytest.raises(ConfigError, match="found the columns instruction, output"):
        corpora.dataset_for("chats", None, ["instruction", "output"])
    for columns in (["lang", "messages", "q"], []):
        assert corpora.dataset_for("chats", None, columns) == there
