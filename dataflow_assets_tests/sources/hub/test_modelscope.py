"""Data sets of ModelScope: the package itself is not here, so a stand-in for its loader is asked."""

import importlib.util
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest

from dataflow_assets.errors import ConfigError, SourceError
from dataflow_assets.pipeline import Pipeline
from dataflow_assets_tests.walk import UNCHANGED, rows, walk

asked: list[tuple] = []


class MsDataset:
    """Answers as `modelscope.msdatasets.MsDataset` does where it streams."""

    @staticmethod
    def load(name, subset_name=None, split=None, use_streaming=False, **more):
        asked.append((name, subset_name, split, use_streaming, more))
        if name == "no/such":
            raise ValueError("404 not found")
        if split is None:
            return {"train": [], "test": []}
        return iter([{"text": f"行 {n}", "n": n} for n in range(2500)])


@pytest.fixture
def modelscope(monkeypatch):
    for name in ("modelscope", "modelscope.msdatasets"):
        module = ModuleType(name)
        module.__spec__ = ModuleSpec(name, None)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(sys.modules["modelscope.msdatasets"], "MsDataset", MsDataset, raising=False)
    asked.clear()


def read(tmp_path, source: object) -> list[dict]:
    made = Pipeline(name="p", source=source, root=str(tmp_path / "data"), steps=[UNCHANGED])
    return rows(walk(made), "kept")


def test_the_loader_is_asked_for_the_split_as_a_stream(tmp_path, modelscope):
    found = read(tmp_path, {"ms": "people/talk:short:train", "revision": "v2"})
    assert [found[0], len(found)] == [{"row_id": "train:1", "text": "行 0", "n": 0}, 2500]
    assert asked == [("people/talk", "short", "train", True, {"version": "v2"})]
    read(tmp_path, {"ms": "people/talk:short:train", "revision": "v2"})
    assert len(asked) == 1


def test_what_it_does_not_have_is_told(tmp_path, modelscope):
    with pytest.raises(SourceError, match=r"ms:no/such:train: 404 not found"):
        read(tmp_path, "ms:no/such::train")
    with pytest.raises(
        SourceError, match=r"has the splits train, test; expected one of them, as ms:people/talk::train"
    ):
        read(tmp_path, "ms:people/talk")


@pytest.mark.skipif(importlib.util.find_spec("modelscope") is not None, reason="modelscope is installed")
def test_without_the_package_it_is_asked_for(tmp_path):
    with pytest.raises(ConfigError, match=r"source `ms` needs modelscope.*pip install modelscope"):
        read(tmp_path, "ms:people/talk::train")
