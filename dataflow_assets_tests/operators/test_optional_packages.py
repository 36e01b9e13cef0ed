"""What is said where a package that an operator needs is not installed, and what works all the same."""

import importlib.util
import sys
from pathlib import Path

import pytest

from dataflow_assets.errors import ConfigError
from dataflow_assets.operators import build_operator
from dataflow_assets.pipeline.file import load_pipeline
from dataflow_assets.pipeline_work import PipelineWork

NEEDED = {
    "drop_near_duplicates": ({}, {"rensa": "dedup", "rjieba": "dedup"}),
    "drop_simhash_duplicates": ({"unit": "words"}, {"rjieba": "dedup"}),
    "extract_html_text": ({}, {"trafilatura": "html"}),
    "filter_blocklist": ({"words": ["a"]}, {"ahocorasick": "text"}),
    "filter_chain": (
        {"filters": [{"type": "filter_language", "params": {"languages": ["en"]}}]},
        {"py3langid": "language"},
    ),
    "filter_gopher_quality": ({}, {"jieba": "text", "rjieba": "text"}),
    "filter_language": ({"languages": ["en"]}, {"py3langid": "language"}),
    "filter_word_count": ({}, {"jieba": "text", "rjieba": "text"}),
    "map_pandas": ({"function": "json:dumps"}, {"pandas": "pandas"}),
    "remove_stop_words": ({}, {"rjieba": "text"}),
    "simplify_chinese": ({}, {"opencc": "chinese"}),
}
NEED_NOTHING = {
    "drop_near_duplicates": {"unit": "characters"},
    "filter_gopher_quality": {"language": "en"},
    "filter_word_count": {"language": "en"},
    "remove_stop_words": {"language": "en"},
}
PIPELINES = Path(sys.modules["dataflow_assets"].__file__ or "").parent / "pipelines"


def hide(monkeypatch: pytest.MonkeyPatch, *packages: str) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in packages else found(name))


@pytest.mark.parametrize("name", NEEDED)
def test_a_missing_package_is_told_before_a_run_and_not_at_load(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    params, needed = NEEDED[name]
    operator = build_operator(name, params)
    assert operator.needed_packages() == needed
    operator.check_ready()
    for package, extra in needed.items():
        with monkeypatch.context() as patch:
            hide(patch, package)
            again = build_operator(name, params)
            with pytest.raises(ConfigError, match=rf"{package}, .*pip install 'dataflow_assets\[{extra}\]'"):
                again.check_ready()


@pytest.mark.parametrize("name", NEED_NOTHING)
def test_what_is_not_used_is_not_needed(name: str) -> None:
    needed = build_operator(name, NEED_NOTHING[name]).needed_packages()
    assert "jieba" not in needed and "rjieba" not in needed


def test_a_pipeline_can_be_loaded_without_its_packages_and_all_are_told_before_it_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hide(monkeypatch, "trafilatura", "rensa", "jieba")
    pipeline = load_pipeline(PIPELINES / "text_pretrain_zh.yaml").with_changes(root=str(tmp_path))
    with pytest.raises(ConfigError) as told:
        PipelineWork(pipeline).check_before_run()
    message = str(told.value)
    assert all(f"dataflow_assets[{extra}]" in message for extra in ("html", "dedup", "text"))
    assert "step 'main_text'" in message
