"""Where a pipeline's files are: the folder names of one pipeline below its root."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from dataflow_assets.errors import StorageError
from dataflow_assets.failed_queue.edits import EDITS
from dataflow_assets.io.formats import EXTENSIONS, Format
from dataflow_assets.io.names import inside
from dataflow_assets.io.step_folder import COMMITS, StepFolder
from dataflow_assets.io.storage import storage_of

MANIFEST = "manifest.json"
READING = "reading.json"
WHOLE_KEY = "all"
STATE = "_state"


@dataclass(frozen=True)
class PipelineLayout:
    """The folders of one pipeline: `<root>/<pipeline>/<prefix>_step<N>`.

    `whole` is a pipeline with no batch size: each step is one file `<prefix>_step<N>.<ext>`.
    """

    root: Path
    pipeline: str
    prefix: str
    format: Format = "jsonl"
    whole: bool = False
    allow_pickle: bool = False

    @property
    def folder(self) -> Path:
        """The pipeline's own folder. Raises ConfigError where a link leads out of the root."""
        return inside(self.root, self.root / self.pipeline)

    @property
    def manifest_file(self) -> Path:
        """What was read: the source, its files and batches."""
        return self.folder / MANIFEST

    @property
    def reading_file(self) -> Path:
        """The pieces of the source that a reading which did not end has done."""
        return self.folder / READING

    def step(self, number: int) -> StepFolder:
        """The folder of a step; 0 is the source. Raises ConfigError where a link leads out of the root."""
        path = self._step_path(number)
        self._check_links(path, COMMITS, "_rejected", "_failed", STATE, EDITS)
        return StepFolder(path, self.format, self.whole, self.allow_pickle)

    def leftover_steps(self, steps: int) -> list[str]:
        """The names of step folders, and files of whole steps, whose number is above that of the last step.

        They are left where a pipeline had more steps before. In order of number; raises StorageError.
        """
        endings = "|".join(EXTENSIONS.values())
        ours = re.compile(rf"{re.escape(self.prefix)}_step([1-9][0-9]*)(\.({endings}))?")
        try:
            names = storage_of(self.folder).names_in(self.folder)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StorageError(f"{self.folder} cannot be read: {error.strerror}; give permission") from error
        numbered = ((int(found[1]), name) for name in names if (found := ours.fullmatch(name)))
        return [name for number, name in sorted(numbered) if number > steps]

    def summaries(self, number: int) -> StepFolder:
        """What a dataset-scope step noted of each batch."""
        return self._state(number, "summaries")

    def verdicts(self, number: int) -> StepFolder:
        """What a dataset-scope step decided for each batch."""
        return self._state(number, "verdicts")

    def _state(self, number: int, name: str) -> StepFolder:
        path = self._step_path(number) / STATE / name
        self._check_links(path, COMMITS)
        return StepFolder(path, "parquet")

    def _step_path(self, number: int) -> Path:
        return self.root / self.pipeline / f"{self.prefix}_step{number}"

    def _check_links(self, path: Path, *folders: str) -> None:
        inside(self.root, path)
        for name in folders:
            if os.path.islink(path / name):  # else it is where `path` is
                inside(self.root, path / name)
