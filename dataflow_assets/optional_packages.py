"""Packages that only some steps need: asked for before such a step runs, with the command that helps."""

import importlib.util
from importlib.metadata import PackageNotFoundError, version

from dataflow_assets.errors import ConfigError


def require(package: str, extra: str, asker: str) -> None:
    """Raises ConfigError, with the command to run, where the package is not installed."""
    if importlib.util.find_spec(package) is None:
        raise ConfigError(
            f"{asker} needs the package {package}, which is not installed; "
            f"run `pip install 'dataflow_assets[{extra}]'`"
        )


def version_of(package: str) -> str | None:
    """The version of a package, for fingerprints; None where it is missing."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
