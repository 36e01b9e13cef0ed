"""The plugins of runs that Dagster launched: the same for all assets of a pipeline, to the run's end."""

import threading
from collections.abc import Callable

import dagster as dg

from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets.plugins.told import Say, ToldPlugins

_open: dict[tuple[str, str], ToldPlugins] = {}
_guard = threading.Lock()


def told_in_run(run_id: str, say: Say) -> Callable[[PipelineWork], ToldPlugins]:
    """Gives the plugins of a pipeline in this run; they are made for its first asset. Raises ConfigError."""

    def told(work: PipelineWork) -> ToldPlugins:
        place = (run_id, str(work.layout.folder))
        with _guard:
            if place not in _open:
                _open[place] = ToldPlugins(work, say, run_id)
            return _open[place]

    return told


def end_run(run_id: str | None, instance: dg.DagsterInstance | None) -> None:
    """Tells the plugins of all pipelines in this run that it ends, in this process."""
    with _guard:
        ended = [_open.pop(place) for place in list(_open) if place[0] == run_id]
    if not ended or run_id is None:
        return
    has_failed = instance is not None and instance.get_run_stats(run_id).steps_failed > 0
    for told in ended:
        told.end(has_failed)
