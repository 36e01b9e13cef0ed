"""Data sets that several tests load from, and what torch says of workers on a small machine."""

import pytest

from dataflow_assets.torch import FlowDataset
from dataflow_assets_tests.torch.made_steps import dataset, texts

SMALL_MACHINE = "ignore:This DataLoader will create:UserWarning"
FORKED = "ignore:.*use of fork.*:DeprecationWarning"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Two warnings are of the machine, not of the code: few cores, and threads where a worker is forked."""
    for item in items:
        if "torch" in item.path.parts:
            item.add_marker(pytest.mark.filterwarnings(SMALL_MACHINE))
            item.add_marker(pytest.mark.filterwarnings(FORKED))


@pytest.fixture(scope="session")
def hundred(tmp_path_factory: pytest.TempPathFactory) -> FlowDataset:
    """101 rows in batches of 7."""
    return dataset(tmp_path_factory.mktemp("hundred"), texts(101))
