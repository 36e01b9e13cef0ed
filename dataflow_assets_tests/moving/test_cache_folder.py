"""Cache folders that DataFlow wrote: which step is whole, which is not, and why."""

from pathlib import Path

import pytest

from dataflow_assets.errors import ConfigError
from dataflow_assets.moving.cache_folder import read_cache_folder

LINES = b'{"text": "a"}\n{"text": "b"}\n'


def cache(folder: Path, note: str | None = None, **files: bytes) -> Path:
    """A folder with `p_step1.jsonl`, … of these bytes, and the note of a pipeline in batches."""
    for name, data in files.items():
        (folder / name.replace("__", ".")).write_bytes(data)
    if note is not None:
        (folder / "p_last_success_step.txt").write_text(note)
    return folder


def test_the_last_whole_step_is_read_on_from(tmp_path: Path):
    folder = cache(tmp_path, p_step1__jsonl=LINES, p_step2__jsonl=LINES, p_step10__jsonl=LINES)
    (folder / ".tmp_x").write_text("left over")
    found = read_cache_folder(folder)
    assert [file.step for file in found.files] == [1, 2, 10]
    assert found.whole().step == 10 and found.whole(2).path == folder / "p_step2.jsonl"


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("p_step2__jsonl", LINES + b'{"text": "c', "its last line is no JSON"),
        ("p_step2__json", b'[{"text": "a"},', "does not end in `]`"),
        ("p_step2__csv", b"text\na\nb", "its last line does not end"),
        ("p_step2__parquet", b"PAR1 and no more", "does not end as a Parquet file"),
        ("p_step2__pickle", b"\x80\x04.", "runs code when it is read"),
        ("p_step2__jsonl", b"", "it is empty"),
    ],
)
def test_a_step_whose_writing_was_cut_off_is_not(tmp_path: Path, name: str, data: bytes, why: str):
    found = read_cache_folder(cache(tmp_path, p_step1__jsonl=LINES, **{name: data}))
    assert why in found.files[1].problem
    assert found.whole().step == 1
    with pytest.raises(ConfigError, match="no step that can be read on from"):
        found.whole(2)


def test_a_step_that_its_note_does_not_vouch_for_is_not(tmp_path: Path):
    found = read_cache_folder(cache(tmp_path, "1,3", p_step1__jsonl=LINES, p_step2__jsonl=LINES * 9))
    assert found.whole().step == 1
    assert "1 steps are done and 3 batches of the next; rows" in found.files[1].problem


def test_a_torn_note_is_said(tmp_path: Path):
    with pytest.raises(ConfigError, match="holds '1,', expected `<step>,<batches>`"):
        read_cache_folder(cache(tmp_path, "1,", p_step1__jsonl=LINES))


def test_a_step_in_two_formats_is_not_chosen_between(tmp_path: Path):
    found = read_cache_folder(cache(tmp_path, p_step1__jsonl=LINES, p_step1__csv=b"text\na\n"))
    with pytest.raises(ConfigError, match="there in several formats"):
        found.whole()


def test_several_prefixes_are_asked_for(tmp_path: Path):
    folder = cache(tmp_path, p_step1__jsonl=LINES, q_step1__jsonl=LINES)
    with pytest.raises(ConfigError, match="has the steps of 'p', 'q'; say which by --prefix"):
        read_cache_folder(folder)
    assert read_cache_folder(folder, "q").whole().path.name == "q_step1.jsonl"


def test_a_folder_without_steps_is_refused(tmp_path: Path):
    with pytest.raises(ConfigError, match="has no file <prefix>_step<N>"):
        read_cache_folder(tmp_path)
    with pytest.raises(ConfigError, match="is no folder"):
        read_cache_folder(tmp_path / "nowhere")
