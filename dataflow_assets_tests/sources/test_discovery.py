"""Which files a source means, what they are called, and what is said where there is none."""

import os
import re

import pytest
from pydantic import ValidationError

from dataflow_assets.errors import SourceError
from dataflow_assets.sources.discovery import discover
from dataflow_assets.sources.notes import left_out_line
from dataflow_assets.sources.spec import SourceSpec
from dataflow_assets_tests.sources.reading import written


def found(tmp_path, path, **options):
    return discover(SourceSpec(path=path, **options), tmp_path)


def names(tmp_path, path, **options):
    return [file.name for file in found(tmp_path, path, **options)[0]]


def some_files(tmp_path, *paths):
    for path in paths:
        written(tmp_path, path, "x")


def test_a_folder_is_read_recursively_and_sorted(tmp_path):
    some_files(tmp_path, "d/b.jsonl", "d/a.csv", "d/sub/c.txt.gz", "d/sub/deep/a.parquet")
    assert names(tmp_path, "d") == ["d/a.csv", "d/b.jsonl", "d/sub/c.txt.gz", "d/sub/deep/a.parquet"]


@pytest.mark.parametrize(
    ("left_out", "line"),
    [
        (["in/b.jsonl.bz2", "in/d.XLSX"], "left out: in/b.jsonl.bz2, in/d.XLSX (no reader for .bz2, .xlsx)"),
        (["README"], "left out: README (no reader for names without an ending)"),
        (["a.csv"], "left out: a.csv (not what `source` says to read)"),
        (
            [f"{n}.xml" for n in range(1500)],
            "left out: 0.xml, 1.xml, 2.xml and 1,497 more (no reader for .xml)",
        ),
    ],
)
def test_what_is_left_out_is_told_in_a_line(left_out, line):
    assert left_out_line(left_out) == line


def test_hidden_and_underscored_names_are_left_out_and_unknown_ones_reported(tmp_path):
    some_files(
        tmp_path, "d/a.jsonl", "d/.b.jsonl", "d/_SUCCESS", "d/_rejected/c.jsonl", "d/.git/d.json", "d/x.md"
    )
    files, skipped = found(tmp_path, "d")
    assert [file.name for file in files] == ["d/a.jsonl"]
    assert skipped == ["d/x.md"]


@pytest.mark.parametrize(
    ("name", "kind", "compression"),
    [
        ("a.jsonl", "jsonl", None),
        ("a.ndjson.gz", "jsonl", "gz"),
        ("A.JSON", "json", None),
        ("a.v2.csv.zst", "csv", "zst"),
        ("a.tsv", "tsv", None),
        ("a.parquet", "parquet", None),
        ("a.txt.GZ", "txt", "gz"),
    ],
)
def test_the_extension_says_the_format(tmp_path, name, kind, compression):
    some_files(tmp_path, name)
    (file,), _ = found(tmp_path, name)
    assert (file.format, file.compression) == (kind, compression)


def test_a_format_wins_over_the_extension_and_keeps_the_compression(tmp_path):
    some_files(tmp_path, "part-0000.gz")
    (file,), _ = found(tmp_path, "part-0000.gz", format="jsonl")
    assert (file.format, file.compression) == ("jsonl", "gz")


@pytest.mark.parametrize(
    ("kind", "chosen"),
    [
        ("jsonl", ["a.json", "b.jsonl", "part-0000"]),
        ("csv", ["c.csv", "d.txt", "part-0000"]),
        ("parquet", ["e.parquet", "part-0000"]),
        ("txt", ["c.csv", "d.txt", "f.md", "part-0000"]),
    ],
)
def test_a_format_chooses_its_family_from_a_folder(tmp_path, kind, chosen):
    some_files(
        tmp_path, *(f"d/{name}" for name in ("a.json", "b.jsonl", "c.csv", "d.txt", "e.parquet", "f.md"))
    )
    some_files(tmp_path, "d/part-0000")
    assert names(tmp_path, "d", format=kind) == [f"d/{name}" for name in chosen]


def test_globs_match_files_below(tmp_path):
    some_files(tmp_path, "d/b.jsonl", "d/a.jsonl", "d/sub/c.jsonl", "d/_failed/x.jsonl", "d/a.csv")
    assert names(tmp_path, "d/*.jsonl") == ["d/a.jsonl", "d/b.jsonl"]
    assert names(tmp_path, "d/**/*.jsonl") == ["d/a.jsonl", "d/b.jsonl", "d/sub/c.jsonl"]
    assert names(tmp_path, "d/_*/*.jsonl") == ["d/_failed/x.jsonl"]


def test_a_name_with_brackets_is_taken_as_it_is(tmp_path):
    some_files(tmp_path, "a[1].jsonl", "a1.jsonl")
    assert names(tmp_path, "a[1].jsonl") == ["a[1].jsonl"]


def test_several_paths_keep_their_order_and_a_file_comes_once(tmp_path):
    some_files(tmp_path, "b.jsonl", "a.jsonl", "d/c.jsonl")
    os.symlink(tmp_path / "a.jsonl", tmp_path / "d/link.jsonl")
    assert names(tmp_path, ["b.jsonl", "d", "*.jsonl"]) == ["b.jsonl", "d/c.jsonl", "d/link.jsonl"]


def test_links_are_followed_and_loops_end(tmp_path):
    some_files(tmp_path, "d/a.jsonl", "elsewhere/b.jsonl")
    os.symlink(tmp_path / "d", tmp_path / "d/loop")
    os.symlink(tmp_path / "elsewhere", tmp_path / "d/other")
    assert names(tmp_path, "d") == ["d/a.jsonl", "d/other/b.jsonl"]


def test_a_link_to_nothing_in_a_folder_is_reported(tmp_path):
    some_files(tmp_path, "d/a.jsonl")
    os.symlink(tmp_path / "gone", tmp_path / "d/b.jsonl")
    assert found(tmp_path, "d")[1] == ["d/b.jsonl"]


def test_a_path_outside_is_named_by_its_last_part(tmp_path):
    some_files(tmp_path, "outside/d/a.jsonl", "base/x")
    assert names(tmp_path / "base", str(tmp_path / "outside/d")) == ["d/a.jsonl"]
    assert names(tmp_path / "base", str(tmp_path / "outside/*/*.jsonl")) == ["outside/d/a.jsonl"]
    assert names(tmp_path / "base", "../outside/d") == ["../outside/d/a.jsonl"]


def test_a_name_with_invalid_bytes_can_be_written(tmp_path):
    with open(os.path.join(os.fsencode(tmp_path), b"\xff.jsonl"), "w"):
        (file,), _ = found(tmp_path, "*.jsonl")
    assert file.name == "\\xff.jsonl"
    assert re.fullmatch(r"file-[0-9a-f]{8}", file.slug)


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("train.jsonl", "train"),
        ("train_v2-a.jsonl.gz", "train_v2-a"),
        ("Train.jsonl", r"train-[0-9a-f]{8}"),
        ("my file (1).csv", r"my-file-1-[0-9a-f]{8}"),
        ("数据.jsonl", r"file-[0-9a-f]{8}"),
        ("a.b.jsonl", r"a-b-[0-9a-f]{8}"),
        ("x" * 48 + ".txt", "x" * 48),
        ("x" * 49 + ".txt", "x" * 39 + r"-[0-9a-f]{8}"),
    ],
)
def test_a_slug_is_a_safe_key_part(tmp_path, name, slug):
    some_files(tmp_path, name)
    (file,), _ = found(tmp_path, name)
    assert re.fullmatch(slug, file.slug)
    assert re.fullmatch(r"[a-z0-9_-]{1,48}", file.slug)


def test_slugs_are_unique_and_the_first_keeps_the_plain_one(tmp_path):
    some_files(tmp_path, "d/a.csv", "d/a.jsonl", "d/sub/a.jsonl", "d/A.jsonl")
    slugs = [file.slug for file in found(tmp_path, "d")[0]]
    assert len(set(slugs)) == 4
    assert slugs[1] == "a"


def test_equal_names_of_two_outside_folders_get_more_of_their_paths(tmp_path):
    some_files(tmp_path, "one/d/a.jsonl", "two/d/a.jsonl")
    files, _ = found(tmp_path / "base", [str(tmp_path / "one/d"), str(tmp_path / "two/d")])
    assert [file.name for file in files] == ["one/d/a.jsonl", "two/d/a.jsonl"]
    assert len({file.slug for file in files}) == 2


def test_a_base_folder_with_brackets_is_no_pattern(tmp_path):
    some_files(tmp_path, "b[1]/a.jsonl", "b1/c.jsonl")
    assert names(tmp_path / "b[1]", "*.jsonl") == ["a.jsonl"]


def test_text_files_of_the_base_folder_are_named_by_it(tmp_path):
    some_files(tmp_path, "docs/a.txt", "docs/b.txt")
    (file,), _ = found(tmp_path / "docs", "*.txt", rows="file")
    assert (file.name, file.slug, len(file.members)) == ("docs", "docs", 2)


def test_a_file_that_may_not_be_read_is_refused(tmp_path, monkeypatch):
    some_files(tmp_path, "a.jsonl")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(SourceError, match=r"a\.jsonl: permission denied"):
        found(tmp_path, "a.jsonl")


def test_a_name_that_is_too_long_is_a_source_error(tmp_path):
    with pytest.raises(SourceError, match="File name too long"):
        found(tmp_path, "x" * 5000)


MISSING = {
    "no file": (
        "gone.jsonl",
        {},
        r"source gone\.jsonl: there is no such file or folder \(its folder has a\.parquet\.gz, empty",
    ),
    "no folder": ("no/where/a.jsonl", {}, "the folder 'where' is not there either"),
    "no match": ("*.parquet", {}, r"glob \*\.parquet has no files"),
    "empty folder": ("empty", {}, "folder empty has no files"),
    "unknown only": ("odd", {}, r"no file that can be read as a known format \(found 1: odd/a\.md\)"),
    "wrong format": ("odd", {"format": "parquet"}, "no file that can be read as parquet"),
    "unknown extension": ("odd/a.md", {}, r"the extension says no format.*source\.format"),
    "packed parquet": ("a.parquet.gz", {}, "cannot be streamed"),
    "no text": ("odd", {"rows": "file"}, "no file that can be read"),
}


@pytest.mark.parametrize("name", MISSING)
def test_a_path_without_files_is_a_source_error(tmp_path, name):
    path, options, message = MISSING[name]
    some_files(tmp_path, "here.txt", "odd/a.md", "a.parquet.gz")
    (tmp_path / "empty").mkdir()
    with pytest.raises(SourceError, match=message):
        found(tmp_path, path, **options)


def test_a_folder_without_documents_names_the_formats_of_documents(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(SourceError, match=r"has no files; expected files with one of \.pdf, .*\.text$"):
        discover(SourceSpec(files="empty"), tmp_path)


def test_a_pipe_is_refused(tmp_path):
    os.mkfifo(tmp_path / "a.jsonl")
    with pytest.raises(SourceError, match="neither a file nor a folder"):
        found(tmp_path, "a.jsonl")


WRONG = {
    "unknown name": {"path": "a", "pth": "b"},
    "empty path": {"path": ""},
    "no paths": {"path": []},
    "number as path": {"path": 3},
    "NUL in path": {"path": "a\0"},
    "unknown format": {"path": "a", "format": "xlsx"},
    "unknown encoding": {"path": "a", "encoding": "utf-9"},
    "codec that is no encoding": {"path": "a", "encoding": "base64"},
    "undefined codec": {"path": "a", "encoding": "undefined"},
    "rows of a csv": {"path": "a", "format": "csv", "rows": "file"},
    "encoding of parquet": {"path": "a", "format": "parquet", "encoding": "gb18030"},
    "no columns": {"path": "a", "columns": []},
    "columns twice": {"path": "a", "columns": ["x", "x"]},
    "two to one": {"path": "a", "rename": {"a": "x", "b": "x"}},
    "empty new name": {"path": "a", "rename": {"a": ""}},
    "rename of an unread column": {"path": "a", "columns": ["x"], "rename": {"y": "z"}},
    "text as a limit": {"path": "a", "max_line_bytes": "64"},
    "limit of zero": {"path": "a", "max_expansion": 0},
}


@pytest.mark.parametrize("name", WRONG)
def test_a_spec_that_makes_no_sense_is_refused(name):
    with pytest.raises(ValidationError):
        SourceSpec.model_validate(WRONG[name])


def test_every_field_is_described():
    assert all(field.description for field in SourceSpec.model_fields.values())


def test_a_file_that_was_read_before_keeps_its_slug(tmp_path):
    some_files(tmp_path, "d/a/x.jsonl", "d/b/x.jsonl", "d/c/x.jsonl")
    known = {"d/b/x.jsonl": "x", "d/c/x.jsonl": "x", "d/a/x.jsonl": "a-slug-of-another-kind"}
    files, _ = discover(SourceSpec(path="d"), tmp_path, known)
    slugs = [file.slug for file in files]
    assert slugs[1] == "x" and len(set(slugs)) == 3
    assert re.fullmatch(r"x-[0-9a-f]{8}", slugs[0])
    again, _ = discover(SourceSpec(path="d"), tmp_path, {file.name: file.slug for file in files})
    assert again == files


OUTPUTS = (
    "root/p/manifest.json",
    "root/p/reading.json",
    "root/p/p_step0/_commits/x_b00000.json",
    "root/p/p_step0/x_b00000.jsonl",
    "root/whole/manifest.json",
    "root/whole/w_step0/_commits/all.json",
    "root/whole/w_step0.jsonl",
)
OWN = ("root/in.jsonl", "root/p/own.jsonl", "root/p/w_step0.jsonl", "root/sets/manifest.json", "x.jsonl")


@pytest.mark.parametrize("path", [".", "**/*", "**/*.json*"])
def test_what_a_pipeline_wrote_is_left_out(tmp_path, path):
    some_files(tmp_path, *OUTPUTS, *OWN)
    assert {os.path.relpath(file.path, tmp_path) for file in found(tmp_path, path)[0]} == set(OWN)


@pytest.mark.parametrize(
    "path", ["root/p/p_step0", "root/p/p_step0/*", "root/p/p_step*/*.jsonl", "root/*/*_step0/*"]
)
def test_a_path_into_a_step_reads_what_a_pipeline_wrote(tmp_path, path):
    some_files(tmp_path, *OUTPUTS)
    assert [file.path.name for file in found(tmp_path, path)[0]] == ["x_b00000.jsonl"]


def test_a_path_to_the_file_of_a_whole_step_reads_it(tmp_path):
    some_files(tmp_path, *OUTPUTS)
    assert names(tmp_path, "root/whole/w_step0.jsonl") == ["root/whole/w_step0.jsonl"]
