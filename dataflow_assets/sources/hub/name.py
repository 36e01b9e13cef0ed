"""The name of a data set as pipelines write it: `name[:config][:split]`."""

from typing import NamedTuple


class DatasetName(NamedTuple):
    """A data set, and of it a config (subset) and split; None where they are left to the data set."""

    name: str
    config: str | None = None
    split: str | None = None


def dataset_name(text: str) -> DatasetName:
    """The parts of `name[:config][:split]`; an empty one is left out. Raises ValueError."""
    name, *rest = text.strip().split(":")
    if not name or len(rest) > 2:
        raise ValueError(f"expected name, name:config or name:config:split, found {text!r}")
    config, split = [*(part or None for part in rest), None, None][:2]
    return DatasetName(name, config, split)
