"""One `dagster dev` for these tests, with the pipelines that they launch and look at."""

import pytest

from dataflow_assets_tests.ui.deployment import Deployment, deployed


@pytest.fixture(scope="session")
def ui(tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    """The server; its pipelines were never run."""
    with deployed(tmp_path_factory.mktemp("ui")) as deployment:
        yield deployment


@pytest.fixture(scope="session")
def shop(ui: Deployment) -> Deployment:
    """The server after a run of `shop` from the UI."""
    assert ui.launched("shop_run") == "SUCCESS"
    return ui
