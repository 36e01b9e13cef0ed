"""The pieces of a data set of Hugging Face: saved to disk, a folder of data files, or of the Hub."""

from pathlib import Path

from dataflow_assets.sources.hub.builder import folder_pieces
from dataflow_assets.sources.hub.online import online_pieces
from dataflow_assets.sources.hub.saved import is_saved, saved_pieces
from dataflow_assets.sources.hub.spec import HubSource
from dataflow_assets.sources.piece import Found, Known


def hub_pieces(spec: HubSource, base_dir: Path, known: Known) -> Found:
    """What the data set is made of; a folder of that name counts first, as in `datasets`.

    Raises SourceError, and ConfigError where the package `datasets` is needed and missing.
    """
    folder = spec.folder(base_dir)
    if folder.is_dir() and is_saved(folder):
        return saved_pieces(spec, folder)
    return folder_pieces(spec, folder) if folder.is_dir() else online_pieces(spec, known)
