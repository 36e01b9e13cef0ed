"""How the steps of a pipeline are profiled, as it declares it."""

from pydantic import BaseModel, ConfigDict, Field, field_validator

from dataflow_assets.errors import ConfigError
from dataflow_assets.operators.registry import import_object


class ProfileSpec(BaseModel):
    """How much of the data is looked at closely, and what is measured beside the usual."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    share: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="Part of the rows that is measured in all ways. Default: 0.25% of the source, at "
        "least 0.5 MB and at most 16 MB of it.",
    )
    tokenizer: str | None = Field(
        default=None,
        min_length=1,
        description="A `tokenizer.json`, a folder with one, or a model in the local cache of Hugging Face: "
        "tokens are then counted, else estimated.",
    )
    measures: dict[str, str] = Field(
        default={},
        description="Own measures by name: functions, as `package.module:name`, that take a row and return a "
        "number or None.",
    )

    @field_validator("measures")
    @classmethod
    def _are_functions(cls, measures: dict[str, str]) -> dict[str, str]:
        for name, path in measures.items():
            try:
                function = import_object(path)
            except ConfigError as error:
                raise ValueError(f"measure {name!r}: {error}") from error
            if not callable(function):
                raise ValueError(
                    f"measure {name!r}: {path!r} is a {type(function).__name__}, expected a function"
                )
        return measures
