"""The small project after its run."""

from pathlib import Path

import pytest


@pytest.fixture
def done_project(undisturbed: Path) -> Path:
    """Its folder; to be read only."""
    return undisturbed.parent
