"""A data set of a store as a source: conversations or turns, in blocks that are read again when changed."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from dataflow_assets.batch import rows_of
from dataflow_assets.corpora.queries import TurnQuery
from dataflow_assets.corpora.store import Corpora
from dataflow_assets.corpora.writing import write_back
from dataflow_assets.errors import ConfigError, SourceError
from dataflow_assets.sources.piece import NOTHING_KNOWN, Piece
from dataflow_assets.sources.records import read_chunks
from dataflow_assets.sources.sql import corpus_pieces
from dataflow_assets.sources.sql.spec import CorpusSource
from dataflow_assets_tests.corpora.conversations import real_table
from dataflow_assets_tests.corpora.marking import NAME, filled


def spec(place: str, rows: str = "conversations", dataset: str = NAME, **fields: object) -> CorpusSource:
    """The source as a pipeline has it."""
    return CorpusSource(corpus=place, dataset=dataset, rows=rows, **fields)  # type: ignore[arg-type]


def pieces(source: CorpusSource) -> Sequence[Piece]:
    """Its blocks as they are now."""
    return corpus_pieces.corpus_pieces(source, Path.cwd(), NOTHING_KNOWN).pieces


def test_conversations_come_as_they_were_put_in(corpora: Corpora, place: str) -> None:
    table = real_table(40)
    dataset = corpora.dataset_for("chat", None, table.column_names)
    corpora.put(dataset, table)
    source = spec(place, dataset="chat")
    (chunk,) = read_chunks(pieces(source)[0], source)
    assert chunk.table.equals(table.drop_columns(["row_id"]))
    assert chunk.numbers.to_pylist() == list(range(1, 41))


def test_turns_have_row_ids_that_end_in_their_ids(corpora: Corpora, place: str) -> None:
    dataset = filled(corpora, 3)
    source = spec(
        place, "turns", rename={"data_response": "answer"}, columns=["data_response", "turn_taking"]
    )
    (chunk,) = read_chunks(pieces(source)[0], source)
    ids = [turn.id for turn in corpora.turns(dataset, TurnQuery())]
    assert chunk.row_ids is not None
    assert chunk.row_ids.to_pylist() == [f"many_00000:{id}" for id in ids]
    assert rows_of(chunk.table)[0] == {"turn_taking": 0, "answer": "0.0"}


def test_rows_that_come_later_are_not_read(corpora: Corpora, place: str) -> None:
    filled(corpora, 5)
    source = spec(place)
    (piece,) = pieces(source)
    before = piece.states()
    filled(corpora, 5, first=5)
    assert sum(chunk.table.num_rows for chunk in read_chunks(piece, source)) == 5
    piece.check_same(before)


def test_a_change_is_seen_in_its_block_alone(
    corpora: Corpora, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus_pieces, "_BLOCK", 10)
    dataset = filled(corpora, 25)
    before = [piece.states() for piece in pieces(spec(place))]
    turn = corpora.turns(dataset, TurnQuery(rows=[15]))[0]
    corpora.database.write(lambda on: write_back(on, dataset.id, [{"id": turn.id, "data_prompt": "new"}]))
    filled(corpora, 1, first=25)
    after = pieces(spec(place))
    assert [piece.is_still(states) for piece, states in zip(after, before, strict=True)] == [
        True,
        False,
        False,
    ]


def test_the_same_put_again_is_no_change(corpora: Corpora, place: str) -> None:
    dataset = filled(corpora, 25)
    (piece,) = pieces(spec(place))
    before = piece.states()
    turn = corpora.turns(dataset, TurnQuery(rows=[15]))[0]
    filled(corpora, 25)
    assert pieces(spec(place))[0].is_still(before)
    read = [{"id": turn.id, "data_prompt": "new", "revision": turn.revision}]
    corpora.database.write(lambda on: write_back(on, dataset.id, read))
    filled(corpora, 25)
    assert not pieces(spec(place))[0].is_still(before)
    assert corpora.turns(dataset, TurnQuery(rows=[15]))[0].data_prompt == "14.0"


def test_a_deletion_is_a_change(corpora: Corpora, place: str) -> None:
    dataset = filled(corpora, 3)
    (before,) = pieces(spec(place))
    states = before.states()
    corpora.mark_deleted(dataset, TurnQuery(rows=[2]), True)
    assert not before.is_still(states)
    corpora.mark_deleted(dataset, TurnQuery(rows=[2], deleted="too"), False)
    assert not before.is_still(states)


def test_an_empty_or_unknown_data_set_is_refused(corpora: Corpora, place: str) -> None:
    corpora.dataset_for("none", None, ["messages"])
    with pytest.raises(SourceError, match="'none' is empty"):
        pieces(spec(place, dataset="none"))
    with pytest.raises(ConfigError, match="no data set 'other'"):
        pieces(spec(place, dataset="other"))


def test_a_data_set_that_was_made_anew_is_a_change(tmp_path: Path) -> None:
    states = []
    for name in ("before.sqlite", "after.sqlite"):
        with Corpora(str(tmp_path / name), create=True) as corpora:
            filled(corpora, 3)
        states.append(pieces(spec(str(tmp_path / name)))[0].states())
    assert states[0] != states[1]


def test_the_place_is_in_no_setting(place: str) -> None:
    source = spec(place)
    assert place not in str(source.settings())
    assert place not in repr(source)
