"""What all operators with a local model have in common."""

import importlib.util
import pickle
import shutil
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest

from dataflow_assets.batch import schema_of
from dataflow_assets.engines.engine import InlineEngine, check_law
from dataflow_assets.engines.processes import ProcessEngine
from dataflow_assets.engines.worker_pool import WorkerPool
from dataflow_assets.errors import ConfigError, RunError
from dataflow_assets.fingerprints import operator_fingerprint
from dataflow_assets.operators import RowOperator, build_operator
from dataflow_assets.operators.models.generators import VllmGenerator
from dataflow_assets.operators.models.language_model import LanguageModel
from dataflow_assets.operators.models.model_operator import ModelOperator
from dataflow_assets_tests.operators.models.samples import instructions_and_answers, real_texts
from dataflow_assets_tests.operators.sample_tables import ids, table, typed_table
from dataflow_assets_tests.operators.test_any_text import ODD_TEXTS

COLUMNS: dict[str, dict[str, object]] = {
    "score_perplexity": {},
    "score_ifd": {"instruction_column": "text", "answer_column": "text"},
    "classify_with_model": {},
    "embed_text": {},
    "generate_local": {"column": "text", "max_new_tokens": 2},
}


def built(name: str, **params: Any) -> ModelOperator[Any]:
    operator = build_operator(name, {"model": "nowhere/model", **COLUMNS[name], **params})
    assert isinstance(operator, ModelOperator)
    return operator


@pytest.fixture(params=COLUMNS)
def operator(request: pytest.FixtureRequest, tiny_gpt2: Path, tiny_classifier: Path) -> RowOperator:
    folder = tiny_classifier if request.param == "classify_with_model" else tiny_gpt2
    return built(request.param, model=str(folder))


def test_no_text_breaks_it_and_no_row_is_lost(operator: RowOperator):
    rows = typed_table("string", [*ODD_TEXTS.values(), None, "after"])
    outcome = operator.apply(rows)
    check_law(operator, rows, outcome, "here")
    assert outcome.kept["row_id"].to_pylist()[-1] == f"r{len(rows) - 1}"
    assert outcome.failed is not None
    assert outcome.failed["error_class"].to_pylist()[-1] == "MissingValue"


def test_what_is_no_text_fails_alone(operator: RowOperator):
    rows = typed_table("json", ["good 1", "bad \ud800", 5, None])
    outcome = operator.apply(rows)
    assert ids(outcome.kept) == ["r0"] and outcome.failed is not None
    assert outcome.failed["error_class"].to_pylist() == ["WrongType", "WrongType", "MissingValue"]


def test_a_table_without_rows_loads_no_model(operator: ModelOperator[Any], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(type(operator), "load", None)
    empty = typed_table("string", [])
    outcome = operator.apply(empty)
    assert schema_of(outcome.kept) == operator.output_schema(schema_of(empty))


def test_a_column_of_the_same_name_is_replaced_where_it_stands(tiny_gpt2: Path):
    rows = table(perplexity=["old", "old"], text=["one two", "three four"])
    outcome = built("score_perplexity", model=str(tiny_gpt2)).apply(rows)
    assert outcome.kept.column_names[:3] == ["row_id", "perplexity", "text"]
    assert outcome.kept["perplexity"][0].as_py() > 1


@pytest.mark.parametrize("name", COLUMNS)
def test_without_the_packages_a_run_is_refused_with_what_to_install(
    name: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(importlib.util, "find_spec", lambda package: None)
    with pytest.raises(ConfigError, match=r"needs torch and transformers.*dataflow_assets\[models\]"):
        built(name).check_ready()


def test_vllm_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda package: None)
    with pytest.raises(ConfigError, match=r"needs vllm.*pip install vllm"):
        built("generate_local", backend="vllm").check_ready()


@pytest.mark.parametrize(
    "model", ["./models/none", "/none", "~/none", "~nobody_here/none", "/" + "x" * 300, "a/b/c"]
)
def test_a_folder_that_is_not_there_is_refused_before_the_run(model: str):
    with pytest.raises(ConfigError, match="there is no folder"):
        built("embed_text", model=model).check_ready()


def test_a_folder_without_a_model_is_refused_before_the_run(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"no config.json"):
        built("embed_text", model=str(tmp_path)).check_ready()


def test_a_folder_is_looked_for_beside_the_pipeline(tiny_gpt2: Path):
    operator = build_operator("score_perplexity", {"model": tiny_gpt2.name}, tiny_gpt2.parent)
    operator.check_ready()
    assert isinstance(operator, ModelOperator) and operator.apply(table(text=["a b c"])).kept.num_rows == 1


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"device": "tpu"}, "device"),
        ({"dtype": "int8"}, "dtype"),
        ({"max_tokens": 1}, "max_tokens"),
        ({"tokens_per_pass": 0}, "tokens_per_pass"),
        ({"model": ""}, "model"),
    ],
)
def test_wrong_parameters_are_refused_at_load(params: dict[str, object], message: str):
    with pytest.raises(ConfigError, match=message):
        built("score_perplexity", **params)


def test_a_device_that_is_not_there_is_said(tiny_gpt2: Path):
    import torch

    if not torch.backends.mps.is_available():
        with pytest.raises(RunError, match="device 'mps' is not there; this machine has"):
            built("score_perplexity", model=str(tiny_gpt2), device="mps").apply(table(text=["a b"]))


def test_a_model_that_cannot_be_loaded_is_said(tmp_path: Path):
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(RunError, match="cannot be loaded"):
        built("embed_text", model=str(tmp_path)).apply(table(text=["a"]))


def test_weights_that_are_cut_off_are_said(tiny_gpt2: Path, tmp_path: Path):
    weights = shutil.copytree(tiny_gpt2, tmp_path / "copy") / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(RunError, match="cannot be loaded"):
        built("embed_text", model=str(weights.parent)).apply(table(text=["a"]))


def test_a_model_that_was_not_trained_for_it_is_refused(tiny_gpt2: Path):
    with pytest.raises(RunError, match=r"no weights for score\.weight"):
        built("classify_with_model", model=str(tiny_gpt2)).apply(table(text=["a"]))


def test_how_a_model_is_run_redoes_nothing_and_which_model_it_is_does(tiny_gpt2: Path, tmp_path: Path):
    first = operator_fingerprint(built("score_perplexity", model=str(tiny_gpt2)))
    copy = shutil.copytree(tiny_gpt2, tmp_path / "copy")
    same = built("score_perplexity", model=str(copy), device="cpu", tokens_per_pass=9, compile=True)
    assert operator_fingerprint(same) == first
    assert operator_fingerprint(built("score_perplexity", model=str(copy), dtype="bfloat16")) != first
    weights = copy / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"!")
    assert operator_fingerprint(built("score_perplexity", model=str(copy))) != first


def test_it_is_freed_at_the_end_and_loaded_again(tiny_gpt2: Path):
    operator, engine = built("score_perplexity", model=str(tiny_gpt2)), InlineEngine()
    first = engine.run(operator, table(text=["one two three"]))
    assert operator._model is not None
    engine.close()
    assert operator._model is None
    assert operator.apply(table(text=["one two three"])).kept == first.kept


def test_it_goes_to_another_process_without_its_model(tiny_gpt2: Path):
    operator = built("score_perplexity", model=str(tiny_gpt2))
    rows = table(text=["one two three"])
    first = operator.apply(rows)
    data = pickle.dumps(operator)
    assert len(data) < 5000 and pickle.loads(data).apply(rows).kept == first.kept


@pytest.mark.slow
def test_it_runs_in_worker_processes(tiny_gpt2: Path):
    operator, rows = built("score_perplexity", model=str(tiny_gpt2)), table(text=real_texts(8))
    processes = ProcessEngine(WorkerPool(1), 4)
    try:
        found = processes.run(operator, rows).kept["perplexity"].to_pylist()
    finally:
        processes.close()
    assert found == pytest.approx(operator.apply(rows).kept["perplexity"].to_pylist(), rel=1e-3)


def test_several_threads_may_use_it(tiny_gpt2: Path):
    operator, rows = built("score_perplexity", model=str(tiny_gpt2)), table(text=real_texts())
    parts = [rows.slice(start, 4) for start in range(0, rows.num_rows, 4)]
    with ThreadPoolExecutor(3) as threads:
        together = [outcome.kept for outcome in threads.map(operator.apply, parts)]
    assert together == [operator.apply(part).kept for part in parts]


def test_scores_are_the_same_when_memory_ends_on_the_way(tiny_gpt2: Path, monkeypatch: pytest.MonkeyPatch):
    rows = instructions_and_answers()
    expected = built_ifd(tiny_gpt2).apply(rows).kept["ifd"].to_pylist()
    losses = LanguageModel._losses

    def with_little_memory(self: LanguageModel, together: Any) -> list[float]:
        import torch

        if sum(len(asked.tokens) for asked in together) > 900:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1 GiB")
        return losses(self, together)

    monkeypatch.setattr(LanguageModel, "_losses", with_little_memory)
    operator = built_ifd(tiny_gpt2)
    assert operator.apply(rows).kept["ifd"].to_pylist() == pytest.approx(expected, rel=1e-3)
    assert operator.model().passes.counts.halvings >= 1


def built_ifd(folder: Path) -> ModelOperator[LanguageModel]:
    operator = build_operator("score_ifd", {"model": str(folder)})
    assert isinstance(operator, ModelOperator)
    return operator


def test_a_row_without_finite_numbers_fails(tiny_gpt2: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(LanguageModel, "_losses", lambda self, together: [float("nan") for _ in together])
    outcome = built("score_perplexity", model=str(tiny_gpt2)).apply(table(text=["one two", ""]))
    assert outcome.failed is not None and outcome.failed["error_class"].to_pylist() == ["NotFinite"]
    assert ids(outcome.kept) == ["r1"]


@pytest.mark.parametrize("name", ["score_perplexity", "classify_with_model"])
def test_the_model_is_compiled_where_that_is_asked_for(
    name: str, tiny_gpt2: Path, tiny_classifier: Path, monkeypatch: pytest.MonkeyPatch
):
    import torch

    compiled: list[dict[str, object]] = []
    monkeypatch.setattr(torch, "compile", lambda model, **how: compiled.append(how) or model)
    folder = tiny_classifier if name == "classify_with_model" else tiny_gpt2
    built(name, model=str(folder), compile=True).apply(table(text=["one two"]))
    assert compiled == [{"dynamic": True}]


def test_vllm_gets_tokens_and_the_row_s_own_sampling(tiny_gpt2: Path, monkeypatch: pytest.MonkeyPatch):
    asked: list[Any] = []
    monkeypatch.setitem(sys.modules, "vllm", stand_in_for_vllm(tiny_gpt2, asked))
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name == "vllm" or found(name))
    params = {"backend": "vllm", "temperature": 0.5, "max_new_tokens": 7, "stop": ["."]}
    operator = built("generate_local", model=str(tiny_gpt2), **params)
    kept = operator.apply(table(text=["one two", "three"])).kept
    assert kept["generated"].to_pylist() == ["text 0", "text 1"]
    assert kept["generated_finish_reason"].to_pylist() == ["length", "length"]
    (first, one), (second, two) = asked
    assert first != second and one["seed"] != two["seed"]
    assert {**one, "seed": 0} == {**two, "seed": 0}
    assert (one["max_tokens"], one["temperature"], one["top_k"], one["stop"]) == (7, 0.5, -1, ["."])


@pytest.mark.parametrize(
    ("share", "given", "told"),
    [
        ("", {}, {}),
        ("1", {"max_model_len": 32}, {"max_model_len": 32}),
        ("0.25", {}, {"gpu_memory_utilization": 0.225}),
        ("0.25", {"gpu_memory_utilization": 0.1}, {"gpu_memory_utilization": 0.1}),
    ],
)
def test_vllm_takes_its_replica_s_part_of_the_card(
    tiny_gpt2: Path, monkeypatch: pytest.MonkeyPatch, share: str, given: dict[str, Any], told: dict[str, Any]
):
    monkeypatch.setitem(sys.modules, "vllm", stand_in_for_vllm(tiny_gpt2, [], told))
    monkeypatch.setenv("DATAFLOW_GPU_SHARE", share)
    operator = built("generate_local", model=str(tiny_gpt2), backend="vllm", vllm=given)
    VllmGenerator(operator.params, operator.params.vllm)
    plain = built("generate_local", model=str(tiny_gpt2), backend="vllm")
    changes_texts = "max_model_len" in given
    assert (operator.fingerprint_of_params() != plain.fingerprint_of_params()) is changes_texts


def test_a_vllm_that_cannot_start_says_what_to_change(tiny_gpt2: Path, monkeypatch: pytest.MonkeyPatch):
    def no_memory(**how: object) -> None:
        raise ValueError("Available memory is less than desired")

    monkeypatch.setitem(sys.modules, "vllm", SimpleNamespace(LLM=no_memory))
    operator = built("generate_local", model=str(tiny_gpt2), backend="vllm")
    with pytest.raises(RunError, match=r"Available memory.*gpu_memory_utilization: 0\.5"):
        VllmGenerator(operator.params, {})


def stand_in_for_vllm(
    folder: Path, asked: list[Any], further: Mapping[str, Any] = MappingProxyType({})
) -> Any:
    """The part of vLLM that is used; it notes what it is asked, and writes no real text."""
    from transformers import AutoTokenizer

    class LLM:
        llm_engine = SimpleNamespace(model_config=SimpleNamespace(max_model_len=64))

        def __init__(self, **how: object) -> None:
            usual = {"model": str(folder), "revision": None, "dtype": "float32", "seed": 0}
            assert how == {**usual, **further}

        def get_tokenizer(self) -> Any:
            return AutoTokenizer.from_pretrained(folder)

        def generate(self, prompts: Any, samplings: Any, use_tqdm: bool) -> list[Any]:
            tokens = [prompt["prompt_token_ids"] for prompt in prompts]
            asked.extend(zip(tokens, samplings, strict=True))
            answers = [
                SimpleNamespace(text=f"text {row}", token_ids=[1, 2], finish_reason="length")
                for row in range(len(tokens))
            ]
            return [SimpleNamespace(outputs=[answer]) for answer in answers]

    return SimpleNamespace(LLM=LLM, SamplingParams=dict)
