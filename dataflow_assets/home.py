"""The Dagster instance: an existing DAGSTER_HOME, or `.dagster_home` in the working folder."""

import contextlib
import os
import warnings
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from dotenv import dotenv_values
from yaml import YAMLError

from dataflow_assets.errors import ConfigError, StorageError
from dataflow_assets.io.atomic import write_atomically

if TYPE_CHECKING:
    import dagster as dg

HOME_FOLDER = ".dagster_home"
ENV_FILE = ".env"
# Without it Dagster writes one planned event for each partition at the start of a run, and
# partitions that were reused would show as failed for ever.
SETTINGS = {"DAGSTER_EMIT_PARTITION_SUBSET_IN_PLANNED_EVENTS": "true", "DAGSTER_DISABLE_TELEMETRY": "1"}


def ensure_home(folder: Path) -> Path:
    """The Dagster home that holds here; made where there is none, with a `.env` that names it.

    DAGSTER_HOME of the environment comes first, then that of `folder/.env`, then
    `folder/.dagster_home`. Raises ConfigError for a relative one, StorageError.
    """
    named = os.environ.get("DAGSTER_HOME") or dotenv_values(folder / ENV_FILE).get("DAGSTER_HOME")
    home = Path(named) if named else folder.resolve() / HOME_FOLDER
    if not home.is_absolute():
        raise ConfigError(f"DAGSTER_HOME is {str(home)!r}, a relative path; Dagster needs an absolute one")
    try:
        home.mkdir(parents=True, exist_ok=True)
        if not (home / "dagster.yaml").exists():
            write_atomically(home / "dagster.yaml", default_settings().encode())
        if not named:
            _add_to_env(folder / ENV_FILE, {"DAGSTER_HOME": str(home), **SETTINGS})
    except OSError as error:
        raise StorageError(
            f"the Dagster home {home} cannot be made: {error.strerror}; set DAGSTER_HOME"
        ) from error
    os.environ["DAGSTER_HOME"] = str(home)
    os.environ.update(SETTINGS)
    return home


def default_settings() -> str:
    """The dagster.yaml of a new home."""
    return files("dataflow_assets").joinpath("scaffolds/dagster.yaml").read_text()


def _add_to_env(path: Path, values: dict[str, str]) -> None:
    known = dotenv_values(path)
    lines = [f"{name}={value}" for name, value in values.items() if name not in known]
    if lines:
        text = path.read_text() if path.exists() else ""
        separator = "" if not text or text.endswith("\n") else "\n"
        write_atomically(path, f"{text}{separator}{chr(10).join(lines)}\n".encode())


def open_instance(folder: Path) -> "dg.DagsterInstance":
    """The instance of the home that holds in `folder`. Importing Dagster takes about a second."""
    home = ensure_home(folder)
    import dagster as dg

    warnings.filterwarnings("ignore", category=dg.BetaWarning)
    warnings.filterwarnings("ignore", category=dg.PreviewWarning)
    with dagster_errors(home, dg.DagsterError, OSError, YAMLError):
        return dg.DagsterInstance.get()


@contextlib.contextmanager
def dagster_errors(home: str | Path, *more: type[Exception]) -> Iterator[None]:
    """Turns an error of Dagster's database, or one of `more`, into a StorageError that names its home."""
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (SQLAlchemyError, *more) as error:
        reason = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
        raise StorageError(
            f"Dagster cannot use its home {home}: {reason}; make room or give permission, or move a "
            "damaged home away: the next run makes it anew from the commit records"
        ) from error
