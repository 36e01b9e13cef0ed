import pytest

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
