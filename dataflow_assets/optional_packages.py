"""Packages that only some steps need: asked for before such a step runs, with the command that helps."""

import importlib.util
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

from dataflow_assets.errors import ConfigError


def require(packages: Mapping[str, str], asker: str) -> None:
    """Raises ConfigError, with the command to run, where one of the packages is not installed.

    Each package is given with the extra that brings it; an empty one means the package by its name.
    """
    missing = [package for package in packages if importlib.util.find_spec(package) is None]
    if not missing:
        return
    extras = sorted({packages[package] for package in missing} - {""})
    wanted = [package for package in missing if not packages[package]]
    wanted += [f"'dataflow_assets[{','.join(extras)}]'"] if extras else []
    raise ConfigError(
        f"{asker} needs {' and '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not installed; "
        f"run `pip install {' '.join(wanted)}`"
    )


def version_of(package: str) -> str | None:
    """The version of a package, for fingerprints; None where it is missing."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
