"""Which names pipelines and steps may have: as folders, and as Dagster takes them."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from dataflow_assets.pipeline.problems import shown

FOLDER_NAME = r"^[a-z0-9][a-z0-9_-]{0,63}$"
SOURCE = "source"
STATE_SUFFIX = "_state"
_EMAIL = re.compile(r"[a-zA-Z0-9_.+-]+@[a-zA-Z0-9-]+\.[a-zA-Z0-9-.]+")
_DEVICES = {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))}


def identifier(name: str) -> str:
    """The name as Dagster takes it for groups, jobs, sensors and the functions behind assets."""
    return name.replace("-", "_")


def _folder_name(name: str) -> str:
    if not re.fullmatch(FOLDER_NAME[1:-1], name):
        raise ValueError(
            "becomes the name of a folder: expected 1 to 64 of a-z, 0-9, _ and -, "
            f"first a letter or digit (found {shown(name)})"
        )
    if name in _DEVICES:
        raise ValueError(f"becomes the name of a folder, and {name!r} is a device on Windows; take another")
    return name


def _step_name(name: str) -> str:
    if name == SOURCE or identifier(name).endswith(STATE_SUFFIX):
        raise ValueError(
            f"{name!r} is kept for assets of the package ({SOURCE!r}, '…_state' and '…-state'); take another"
        )
    return name


def _owner(name: str) -> str:
    if not (_EMAIL.fullmatch(name) or re.fullmatch(r"team:\S.*", name)):
        raise ValueError(f"expected an e-mail address or `team:NAME` (found {shown(name)})")
    return name


FolderName = Annotated[str, AfterValidator(_folder_name), Field(json_schema_extra={"pattern": FOLDER_NAME})]
StepName = Annotated[FolderName, AfterValidator(_step_name)]
Owner = Annotated[str, AfterValidator(_owner)]
