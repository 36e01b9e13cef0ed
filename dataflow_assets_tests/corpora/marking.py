"""An operator whose work shows when it is done twice, and places with many turns."""

from pydantic import Field

from dataflow_assets.batch import table_of
from dataflow_assets.corpora.enhancing import Enhancement, enhancement
from dataflow_assets.corpora.queries import TurnQuery
from dataflow_assets.corpora.shapes import Shape
from dataflow_assets.corpora.store import Corpora, Dataset
from dataflow_assets.operators.operator import ColumnParams, TextMapper

NAME = "many"
MARK = "+"


class MarkParams(ColumnParams):
    """The mark."""

    column: str = Field("data_response", description="The column.")
    mark: str = Field(MARK, description="What is put behind the text.")


class Marked(TextMapper):
    """Puts a mark behind a text; a text that says so raises."""

    name = "marked"
    Params = MarkParams
    params: MarkParams

    def edit(self, text: str) -> str:
        """The text and the mark."""
        if text == "bad":
            raise ValueError("a bad text")
        return text + self.params.mark


def marking(batch_rows: int = 100, task: str = "mark", mark: str = MARK) -> Enhancement:
    """The enhancement that marks each response."""
    return enhancement(NAME, task, [Marked(MarkParams(mark=mark))], batch_rows=batch_rows)


def filled(corpora: Corpora, conversations: int, turns: int = 2, first: int = 0) -> Dataset:
    """A data set with so many conversations, each response different."""
    dataset = corpora.make_dataset(NAME, Shape("messages", "messages"))
    numbers = range(first, first + conversations)
    talks = [
        [
            {"role": role, "content": f"{number}.{turn}"}
            for turn in range(turns)
            for role in ("user", "assistant")
        ]
        for number in numbers
    ]
    rows = {"row_id": [f"in:{number}" for number in numbers], "messages": talks}
    corpora.put(dataset, table_of(rows, {"row_id": "string", "messages": "json"}))
    return corpora.dataset(NAME)


def responses(corpora: Corpora, dataset: Dataset) -> list[str]:
    """The response of each turn, in order."""
    return [row.data_response for row in corpora.turns(dataset, TurnQuery(deleted="too"), limit=10**6)]


def revisions(corpora: Corpora, dataset: Dataset) -> list[int]:
    """How often each turn was changed, in order."""
    return [row.revision for row in corpora.turns(dataset, TurnQuery(deleted="too"), limit=10**6)]


def expected(conversations: int, turns: int = 2, mark: str = MARK) -> list[str]:
    """What they are when each was marked once."""
    return [f"{number}.{turn}{mark}" for number in range(conversations) for turn in range(turns)]
