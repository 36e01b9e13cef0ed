"""The storage that an operator of open-dataflow reads from and writes to: rows in memory."""

import copy
from typing import TYPE_CHECKING

from dataflow_assets.errors import RunError
from dataflow_assets.operators.opendcai.frames import Given, frame_of

if TYPE_CHECKING:
    import pandas as pd


class MemoryStorage:
    """Has the interface of open-dataflow's `DataFlowStorage` for one call of one operator.

    As with its files, `read` gives the input each time, whatever was written, and what is written last
    counts. `written` is None as long as nothing is.
    """

    file_name_prefix = "dataflow_cache_step"
    cache_path = "."
    cache_type = "jsonl"
    first_entry_file_name = ""
    operator_step = 0
    batch_size = None
    batch_step = 0

    def __init__(self, given: Given) -> None:
        self._given = given
        self.written: pd.DataFrame | None = None

    def read(self, output_type: str = "dataframe") -> object:
        """The rows as a DataFrame, or as a list of dicts; a copy that may be changed in place."""
        columns = {
            name: copy.deepcopy(values) if self._given.kinds[name] == "json" else values
            for name, values in self._given.columns.items()
        }
        frame = frame_of(self._given._replace(columns=columns))
        if output_type == "dataframe":
            return frame
        if output_type == "dict":
            return frame.to_dict(orient="records")
        raise ValueError(f"Unsupported output type: {output_type}")

    def write(self, data: object) -> str:
        """Takes a DataFrame or a list of dicts."""
        import pandas as pd

        if not isinstance(data, list | pd.DataFrame):
            raise RunError(
                f"the operator wrote a {type(data).__name__}; expected a DataFrame or a list of dicts"
            )
        self.written = pd.DataFrame(data)
        return "memory"

    def get_keys_from_dataframe(self) -> list[str]:
        """The names of the columns."""
        return list(self._given.columns)

    def step(self) -> "MemoryStorage":
        """Itself: there is one step."""
        return self

    def reset(self) -> "MemoryStorage":
        """Itself."""
        return self
