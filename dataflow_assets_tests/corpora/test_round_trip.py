"""Conversations come back from every database exactly as they went in."""

import pyarrow as pa
import pytest

from dataflow_assets.batch import schema_of, table_of
from dataflow_assets.corpora.queries import TurnQuery
from dataflow_assets.corpora.shapes import Shape, shape_of_columns
from dataflow_assets.corpora.store import Corpora, Dataset, Put
from dataflow_assets.errors import ConfigError, CorpusError, UnwritableValue
from dataflow_assets_tests.corpora.conversations import real_table


def put(corpora: Corpora, table: pa.Table, name: str = "chat") -> Dataset:
    """The data set, after the table was put into it."""
    dataset = corpora.make_dataset(name, shape_of_columns(table.column_names))
    corpora.put(dataset, table)
    return corpora.dataset(name)


def held(corpora: Corpora, dataset: Dataset) -> pa.Table:
    """All of its conversations."""
    return pa.concat_tables(corpora.tables(dataset, page_rows=130))


def same(found: pa.Table, expected: pa.Table) -> bool:
    """Whether the rows and their types are equal; the data set has its columns in its own order."""
    return schema_of(found) == schema_of(expected) and found.equals(expected)


def test_500_real_conversations_come_back_exactly(corpora: Corpora) -> None:
    table = real_table()
    assert table.num_rows == 500
    assert same(held(corpora, put(corpora, table)), table)


def test_what_is_put_again_changes_nothing(corpora: Corpora) -> None:
    table = real_table(60)
    dataset = put(corpora, table)
    before = corpora.row_count(dataset)
    turns = corpora.turns(dataset, TurnQuery(), limit=1000)
    done = corpora.put(dataset, table.slice(7, 30))
    assert done == Put(unchanged=done.unchanged) and done.unchanged >= 30
    assert corpora.row_count(dataset) == before
    assert corpora.turns(dataset, TurnQuery(), limit=1000) == turns
    assert same(held(corpora, dataset), table)


def test_a_conversation_that_got_shorter_loses_its_last_turns(corpora: Corpora) -> None:
    columns = {"row_id": "string", "messages": "json"}
    long = [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]
    dataset = put(corpora, table_of({"row_id": ["1"], "messages": [long]}, columns))
    done = corpora.put(dataset, table_of({"row_id": ["1"], "messages": [long[:1]]}, columns))
    assert done == Put(unchanged=1, removed=1)
    assert list(corpora.conversations(dataset)) == [(1, {"messages": long[:1]})]


@pytest.mark.parametrize("value", ["b", None, "", "A", "a "])
def test_only_the_turn_that_differs_is_replaced(corpora: Corpora, value: str | None) -> None:
    def conversation(text: str | None) -> pa.Table:
        messages = [{"role": "user", "content": text}, {"role": "user", "content": "second"}]
        return table_of({"row_id": ["1"], "messages": [messages]}, {"row_id": "string", "messages": "json"})

    dataset = put(corpora, conversation("a"))
    for table in (conversation(value), conversation("a")):
        assert corpora.put(dataset, table) == Put(replaced=1, unchanged=1)
        assert same(held(corpora, dataset), table)
    assert [turn.revision for turn in corpora.turns(dataset, TurnQuery())] == [2, 0]


@pytest.mark.parametrize(
    "messages",
    [[], None, "no list", {"a": 1}, [None], ["text", 3], [{}], [{"role": None}], [{"role": "user"}], [[]]],
)
def test_what_is_hardly_a_conversation_comes_back_too(tmp_path, messages: object) -> None:
    schema = {"row_id": "string", "messages": "json", "n": "int64"}
    table = table_of({"row_id": ["1"], "messages": [messages], "n": [1]}, schema)
    with Corpora(str(tmp_path / "store"), create=True) as corpora:
        assert same(held(corpora, put(corpora, table)), table)


_ALPACA = Shape("columns", "", {"prompt": "instruction", "response": "output"})


@pytest.mark.parametrize(
    ("columns", "shape"),
    [
        (["conversations", "id"], Shape("sharegpt", "conversations")),
        (
            ["instruction", "input", "output"],
            _ALPACA,
        ),
        (["messages", "tools"], Shape("messages", "messages", {}, "tools")),
    ],
)
def test_the_shape_is_found_by_the_columns(columns: list[str], shape: Shape) -> None:
    assert shape_of_columns(columns) == shape


def test_pairs_in_columns_come_back_exactly(corpora: Corpora) -> None:
    rows = {
        "row_id": ["1", "2", "3", "4"],
        "question": ["a", "", None, "nul \0"],
        "answer": ["b", None, "", "\U0001f600"],
        "weight": [0.1, None, -0.0, 1e300],
    }
    schema = {"row_id": "string", "question": "string", "answer": "string", "weight": "float64"}
    table = table_of(rows, schema)
    assert same(held(corpora, put(corpora, table)), table)


def test_a_sharegpt_turn_is_in_plain_columns(corpora: Corpora) -> None:
    talk = [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]
    table = table_of(
        {"row_id": ["1"], "conversations": [talk]}, {"row_id": "string", "conversations": "json"}
    )
    dataset = put(corpora, table)

    (turn,) = corpora.turns(dataset, TurnQuery())
    assert (turn.data_prompt, turn.data_response, turn.extras) == ("q", "a", None)
    assert same(held(corpora, dataset), table)


def test_a_row_id_that_stands_twice_is_refused(corpora: Corpora) -> None:
    table = real_table(4)
    with pytest.raises(CorpusError, match="'chat:1' stands twice"):
        put(corpora, pa.concat_tables([table, table.slice(0, 1)]))


def test_nan_is_refused_by_name(corpora: Corpora) -> None:
    schema = {"row_id": "string", "question": "string", "score": "float64"}
    table = table_of({"row_id": ["x:1"], "question": ["a"], "score": [float("nan")]}, schema)
    with pytest.raises(UnwritableValue, match="'x:1' holds NaN"):
        put(corpora, table)


def test_another_shape_is_refused(corpora: Corpora) -> None:
    corpora.make_dataset("chat", Shape("messages", "messages"))
    with pytest.raises(ConfigError, match="name another data set"):
        corpora.make_dataset("chat", Shape("sharegpt", "conversations"))
