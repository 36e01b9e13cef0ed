"""What a pipeline says of a data set of Hugging Face or of ModelScope."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from dataflow_assets.sources.hub.name import DatasetName, dataset_name
from dataflow_assets.sources.reading_spec import ReadingSpec

_COMMIT = re.compile(r"[0-9a-f]{40}")


class HubSource(ReadingSpec):
    """A data set that the package `datasets` reads: of the Hub, saved to disk, or a folder of files."""

    hf: str = Field(
        description="`name[:config][:split]`: a data set of the Hub, a folder that `save_to_disk` wrote, or "
        "a folder of data files with or without a card. `name::split` leaves the config out."
    )
    revision: str | None = Field(
        default=None,
        min_length=1,
        description="Commit, tag or branch of the Hub. A branch is followed; without it, the newest commit "
        "is looked up once and kept in the manifest.",
    )
    class_labels: Literal["number", "name"] = Field(
        default="number", description="What becomes of a ClassLabel: its number, or its name as text."
    )

    @property
    def dataset(self) -> DatasetName:
        """The parts of `hf`."""
        return dataset_name(self.hf)

    def folder(self, base_dir: Path) -> Path:
        """Where the data set is, should it be local."""
        return base_dir / Path(self.dataset.name).expanduser()

    @property
    def commit(self) -> str | None:
        """The commit of the Hub that `revision` names, where it names one and no branch or tag."""
        return self.revision if self.revision and _COMMIT.fullmatch(self.revision) else None

    def never_changes(self, base_dir: Path, pins: Mapping[str, str]) -> bool:
        """A commit of the Hub is what it was; a branch or tag may move, and a folder may change."""
        pinned = pins.get(self.pin)
        fixed = pinned is not None and (self.commit == pinned or self.revision is None)
        return fixed and not self.folder(base_dir).is_dir()

    @property
    def pin(self) -> str:
        """Under which name its commit is kept."""
        return f"hf:{self.dataset.name}"

    @model_validator(mode="after")
    def _has_a_name(self) -> "HubSource":
        dataset_name(self.hf)
        return self


class ModelScopeSource(ReadingSpec):
    """A data set of ModelScope, that the package `modelscope` reads."""

    ms: str = Field(description="`name[:subset][:split]`, for example `modelscope/clue:afqmc:train`.")
    revision: str | None = Field(
        default=None, min_length=1, description="Branch, tag or commit. Default: the newest."
    )

    @property
    def dataset(self) -> DatasetName:
        """The parts of `ms`."""
        return dataset_name(self.ms)

    @model_validator(mode="after")
    def _has_a_name(self) -> "ModelScopeSource":
        dataset_name(self.ms)
        return self
