"""Files of a web server: faults that pass, faults that last, and files that change."""

import gzip
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dataflow_assets.errors import SourceError
from dataflow_assets.pipeline import Pipeline
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets_tests.sources.remote.web_server import WebFile, WebServer
from dataflow_assets_tests.walk import UNCHANGED, rows, walk

LINES = b"".join(b'{"n":%d,"text":"%s"}\n' % (n, b"x" * 1000) for n in range(3000))


def pipeline(tmp_path, url: str | list[str], **source: object) -> Pipeline:
    return Pipeline(name="p", source={"path": url, **source}, root=str(tmp_path / "data"), steps=[UNCHANGED])


def numbers(tmp_path, url: str | list[str], **source: object) -> list[object]:
    return [row["n"] for row in rows(walk(pipeline(tmp_path, url, **source)), "kept")]


def copies(tmp_path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "cache").glob("*/*"))


def test_a_file_is_fetched_once_for_each_version(tmp_path, web: WebServer):
    web.files["/a.jsonl"] = WebFile(LINES)
    assert numbers(tmp_path, f"{web.url}/a.jsonl") == list(range(3000))
    assert numbers(tmp_path, f"{web.url}/a.jsonl") == list(range(3000))
    assert web.ranges == [None]
    web.files["/a.jsonl"] = WebFile(LINES[: len(LINES) // 2], etag='"two"')
    assert numbers(tmp_path, f"{web.url}/a.jsonl") == list(range(1500))


def test_row_ids_and_names_know_no_login_and_no_signature(tmp_path, web: WebServer):
    web.files["/a.jsonl"] = WebFile(b'{"n":1}\n', login="me:s3cret/ü")
    url = web.url.replace("://", "://me:s3cret%2F%C3%BC@") + "/a.jsonl?X-Signature=geheim"
    work = walk(pipeline(tmp_path, url))
    assert [row["row_id"] for row in rows(work, "kept")] == ["a:1"]
    written = b"".join(path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file())
    assert b"s3cret" not in written
    assert b"geheim" not in written


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_server_that_is_down_for_a_moment_is_asked_again(tmp_path, web: WebServer, status):
    web.files["/a.jsonl"] = WebFile(LINES, statuses=[status, status])
    assert len(numbers(tmp_path, f"{web.url}/a.jsonl")) == 3000


def test_a_server_that_stays_down_ends_the_run_by_name(tmp_path, web: WebServer):
    web.files["/a.jsonl"] = WebFile(LINES, statuses=[500] * 99)
    with pytest.raises(SourceError, match=r"/a\.jsonl: the server answered 500 .* \(6 attempts\)"):
        numbers(tmp_path, f"{web.url}/a.jsonl")


@pytest.mark.parametrize(
    ("status", "hint"), [(404, "Correct the URL"), (403, "may be read"), (401, "PASSWORD")]
)
def test_a_refusal_is_told_at_once(tmp_path, web: WebServer, status, hint):
    web.files["/a.jsonl"] = WebFile(LINES, head=False, statuses=[status] * 9)
    with pytest.raises(SourceError, match=rf"a\.jsonl: the server answered {status}.*{hint}"):
        numbers(tmp_path, f"{web.url}/a.jsonl")
    assert len(web.files["/a.jsonl"].statuses) == 8


def test_a_cut_connection_goes_on_from_there(tmp_path, web: WebServer):
    web.files["/a.jsonl"] = WebFile(LINES, cuts=[100, 2_000_000])
    assert numbers(tmp_path, f"{web.url}/a.jsonl") == list(range(3000))
    assert web.ranges == [None, "bytes=100-", "bytes=2000100-"]


def test_without_ranges_a_cut_connection_begins_anew(tmp_path, web: WebServer):
    web.files["/a.jsonl"] = WebFile(LINES, ranges=False, cuts=[2_000_000])
    assert numbers(tmp_path, f"{web.url}/a.jsonl") == list(range(3000))


def test_a_server_that_cuts_each_time_is_not_asked_for_ever(tmp_path, web: WebServer):
    web.files["/a.jsonl"] = WebFile(LINES, ranges=False, cuts=[1000] * 99)
    with pytest.raises(SourceError, match=r"a\.jsonl.*6 attempts"):
        numbers(tmp_path, f"{web.url}/a.jsonl")
    assert copies(tmp_path) == [".a.jsonl.part"]


@pytest.mark.parametrize("ranges", [True, False])
def test_a_change_between_two_parts_is_noticed(tmp_path, web: WebServer, ranges):
    def change(file: WebFile) -> None:
        file.content, file.etag, file.after_get = LINES[::-1], '"two"', None

    web.files["/a.jsonl"] = WebFile(LINES, ranges=ranges, cuts=[5000], after_get=change)
    with pytest.raises(SourceError, match=r"a\.jsonl changed while it was read; run again"):
        numbers(tmp_path, f"{web.url}/a.jsonl")


def test_a_change_after_the_last_byte_is_noticed(tmp_path, web: WebServer):
    def change(file: WebFile) -> None:
        file.etag, file.after_get = '"two"', None

    web.files["/a.jsonl"] = WebFile(LINES, after_get=change)
    with pytest.raises(SourceError, match="changed while it was read"):
        numbers(tmp_path, f"{web.url}/a.jsonl")


def test_a_file_without_etag_and_date_is_read_each_time_and_says_so(tmp_path, web: WebServer):
    web.files["/a.jsonl"] = WebFile(b'{"n":1}\n', etag=None)
    made = pipeline(tmp_path, f"{web.url}/a.jsonl")
    walk(made)
    web.files["/a.jsonl"].content = b'{"n":2}\n'
    work = PipelineWork(made)
    assert not work.source_is_current()
    assert "neither ETag nor date" in work.source_pieces().unwatched
    assert [row["n"] for row in rows(walk(made), "kept")] == [2]


def test_the_date_tells_where_there_is_no_etag(tmp_path, web: WebServer):
    web.files["/a.jsonl"] = WebFile(
        b'{"n":1}\n', etag=None, modified="Mon, 05 Jan 2026 10:00:00 GMT", head=False
    )
    made = pipeline(tmp_path, f"{web.url}/a.jsonl")
    walk(made)
    assert PipelineWork(made).source_is_current()
    web.files["/a.jsonl"].modified = "Mon, 05 Jan 2026 10:00:01 GMT"
    assert not PipelineWork(made).source_is_current()


def test_packed_and_parquet_files_and_odd_names(tmp_path, web: WebServer):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"n": [7, 8]}), path)
    web.files["/a.jsonl.gz"] = WebFile(gzip.compress(b'{"n":5}\n'))
    web.files["/%E6%95%B0%20b.parquet"] = WebFile(path.read_bytes())
    urls = [f"{web.url}/a.jsonl.gz", f"{web.url}/数 b.parquet"]
    assert numbers(tmp_path, urls) == [5, 7, 8]


def test_a_look_fetches_the_beginning_of_a_large_file_alone(tmp_path, web: WebServer):
    web.files["/a.jsonl"] = WebFile(LINES * 8)
    assert PipelineWork(pipeline(tmp_path, f"{web.url}/a.jsonl")).peeked_schema() == {
        "row_id": "string",
        "n": "int64",
        "text": "string",
    }
    assert copies(tmp_path) == []


def test_copies_beyond_the_bound_are_removed(tmp_path, web: WebServer, monkeypatch):
    monkeypatch.setenv("DATAFLOW_SOURCE_CACHE_BYTES", str(len(LINES) * 2))
    for name in "abc":
        web.files[f"/{name}.jsonl"] = WebFile(LINES)
    assert len(numbers(tmp_path, [f"{web.url}/{name}.jsonl" for name in "abc"])) == 9000
    assert len(copies(tmp_path)) == 2


def test_documents_of_a_web_server(tmp_path, web: WebServer):
    web.files["/d/页.md"] = web.files["/d/%E9%A1%B5.md"] = WebFile("# 标题\n".encode())
    made = Pipeline(
        name="p", source={"files": f"{web.url}/d/页.md"}, root=str(tmp_path / "data"), steps=[UNCHANGED]
    )
    (row,) = rows(walk(made), "kept")
    assert (row["path"], row["text"], row["format"]) == (f"{web.url}/d/页.md", "# 标题\n", "md")


def test_nobody_home_is_told_with_the_url(tmp_path):
    with pytest.raises(SourceError, match=re.escape("http://127.0.0.1:9/a.jsonl")):
        numbers(tmp_path, "http://127.0.0.1:9/a.jsonl")


def test_a_redirect_to_another_host_takes_no_password_along(tmp_path, web: WebServer):
    from dataflow_assets.sources.remote.http import _Redirect, _request

    request = _request("http://me:secret@here/a", "GET", {})
    away = _Redirect().redirect_request(request, None, 302, "", {}, "http://there/a")
    home = _Redirect().redirect_request(request, None, 302, "", {}, "http://here/b")
    assert away is not None
    assert not away.has_header("Authorization")
    assert home is not None
    assert home.has_header("Authorization")
