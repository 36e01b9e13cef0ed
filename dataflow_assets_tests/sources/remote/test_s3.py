"""Files of an object store, against moto's S3 server."""

import importlib.util
from collections.abc import Iterator

import pytest

from dataflow_assets.errors import ConfigError, SourceError
from dataflow_assets.pipeline import Pipeline
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets_tests.walk import UNCHANGED, rows, walk

_MISSING = [name for name in ("s3fs", "moto", "boto3") if importlib.util.find_spec(name) is None]
needs_s3 = pytest.mark.skipif(bool(_MISSING), reason=f"S3 IS NOT TESTED: {', '.join(_MISSING)} not installed")


@pytest.fixture(scope="module")
def s3_url() -> Iterator[str]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bucket(s3_url: str, monkeypatch, request):
    """An empty bucket; its name is that of the test."""
    import boto3

    login = {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "s3cret", "AWS_DEFAULT_REGION": "us-east-1"}
    for name, value in {**login, "AWS_ENDPOINT_URL": s3_url}.items():
        monkeypatch.setenv(name, value)
    made = boto3.resource("s3").Bucket(request.node.name.replace("_", "-")[:60].rstrip("-"))
    made.create()
    return made


def put(bucket, key: str, *numbers: int) -> None:
    bucket.put_object(Key=key, Body="".join(f'{{"n":{n}}}\n' for n in numbers).encode())


def pipeline(tmp_path, source: str | dict) -> Pipeline:
    return Pipeline(name="p", source=source, root=str(tmp_path / "data"), steps=[UNCHANGED])


def numbers(tmp_path, source: str | dict) -> list[object]:
    return [row["n"] for row in rows(walk(pipeline(tmp_path, source)), "kept")]


@needs_s3
def test_an_object_a_folder_and_a_glob(tmp_path, bucket):
    put(bucket, "d/b.jsonl", 2, 3)
    put(bucket, "d/a.jsonl", 1)
    put(bucket, "d/_later.jsonl", 9)
    put(bucket, "d/sub/数 据.jsonl", 4)
    assert numbers(tmp_path, f"s3://{bucket.name}/d/b.jsonl") == [2, 3]
    assert numbers(tmp_path, {"path": f"s3://{bucket.name}/d"}) == [1, 2, 3, 4]
    assert numbers(tmp_path, f"s3://{bucket.name}/d/*.jsonl") == [1, 2, 3]


@needs_s3
def test_a_key_may_have_characters_of_urls(tmp_path, bucket):
    bucket.put_object(Key="d/", Body=b"")  # the folder, as a console of the store makes it
    keys = ["100%25.jsonl", "a+b c.jsonl", "part#1.jsonl", "what?.jsonl"]
    for number, key in enumerate(keys):
        put(bucket, f"d/{key}", number)
    work = walk(pipeline(tmp_path, f"s3://{bucket.name}/d"))
    assert [row["n"] for row in rows(work, "kept")] == [0, 1, 2, 3]
    assert work.source_pieces().skipped == []
    assert numbers(tmp_path, f"s3://{bucket.name}/d/part#1.jsonl") == [2]


@needs_s3
def test_only_a_changed_object_is_read_again(tmp_path, bucket):
    put(bucket, "d/a.jsonl", 1)
    put(bucket, "d/b.jsonl", 2)
    made = pipeline(tmp_path, f"s3://{bucket.name}/d")
    walk(made)
    assert PipelineWork(made).source_is_current()
    put(bucket, "d/b.jsonl", 5)
    assert not PipelineWork(made).source_is_current()
    work = walk(made)
    assert [row["n"] for row in rows(work, "kept")] == [1, 5]
    assert len(list((tmp_path / "cache").glob("*/*.jsonl"))) == 3


@needs_s3
def test_what_is_not_there_is_told_by_name(tmp_path, bucket):
    with pytest.raises(SourceError, match=r"s3://no-such-bucket/a\.jsonl: there is no such file"):
        numbers(tmp_path, "s3://no-such-bucket/a.jsonl")
    with pytest.raises(SourceError, match=r"/nothing has no file that can be read"):
        numbers(tmp_path, f"s3://{bucket.name}/nothing")


@needs_s3
def test_an_object_that_changes_while_it_is_read_is_refused(tmp_path, bucket):
    from dataflow_assets.sources.remote.file_system import FileSystemStore

    put(bucket, "a.jsonl", 1)
    store = FileSystemStore(f"s3://{bucket.name}/a.jsonl", {})
    (file,) = store.found(f"s3://{bucket.name}/a.jsonl")
    put(bucket, "a.jsonl", 2)
    from dataflow_assets.sources.remote.cache import local_copy

    with pytest.raises(SourceError, match="changed while it was read"), local_copy(store, file):
        pass


@needs_s3
def test_a_store_that_is_away_for_a_moment_is_asked_again(tmp_path, bucket, monkeypatch):
    from dataflow_assets.sources.remote.file_system import FileSystemStore

    put(bucket, "a.jsonl", 1)
    blocks, faults = FileSystemStore.blocks, [ConnectionError("reset"), TimeoutError("slow")]

    def sometimes(self, file, start):
        if faults:
            with self.told_in_our_words(file.name):
                raise faults.pop()
        return blocks(self, file, start)

    monkeypatch.setattr(FileSystemStore, "blocks", sometimes)
    assert numbers(tmp_path, f"s3://{bucket.name}/a.jsonl") == [1]


@needs_s3
def test_options_are_no_part_of_what_was_read(tmp_path, bucket, s3_url, monkeypatch):
    put(bucket, "a.jsonl", 1)
    walk(pipeline(tmp_path, f"s3://{bucket.name}/a.jsonl"))
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    options = {"key": "id", "secret": "s3cret", "endpoint_url": s3_url}
    made = pipeline(tmp_path, {"path": f"s3://{bucket.name}/a.jsonl", "storage_options": options})
    assert PipelineWork(made).source_is_current()


def test_a_file_system_that_is_not_installed_is_asked_for(tmp_path, monkeypatch):
    for url, package in (("gs://b/x.jsonl", "gcsfs"), ("az://b/x.jsonl", "adlfs")):
        if importlib.util.find_spec(package) is None:
            with pytest.raises(ConfigError, match=f"pip install {package}"):
                numbers(tmp_path, url)
    with pytest.raises(ConfigError, match=r"nosuch://b/x\.jsonl: Protocol not known"):
        numbers(tmp_path, "nosuch://b/x.jsonl")


@needs_s3
@pytest.mark.parametrize("path", ["", "/**/*.jsonl", "/**"])
def test_what_a_pipeline_wrote_is_left_out_unless_the_url_leads_there(tmp_path, bucket, path):
    put(bucket, "in.jsonl", 1)
    put(bucket, "root/p/manifest.json", 2)
    put(bucket, "root/p/p_step0/_commits/in_b00000.json", 3)
    put(bucket, "root/p/p_step0/in_b00000.jsonl", 4)
    put(bucket, "root/p/p_step0.jsonl", 5)
    assert numbers(tmp_path, {"path": f"s3://{bucket.name}{path}", "format": "jsonl"}) == [1]
    for into in ("p_step0", "p_step0/*", "*_step0/*.jsonl"):
        assert numbers(tmp_path, {"path": f"s3://{bucket.name}/root/p/{into}"}) == [4]
