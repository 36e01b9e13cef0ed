"""What is to be done: which assets, and which range of batches, so that all is up to date."""

from collections.abc import Sequence

from dataflow_assets.pipeline import Step
from dataflow_assets.pipeline_work import PipelineWork

RANGE_START, RANGE_END = "dagster/asset_partition_range_start", "dagster/asset_partition_range_end"


def to_do(work: PipelineWork, steps: Sequence[Step], keys: Sequence[str]) -> tuple[list[str], list[str]]:
    """The names of the assets to materialize, and the batches from the first to the last that is not done.

    A batch is to do where its record is missing or made of other code, parameters or input than
    now, or where its parent's is. Dagster runs ranges: batches within it that are done are left
    alone by the IO manager.
    """
    dirty: dict[str, set[str]] = {}
    names: list[str] = []
    for step in steps:
        parents = work.pipeline.parents(step.name)
        undone = set().union(*(dirty.get(parent, set()) for parent in parents))
        state = work.state(step)
        if state is not None and (undone or not work.reuse or not state.is_done()):
            names.append(f"{step.name}_state")
            undone = set(keys)
        done = work.step(step)
        dirty[step.name] = {key for key in keys if key in undone or not work.reuse or not done.is_done(key)}
        if dirty[step.name]:
            names.append(step.name)
    positions = [place for place, key in enumerate(keys) if any(key in some for some in dirty.values())]
    return names, list(keys[positions[0] : positions[-1] + 1]) if positions else []
