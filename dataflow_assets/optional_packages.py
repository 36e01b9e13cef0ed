"""Packages that only some steps need: asked for when such a step is loaded, with the command that helps."""

import importlib.util

from dataflow_assets.errors import ConfigError


def require(package: str, extra: str, asker: str) -> None:
    """Raises ConfigError, with the command to run, where the package is not installed."""
    if importlib.util.find_spec(package) is None:
        raise ConfigError(
            f"{asker} needs the package {package}, which is not installed; "
            f"run `pip install 'dataflow_assets[{extra}]'`"
        )
