"""Rows of pipelines in PyTorch: data sets, mixtures, and a loader that resumes in mid-epoch."""

from dataflow_assets.optional_packages import require

require({"torch": "train", "msgspec": "train"}, "dataflow_assets.torch")

from dataflow_assets.torch.datasets import FlowDataset, FlowIterableDataset, FlowMixture  # noqa: E402
from dataflow_assets.torch.loader import FlowDataLoader, collate_columns  # noqa: E402
from dataflow_assets.torch.packing import Packing  # noqa: E402

__all__ = [
    "FlowDataLoader",
    "FlowDataset",
    "FlowIterableDataset",
    "FlowMixture",
    "Packing",
    "collate_columns",
]
