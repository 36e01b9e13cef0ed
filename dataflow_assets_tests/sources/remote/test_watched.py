"""What the sensor, the pages and the messages make of a source that is far away."""

import dagster as dg
import pytest

from dataflow_assets.asset_pages import AssetPages
from dataflow_assets.automation import watched
from dataflow_assets.errors import SourceError
from dataflow_assets.pipeline import Pipeline
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets.sources.spec import SourceSpec
from dataflow_assets_tests.pipeline_files import mistakes
from dataflow_assets_tests.sources.remote.web_server import WebFile, WebServer
from dataflow_assets_tests.walk import UNCHANGED, walk


def pipeline(tmp_path, source: object) -> Pipeline:
    return Pipeline(name="p", source=source, root=str(tmp_path / "data"), steps=[UNCHANGED])


def seen(made: Pipeline) -> dg.RunRequest | dg.SkipReason:
    with dg.DagsterInstance.ephemeral() as instance:
        (found,) = watched(PipelineWork(made), instance)
    return found


def test_the_sensor_asks_for_the_source_where_its_etag_is_another(tmp_path, web: WebServer):
    web.files["/a.jsonl"] = WebFile(b'{"n":1}\n')
    made = pipeline(tmp_path, f"{web.url}/a.jsonl")
    first = seen(made)
    walk(made)
    assert seen(made) == dg.SkipReason("p is up to date")
    web.files["/a.jsonl"] = WebFile(b'{"n":2}\n', etag='"two"')
    second = seen(made)
    assert isinstance(first, dg.RunRequest)
    assert isinstance(second, dg.RunRequest)
    assert first.run_key != second.run_key


def test_the_sensor_says_what_it_cannot_watch(tmp_path, web: WebServer):
    web.files["/a.jsonl"] = WebFile(b'{"n":1}\n', etag=None)
    made = pipeline(tmp_path, f"{web.url}/a.jsonl")
    assert isinstance(seen(made), dg.RunRequest)
    walk(made)
    found = seen(made)
    assert isinstance(found, dg.SkipReason)
    assert found.skip_message is not None
    assert "up to date; the server tells neither ETag nor date of http://127.0.0.1" in found.skip_message


def test_the_sensor_tells_of_a_source_that_is_gone(tmp_path, web: WebServer):
    found = seen(pipeline(tmp_path, f"{web.url}/gone.jsonl"))
    assert isinstance(found, dg.SkipReason)
    assert "answered 404" in (found.skip_message or "")


def test_a_made_source_is_watched_by_its_parameters(tmp_path):
    source = {"generator": "dataflow_assets_tests.sources.generated.row_makers:sums", "params": {"n": 3}}
    walk(pipeline(tmp_path, source))
    assert seen(pipeline(tmp_path, source)) == dg.SkipReason("p is up to date")
    assert isinstance(seen(pipeline(tmp_path, {**source, "params": {"n": 4}})), dg.RunRequest)


def test_a_page_asks_no_network_for_a_source_that_was_not_read(tmp_path, web: WebServer):
    web.files["/a.jsonl"] = WebFile(b'{"n":1}\n')
    made = pipeline(tmp_path, f"{web.url}/a.jsonl")
    assert "dagster/column_schema" not in AssetPages(PipelineWork(made), True).source().metadata
    assert web.seen == []
    walk(made)
    assert "dagster/column_schema" in AssetPages(PipelineWork(made), True).source().metadata


def test_no_message_and_no_report_holds_a_login(tmp_path, web: WebServer):
    url = web.url.replace("://", "://me:s3cret@") + "/a.jsonl?sig=geheim"
    with pytest.raises(SourceError) as caught:
        walk(pipeline(tmp_path, url))
    spec = SourceSpec(path=[url, url], storage_options={"token": "geheim"})
    text = f"name: p\nsource: {{path: ['{url}', local.jsonl]}}\nsteps: [{{name: a, type: made_suffix}}]\n"
    told = [str(caught.value), str(spec.shown()), *mistakes(tmp_path, text)]
    assert len(told) == 3
    assert not any("s3cret" in each for each in told)
    assert "geheim" not in told[0] + told[1]


def test_kinds_of_paths_are_not_mixed(tmp_path):
    for source, message in {
        "{path: [s3://b/x.jsonl, local.jsonl]}": "names URLs and local files",
        "{path: s3://b/x, rows: file}": "rows: file is for local files",
        "{path: local.jsonl, storage_options: {anon: true}}": "storage_options is for URLs",
    }.items():
        text = f"name: p\nsource: {source}\nsteps: [{{name: a, type: made_suffix}}]\n"
        (line,) = mistakes(tmp_path, text)
        assert message in line
