import importlib.util

import pytest

from dataflow_assets.errors import ConfigError
from dataflow_assets.operators import build_operator
from dataflow_assets_tests.operators.sample_tables import edited


@pytest.mark.parametrize(
    ("source", "text", "simple"),
    [
        ("traditional", "漢字轉換，乾燥的乾坤 abc\x00漢", "汉字转换，干燥的乾坤 abc\x00汉"),
        ("taiwan_words", "用滑鼠點選軟體", "用鼠标点击软件"),
        ("hong_kong", "裏面", "里面"),
    ],
)
def test_traditional_characters_become_simplified_ones(source: str, text: str, simple: str):
    assert edited("simplify_chinese", [text, "plain"], {"source": source}) == [simple, "plain"]


def test_without_opencc_it_is_refused_at_load(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"dataflow_assets\[chinese\]"):
        build_operator("simplify_chinese", {})
