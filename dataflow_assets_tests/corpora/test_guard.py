"""A write that does not name its rows by the ids of rows that are there is refused, and changes nothing."""

from collections.abc import Callable

import pytest

from dataflow_assets.corpora.queries import TurnQuery
from dataflow_assets.corpora.store import Corpora, Dataset
from dataflow_assets.corpora.writing import write_back, write_back_as_read
from dataflow_assets.errors import UnguardedWrite
from dataflow_assets_tests.corpora.marking import filled, responses

Changes = Callable[[list[int]], list[dict[str, object]]]
REFUSED: dict[str, tuple[Changes, str]] = {
    "no id": (lambda ids: [{"data_response": "x"}], "has no id"),
    "an id that is null": (lambda ids: [{"id": None, "data_response": "x"}], "has no id"),
    "an id that is text": (lambda ids: [{"id": "1", "data_response": "x"}], "the id '1'"),
    "an id that is not there": (
        lambda ids: [{"id": ids[0], "data_response": "x"}, {"id": 10**9, "data_response": "x"}],
        "1000000000 is not in this data set",
    ),
    "an id twice": (
        lambda ids: [{"id": ids[0], "data_response": t} for t in "ab"],
        "changes the turn .* twice",
    ),
    "no column": (lambda ids: [{"id": ids[0]}], "names no column"),
    "another column": (lambda ids: [{"id": ids[0], "is_deleted": True}], "names is_deleted"),
    "other columns in each": (
        lambda ids: [{"id": ids[0], "data_response": "x"}, {"id": ids[1], "data_prompt": "x"}],
        "has other columns",
    ),
    "a value of another type": (lambda ids: [{"id": ids[0], "data_response": 3}], "is not text"),
    "a NUL character": (lambda ids: [{"id": ids[0], "data_response": "a\0"}], "holds NUL"),
    "a weight that is infinite": (lambda ids: [{"id": ids[0], "data_weight": float("inf")}], "finite"),
    "an old revision": (
        lambda ids: [{"id": id, "revision": id % 2, "data_response": "x"} for id in ids[:2]],
        "1 of 2 turns were changed by another",
    ),
}


def written(corpora: Corpora, dataset: Dataset, changes: list[dict[str, object]]) -> None:
    """The changes in a transaction."""
    corpora.database.write(lambda connection: write_back(connection, dataset.id, changes))


def written_as_read(corpora: Corpora, dataset: Dataset, changes: list[dict[str, object]]) -> int:
    """The same where nothing is known of what was read."""
    return corpora.database.write(lambda connection: write_back_as_read(connection, dataset.id, changes, {}))


def ids_of(corpora: Corpora, dataset: Dataset) -> list[int]:
    """The ids of its turns."""
    return [turn.id for turn in corpora.turns(dataset, TurnQuery(), limit=100)]


@pytest.mark.parametrize("case", REFUSED)
def test_an_unguarded_write_changes_nothing(corpora: Corpora, case: str) -> None:
    dataset = filled(corpora, 3)
    changes, reason = REFUSED[case]
    before = responses(corpora, dataset)
    with pytest.raises(UnguardedWrite, match=reason):
        written(corpora, dataset, changes(ids_of(corpora, dataset)))
    if case != "an old revision":  # it goes by values
        with pytest.raises(UnguardedWrite, match=reason):
            written_as_read(corpora, dataset, changes(ids_of(corpora, dataset)))
    assert responses(corpora, dataset) == before


@pytest.mark.parametrize("prompt", ["", "0.0"], ids=["another value", "the value it has"])
def test_a_turn_of_another_data_set_is_refused(corpora: Corpora, prompt: str) -> None:
    dataset = filled(corpora, 1)
    other, changes = (
        dataset._replace(id=dataset.id + 1),
        [{"id": ids_of(corpora, dataset)[0], "data_prompt": prompt}],
    )
    for write in (written, written_as_read):
        with pytest.raises(UnguardedWrite, match="is not in this data set"):
            write(corpora, other, changes)


def test_a_guarded_write_changes_its_turns_alone(corpora: Corpora) -> None:
    dataset = filled(corpora, 2, turns=1)
    first, _ = ids_of(corpora, dataset)
    written(corpora, dataset, [{"id": first, "data_response": "new \U0001f600", "data_weight": 0.1}])
    (turn, other) = corpora.turns(dataset, TurnQuery())
    assert (turn.data_response, turn.data_weight, turn.data_prompt) == ("new \U0001f600", 0.1, "0.0")
    assert (other.data_response, other.data_weight) == ("1.0", None)


def test_the_same_values_again_count_as_written(corpora: Corpora) -> None:
    dataset = filled(corpora, 1)
    for _ in range(2):
        written(corpora, dataset, [{"id": ids_of(corpora, dataset)[0], "data_response": "0.0"}])
    assert corpora.row_count(dataset) == 2
