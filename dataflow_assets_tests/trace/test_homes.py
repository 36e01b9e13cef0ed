import json
from pathlib import Path

import pytest

from dataflow_assets.errors import ConfigError
from dataflow_assets.io.step_folder import StepFolder
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets.trace.homes import home_of, nearest
from dataflow_assets_tests.walk import pipeline, rows, walk


def lines(folder: Path, name: str, texts: list[str]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("".join(f"{text}\n" for text in texts))


def numbered(folder: Path, rows: int, batch_rows: int | None = 10, blank_after: int = 0) -> PipelineWork:
    texts = [json.dumps({"text": f"row {number}"}) for number in range(rows)]
    texts[blank_after:blank_after] = [""] * 25 if blank_after else []
    lines(folder, "in.jsonl", texts)
    return walk(pipeline(folder, folder / "in.jsonl", batch_rows=batch_rows))


@pytest.mark.parametrize("batch_rows", [1, 7, 10, None])
def test_every_row_is_found_in_its_batch(tmp_path: Path, batch_rows: int | None):
    work = numbered(tmp_path, 40, batch_rows)
    folder = work.layout.step(0)
    for key in work.known_manifest().batches:
        table = folder.read(key)
        assert table is not None
        for row_id in table["row_id"].to_pylist():
            assert home_of(work, row_id).batch == key


def test_blank_lines_do_not_mislead_the_search(tmp_path: Path):
    work = numbered(tmp_path, 60, blank_after=20)
    assert [home_of(work, f"in:{line}").batch for line in (20, 46, 85)] == [
        "in_b00001",
        "in_b00002",
        "in_b00005",
    ]


def test_a_row_of_many_batches_is_found_in_a_few_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    work = numbered(tmp_path, 400, 2)
    read: list[str] = []
    reading = StepFolder.read
    monkeypatch.setattr(
        StepFolder,
        "read",
        lambda self, key, *rest: (read.append(key), reading(self, key, *rest))[1],
    )
    assert home_of(work, "in:301").batch == "in_b00150"
    assert len(set(read)) <= 2


def test_the_place_names_file_and_line(tmp_path: Path):
    assert home_of(numbered(tmp_path, 20), "in:12").place == "in.jsonl, line 12"


def test_a_line_that_was_no_row_has_a_home(tmp_path: Path):
    lines(tmp_path, "in.jsonl", ['{"text": "a"}', "{", '{"text": "b"}'])
    assert home_of(walk(pipeline(tmp_path, tmp_path / "in.jsonl")), "in:2").batch == "in_b00000"


def test_rows_that_are_files_are_found_by_the_hash_of_their_name(tmp_path: Path):
    for number in range(12):
        lines(tmp_path / "texts", f"t{number:02}.txt", [f"text {number}"])
    source = {"path": str(tmp_path / "texts"), "rows": "file"}
    work = walk(pipeline(tmp_path, "unused", batch_rows=3).with_changes(source=_spec(source)))
    for row in rows(work, "source"):
        assert str(row["row_id"]) in {str(each["row_id"]) for each in rows(work, "kept")}
        assert home_of(work, str(row["row_id"])).place == "a file of texts"


def test_documents_are_found_by_their_name(tmp_path: Path):
    for number in range(40):
        lines(tmp_path / "docs", f"d{number:02}.md", [f"# Title {number}", "", "Some text."])
    source = {"files": str(tmp_path / "docs")}
    work = walk(pipeline(tmp_path, "unused", batch_rows=3).with_changes(source=_spec(source)))
    for row in rows(work, "source"):
        assert home_of(work, str(row["row_id"])).place == f"{row['path']}, part 1"


def _spec(source: dict):
    from dataflow_assets.sources.spec import SourceSpec

    return SourceSpec(**source)


def test_an_unknown_number_is_told_with_the_ids_near_it(tmp_path: Path):
    with pytest.raises(
        ConfigError, match=r"no row 'in:99' from in.jsonl; near it there are 'in:20', 'in:19'"
    ):
        home_of(numbered(tmp_path, 20), "in:99")


def test_an_unknown_source_is_told_with_those_that_are_there(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"no source is called 'inn'.* begin with 'in:'; did you mean 'in'"):
        home_of(numbered(tmp_path, 5), "inn:3")


@pytest.mark.parametrize(
    "row_id",
    ["", ":", "in", "in:", "in:x", "in:-1", "in:1:2", "\x1b[31m", "in:1/0/", "in:٣", "in:" + "9" * 5000],
)
def test_any_other_text_is_an_unknown_id(tmp_path: Path, row_id: str):
    with pytest.raises(ConfigError, match="no row"):
        home_of(numbered(tmp_path, 20), row_id)


def test_near_ids_are_near_in_number():
    assert nearest("in:13", [f"in:{number}" for number in range(0, 100, 10)]) == ["in:10", "in:20", "in:0"]
