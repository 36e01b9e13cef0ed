import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dataflow_assets.engines.processes import ProcessEngine
from dataflow_assets.engines.worker_pool import WorkerPool
from dataflow_assets.errors import ConfigError, RunError
from dataflow_assets.operators import Outcome, RowOperator, build_operator
from dataflow_assets_tests.operators.sample_tables import ids, table, typed_table
from dataflow_assets_tests.operators.test_any_text import ODD_TEXTS

QUESTION = (
    "Natalia sold clips to 48 of her friends in April, and then she sold half as many clips in May. "
    "How many clips did Natalia sell altogether in April and May?"
)
CHINESE = "小明有三十二个苹果，他把其中的一半分给了同学，又买了十五个，请问小明现在一共有多少个苹果？"


def write(folder: Path, rows: list[dict], name: str = "bench.jsonl") -> str:
    (folder / name).write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return str(folder / name)


def clean(folder: Path, texts: list[str], **params: object) -> Outcome:
    operator = build_operator("decontaminate", params, folder)
    assert isinstance(operator, RowOperator)
    return operator.apply(table(text=texts))


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    write(tmp_path, [{"id": 1, "question": QUESTION}, {"id": 2, "question": CHINESE}])
    return tmp_path


FILE = {"benchmarks": {"gsm8k": "bench.jsonl"}}


def test_a_row_with_twelve_words_of_a_benchmark_goes_and_names_them(bench: Path):
    copied = "Exam. natalia sold CLIPS to 50 of her friends, in April and: then she went home."
    outcome = clean(bench, [copied, "Natalia sold clips to 48 of her friends in May."], **FILE)
    assert ids(outcome.kept) == ["r1"]
    assert outcome.rejected is not None
    assert outcome.rejected.to_pylist() == [
        {
            "row_id": "r0",
            "text": copied,
            "reject_reason": "contaminated",
            "benchmark": "gsm8k",
            "ngram": "natalia sold clips to 0 of her friends in april and then",
        }
    ]


def test_chinese_is_compared_by_24_characters(bench: Path):
    inside = "题目：他把其中的一半分给了同学，又买了十五个，请问小明现在一共。答案略"
    short = "题目：他把其中的一半分给了同学，又买了十五个，请问"
    outcome = clean(bench, [inside, short], **FILE)
    assert ids(outcome.kept) == ["r1"]
    assert outcome.rejected is not None
    assert outcome.rejected["ngram"].to_pylist() == ["他把其中的一半分给了同学又买了十五个请问小明现在"]


def test_parquet_text_and_nested_values_are_read(tmp_path: Path):
    pq.write_table(pa.table({"choices": [[QUESTION, "no"]]}), tmp_path / "a.parquet")
    (tmp_path / "b.txt").write_text(f"short one\n\n{CHINESE[:24]}\n{CHINESE[24:]}\n")
    outcome = clean(tmp_path, [QUESTION, CHINESE], benchmarks={"first": "a.parquet", "second": "b.txt"})
    assert outcome.rejected is not None
    assert outcome.rejected["benchmark"].to_pylist() == ["first", "second"]


def test_only_the_columns_that_are_named_count(tmp_path: Path):
    write(
        tmp_path,
        [{"question": QUESTION, "context": "It was the best of times, it was the worst of times it was"}],
    )
    texts = [QUESTION, "It was the best of times, it was the worst of times it was the age"]
    assert ids(clean(tmp_path, texts, **FILE, benchmark_columns=["question"]).kept) == ["r1"]
    assert ids(clean(tmp_path, texts, **FILE).kept) == []


def test_the_content_of_the_files_is_part_of_what_the_operator_is(bench: Path):
    first = build_operator("decontaminate", FILE, bench).identity()
    write(bench, [{"question": "another"}])
    assert build_operator("decontaminate", FILE, bench).identity() != first


def test_a_file_that_changes_during_the_run_ends_it(bench: Path):
    operator = build_operator("decontaminate", FILE | {"words": 11}, bench)
    assert isinstance(operator, RowOperator)
    write(bench, [{"question": QUESTION}])
    from dataflow_assets.operators.deduplication.benchmark_files import benchmark_texts

    benchmark_texts.cache_clear()
    with pytest.raises(RunError, match="changed while it was in use"):
        operator.apply(table(text=[QUESTION]))


def test_workers_read_the_files_by_themselves(bench: Path):
    operator = build_operator("decontaminate", FILE, bench)
    assert isinstance(operator, RowOperator)
    engine = ProcessEngine(WorkerPool(2), chunk_rows=2)
    try:
        outcome = engine.run(operator, table(text=[QUESTION, "a", "b", CHINESE]))
    finally:
        engine.close()
    assert ids(outcome.kept) == ["r1", "r2"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("bench.jsonl", None, "No such file"),
        ("bench.csv", "a,b", "expected one of .jsonl, .parquet, .txt"),
        ("bench.jsonl", "[1]\n", "line 1 holds list, expected an object"),
        ("bench.jsonl", "{\n", "cannot be read as .jsonl"),
        ("bench.parquet", "no parquet", "cannot be read as .parquet"),
        ("bench.jsonl", '{"text": "a"}\n', "has no column 'question'; it has: text"),
    ],
)
def test_a_file_that_cannot_serve_is_refused_at_load(
    tmp_path: Path, name: str, content: str | None, message: str
):
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(ConfigError, match=message):
        clean(tmp_path, [], benchmarks={"b": name}, benchmark_columns=["question"])


@pytest.mark.parametrize("kind", ["string", "json"])
def test_rows_without_text_fail(bench: Path, kind: str):
    operator = build_operator("decontaminate", FILE, bench)
    assert isinstance(operator, RowOperator)
    outcome = operator.apply(typed_table(kind, [None, QUESTION, "b"]))
    assert (ids(outcome.failed), ids(outcome.rejected), ids(outcome.kept)) == (["r0"], ["r1"], ["r2"])


def test_odd_texts_stay(bench: Path):
    assert clean(bench, list(ODD_TEXTS.values()), **FILE).kept.num_rows == len(ODD_TEXTS)
    assert clean(bench, [], **FILE).kept.num_rows == 0
