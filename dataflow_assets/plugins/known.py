"""Which plugins a run has: those of other packages, of the environment, of the pipeline."""

import inspect
import os
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from dataflow_assets.errors import ConfigError
from dataflow_assets.operators.registry import import_object
from dataflow_assets.pipeline import Pipeline
from dataflow_assets.pipeline.problems import listed, near_names, shown

ENTRY_POINT_GROUP = "dataflow_assets.plugins"
PLUGINS_VARIABLE = "DATAFLOW_PLUGINS"
METRICS_FILE_VARIABLE = "DATAFLOW_METRICS_FILE"
METRICS_PORT_VARIABLE = "DATAFLOW_METRICS_PORT"
_OF_THE_PACKAGE = {
    "metrics": "dataflow_assets.metrics.plugin:MetricsPlugin",
    "mlflow": "dataflow_assets.plugins.mlflow_runs:MLflowPlugin",
    "otel": "dataflow_assets.plugins.otel_spans:OTelPlugin",
}

Settings = Mapping[str, object]


def wanted_plugins(pipeline: Pipeline) -> dict[str, Settings]:
    """The names of the plugins of a run, with the settings of each. Raises ConfigError for an unknown name.

    Those of other packages are on once they are installed; `package.module:Class` is one of your own. The
    pipeline's `plugins` comes last:
    settings go over those of the environment, `false` switches a plugin off.
    """
    points = _entry_points()
    wanted: dict[str, Settings] = {name: {} for name in points}
    wanted |= _from_environment()
    for name, settings in pipeline.plugins.items():
        if settings is False:
            wanted.pop(name, None)
        else:
            wanted[name] = {**wanted.get(name, {}), **(settings if isinstance(settings, Mapping) else {})}
    known = sorted({*points, *_OF_THE_PACKAGE})
    for name in wanted:
        if name not in known and ":" not in name:
            raise ConfigError(
                f"pipeline {pipeline.name!r}: there is no plugin {shown(name)} (there are: {listed(known)})"
                f"{near_names(name, known)}; install the package that brings it, or take its name out of "
                f"`plugins` and {PLUGINS_VARIABLE}"
            )
    return wanted


def make_plugins(pipeline: Pipeline, say: Callable[[str], None]) -> dict[str, object]:
    """The plugins of a run by name. One that cannot be imported or made is left out, and `say` is told.

    Raises ConfigError for an unknown name, settings that a plugin does not have, and whatever a
    plugin says of its own settings with a ConfigError.
    """
    made: dict[str, object] = {}
    for name, settings in wanted_plugins(pipeline).items():
        try:
            plugin_class = _loaded(name)
        except (Exception, SystemExit) as error:  # noqa: BLE001  another's code
            say(f"plugin {name!r} cannot be imported and is off: {type(error).__name__}: {error}")
            continue
        _check_settings(pipeline, name, plugin_class, settings)
        try:
            made[name] = plugin_class(**settings)
        except ConfigError as error:
            raise ConfigError(f"pipeline {pipeline.name!r}: plugin {name!r}: {error}") from error
        except (Exception, SystemExit) as error:  # noqa: BLE001  another's code
            say(f"plugin {name!r} cannot be made and is off: {type(error).__name__}: {error}")
    return made


def _check_settings(
    pipeline: Pipeline, name: str, plugin_class: Callable[..., object], settings: Settings
) -> None:
    signature = inspect.signature(plugin_class)
    try:
        signature.bind(**settings)
    except TypeError as error:
        raise ConfigError(
            f"pipeline {pipeline.name!r}: plugin {name!r} cannot take its settings "
            f"({listed(sorted(settings))}): {error}; it takes {listed(signature.parameters)}"
        ) from error


def _entry_points() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}


def _loaded(name: str) -> Callable[..., object]:
    points = {} if name in _OF_THE_PACKAGE else _entry_points()
    found = points[name].load() if name in points else import_object(_OF_THE_PACKAGE.get(name, name))
    if not isinstance(found, type):
        raise TypeError(f"it is a {type(found).__name__}, expected a class")
    return found


def _from_environment() -> dict[str, Settings]:
    """The plugins that environment variables switch on."""
    named = os.environ.get(PLUGINS_VARIABLE, "").split(",")
    wanted: dict[str, Settings] = {name.strip(): {} for name in named if name.strip()}
    file, port = os.environ.get(METRICS_FILE_VARIABLE), os.environ.get(METRICS_PORT_VARIABLE)
    if metrics := metrics_settings(file or None, port or None):
        wanted["metrics"] = metrics
    if _otel_is_asked():
        wanted["otel"] = {}
    return wanted


def metrics_settings(file: str | None, port: str | None) -> Settings:
    """Settings of the plugin `metrics` that were given outside of a pipeline's file; empty where none was.

    A relative file counts from the working folder; one that ends with `/` is a folder.
    """
    settings: dict[str, object] = {} if port is None else {"port": port}
    if file is not None:
        settings["file"] = f"{Path(file).expanduser().absolute()}{'/' if file.endswith('/') else ''}"
    return settings


def _otel_is_asked() -> bool:
    """Whether the standard variables of OpenTelemetry name somewhere to send spans to."""
    if os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    exporter = os.environ.get("OTEL_TRACES_EXPORTER")
    if exporter:
        return exporter != "none"
    places = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    return any(os.environ.get(place) for place in places)
