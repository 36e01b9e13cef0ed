"""The exporting command in this process."""

from collections.abc import Callable
from pathlib import Path

import pytest

from dataflow_assets.exports.writing import FolderKind, export_folder
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets_tests.torch.made_steps import Rows, made

Exported = Callable[..., Path]


@pytest.fixture
def exported(tmp_path: Path) -> Exported:
    """`exported(rows, "hf")` writes these rows, and gives the folder."""

    def write(rows: Rows | PipelineWork, kind: FolderKind, **options) -> Path:
        work = rows if isinstance(rows, PipelineWork) else made(tmp_path / "pipeline", rows)
        export_folder(work, options.pop("step", None), tmp_path / "out", kind, **options)
        return tmp_path / "out"

    return write
