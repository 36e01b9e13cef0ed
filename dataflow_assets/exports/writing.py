"""Exports a step as a folder of one of the kinds."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from dataflow_assets.errors import ConfigError
from dataflow_assets.exports.folder import whole_folder
from dataflow_assets.exports.hugging_face import write_hugging_face
from dataflow_assets.exports.llama_factory import write_llama_factory
from dataflow_assets.exports.target import check_target
from dataflow_assets.exports.webdataset import write_webdataset
from dataflow_assets.finished_step import finished_step
from dataflow_assets.pipeline_work import PipelineWork

FolderKind = Literal["hf", "webdataset", "llamafactory"]


def export_folder(
    work: PipelineWork,
    step: str | int | None,
    to: Path,
    kind: FolderKind,
    with_row_id: bool = False,
    allow_partial: bool = False,
    named: Mapping[str, str] | None = None,
) -> int:
    """Writes the kept rows of a step (default: the last) as the folder `to`; returns how many.

    The folder is there whole or not at all, and has the same bytes for the same rows. `named` is for
    `llamafactory`, see there. Raises ConfigError, UnwritableValue, StorageError, and RunError as
    `export_step` does.
    """
    if named and kind != "llamafactory":
        raise ConfigError(f"`--column` says what is what for llamafactory; {kind} takes all columns")
    check_target(work, to)
    finished = finished_step(work, step, allow_partial)
    columns = finished.columns(with_row_id)
    with whole_folder(to) as folder:
        if kind == "hf":
            write_hugging_face(work, finished, columns, folder)
        elif kind == "webdataset":
            write_webdataset(finished, columns, folder)
        else:
            data_name = f"{work.pipeline.name}_{finished.name}"
            write_llama_factory(finished, columns, named or {}, data_name, folder)
    return finished.kept.rows
