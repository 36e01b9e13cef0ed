"""What a pipeline says of rows that are made and not read."""

import re

from pydantic import Field, field_validator

from dataflow_assets.sources.reading_spec import ReadingSpec

_FUNCTION = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


class GeneratorSource(ReadingSpec):
    """Rows that a function of the user's makes, an iterator of objects, in the same order each time."""

    generator: str = Field(
        description="The function, as `package.module:function`; it is called with `params` and gives rows "
        "as dicts one after another."
    )
    params: dict[str, object] = Field(
        default={}, description="What the function is called with, by name; a seed for example."
    )
    version: str | None = Field(
        default=None,
        min_length=1,
        description="The version of what the function makes. Without it, the text of the module that defines "
        "it decides: where that changed, the rows are made again.",
    )

    @field_validator("generator")
    @classmethod
    def _is_dotted(cls, generator: str) -> str:
        if not _FUNCTION.fullmatch(generator):
            raise ValueError("expected a function as `package.module:function`")
        return generator


class EmptySource(ReadingSpec):
    """Rows with nothing but `row_id` and `index`, for a pipeline whose first step generates."""

    empty: int = Field(ge=1, description="How many rows; `index` counts them from 0.")

    @property
    def is_far(self) -> bool:
        """Nothing is asked."""
        return False
