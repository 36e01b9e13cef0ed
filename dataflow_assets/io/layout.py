"""Where a pipeline's files are: the folder names of one pipeline below its root."""

from dataclasses import dataclass
from pathlib import Path

from dataflow_assets.io.formats import Format
from dataflow_assets.io.names import inside
from dataflow_assets.io.step_folder import COMMITS, StepFolder

MANIFEST = "manifest.json"
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

    def step(self, number: int) -> StepFolder:
        """The folder of a step; 0 is the source. Raises ConfigError where a link leads out of the root."""
        path = self.folder / f"{self.prefix}_step{number}"
        self._check_links(path, "_rejected", "_failed", STATE)
        return StepFolder(path, self.format, self.whole, self.allow_pickle)

    def summaries(self, number: int) -> StepFolder:
        """What a dataset-scope step noted of each batch."""
        return self._state(number, "summaries")

    def verdicts(self, number: int) -> StepFolder:
        """What a dataset-scope step decided for each batch."""
        return self._state(number, "verdicts")

    def _state(self, number: int, name: str) -> StepFolder:
        path = self.step(number).path / STATE / name
        self._check_links(path)
        return StepFolder(path, "parquet")

    def _check_links(self, path: Path, *folders: str) -> None:
        for folder in (path, *(path / name for name in (COMMITS, *folders))):
            inside(self.root, folder)
