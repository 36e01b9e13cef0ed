"""What every kind of source can be told: columns, their names, what bad records do."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator


class ReadingSpec(BaseModel):
    """The fields that all kinds of `source` have; unknown names are refused, values never coerced."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    columns: list[str] | None = Field(
        default=None, description="Only these columns are read, by their names in the source. Default: all."
    )
    rename: dict[str, str] = Field(
        default_factory=dict, description="New names of columns: name in the source -> name in the pipeline."
    )
    on_bad_line: Literal["reject", "fail"] = Field(
        default="reject",
        description="What happens to a record that cannot be read: `reject` sets it aside with its reason, "
        "`fail` ends the run before any work.",
    )

    def settings(self) -> dict[str, object]:
        """What decides the batches beside what the pieces hold, as JSON values without secrets.

        Where it differs, the whole source is read again.
        """
        return {"kind": type(self).__name__, **self.model_dump(mode="json")}

    def shown(self) -> dict[str, object]:
        """The fields that were set, as they may be told: without logins."""
        return self.model_dump(mode="json", exclude_defaults=True)

    @property
    def is_far(self) -> bool:
        """Whether a look at it asks a network, runs code or loads much: nothing that a page does unasked."""
        return True

    def never_changes(self, base_dir: Path, pins: Mapping[str, str]) -> bool:
        """Whether what was read with these pins cannot have changed, so that nobody needs to be asked."""
        return False

    @field_validator("columns")
    @classmethod
    def _columns_are_distinct(cls, columns: list[str] | None) -> list[str] | None:
        if columns is not None and not columns:
            raise ValueError("columns is empty; leave it out to read all columns")
        if twice := _repeated(columns or []):
            raise ValueError(f"columns names {twice} more than once")
        return columns

    @field_validator("rename")
    @classmethod
    def _new_names_are_distinct(cls, rename: dict[str, str]) -> dict[str, str]:
        if twice := _repeated(list(rename.values())):
            raise ValueError(f"rename gives the name {twice} to more than one column")
        if "" in rename.values():
            raise ValueError("rename gives an empty name to a column")
        return rename

    @model_validator(mode="after")
    def _rename_is_read(self) -> "ReadingSpec":
        if self.columns is not None and (unread := sorted(set(self.rename) - set(self.columns))):
            raise ValueError(f"rename names {', '.join(unread)}, which columns does not read")
        return self


def _repeated(names: list[str]) -> str:
    return ", ".join(sorted({repr(name) for name in names if names.count(name) > 1}))
