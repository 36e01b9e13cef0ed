"""Writes the report and the data card, each whole or not at all."""

from pathlib import Path

from dataflow_assets.errors import ConfigError
from dataflow_assets.exports.target import check_not_read
from dataflow_assets.io.atomic import make_folder, write_atomically
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets.report.card import card_of
from dataflow_assets.report.gather import gather
from dataflow_assets.report.page import page_of

_ENDINGS = {"page": (".html", ".htm"), "card": (".md",)}


def write_report(work: PipelineWork, to: Path | None, card: Path | None) -> list[Path]:
    """Writes what is asked for and gives the files.

    Raises ConfigError for another ending and over what the pipeline reads, StorageError.
    """
    for kind, path in (("page", to), ("card", card)):
        if path is not None and path.suffix.lower() not in _ENDINGS[kind]:
            raise ConfigError(f"{path} ends in {path.suffix!r}; the {kind} is written as {_ENDINGS[kind][0]}")
        if path is not None:
            check_not_read(work, path)
    data = gather(work)
    written = []
    for path, text in ((to, page_of), (card, card_of)):
        if path is not None:
            make_folder(path.absolute().parent)
            write_atomically(path, text(data).encode())
            written.append(path)
    return written
