"""The environment of the commands that these tests start."""

import os
from pathlib import Path

import dataflow_assets

REPOSITORY = Path(dataflow_assets.__file__).parents[1]


def with_package_path(**values: str) -> dict[str, str]:
    """This process's environment, in which the package and its tests are found from any folder."""
    path = os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, **values}
