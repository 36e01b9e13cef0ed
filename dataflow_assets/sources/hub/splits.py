"""Which split of a data set is read."""

from collections.abc import Sequence

from dataflow_assets.errors import SourceError
from dataflow_assets.pipeline.problems import listed, near_names, shown


def chosen_split(wanted: str | None, there: Sequence[str], dataset: str) -> str:
    """The split that is wanted; without a wish the only one, or `train`. Raises SourceError."""
    if wanted is not None and wanted in there:
        return wanted
    if wanted is not None:
        raise SourceError(
            f"source hf:{dataset} has no split {shown(wanted)} (there are: {listed(there)})"
            f"{near_names(wanted, there)}; part of a split is chosen by a first step"
        )
    if len(there) == 1:
        return there[0]
    if "train" in there:
        return "train"
    raise SourceError(
        f"source hf:{dataset} has the splits {listed(there)}; expected one of them, as "
        f"`hf:{dataset}::{there[0] if there else 'train'}`"
    )
