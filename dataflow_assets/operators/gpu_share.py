"""How much of a GPU this process may take: replicas that share one are told their part."""

import os

_VARIABLE = "DATAFLOW_GPU_SHARE"


def set_share_of_gpu(gpus: float) -> None:
    """Tells this process, and those that it starts, how many GPUs it has been given; a part of one counts."""
    os.environ[_VARIABLE] = f"{min(1.0, gpus):g}"


def share_of_gpu() -> float:
    """The part of its GPU that this process may take: 1 where nobody said less."""
    return float(os.environ.get(_VARIABLE) or 1.0)
