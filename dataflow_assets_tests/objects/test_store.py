"""What every store does, whatever it is.

DATAFLOW_TEST_STORES names further protocols, such as `gs az`, whose packages and addresses the environment
has, as that of an emulator: a bucket is made there for each test.
"""

import os
import uuid

import pytest

from dataflow_assets.io.objects import s3
from dataflow_assets.io.objects.fsspec_store import FsspecStore
from dataflow_assets.io.objects.s3 import S3Store
from dataflow_assets.io.objects.store import NOTHING, Conflict, ObjectStore


@pytest.fixture(params=["s3", "memory", *os.environ.get("DATAFLOW_TEST_STORES", "").split()])
def store(request, here) -> ObjectStore:
    if request.param == "s3":
        return S3Store(here.name)
    bucket = uuid.uuid4().hex
    if request.param != "memory":
        import fsspec

        fsspec.filesystem(request.param).mkdir(bucket)
    return FsspecStore(request.param, bucket)


def test_a_put_object_is_listed_and_read(store) -> None:
    etag = store.put("a/b/中.json", b"{}")
    store.put("ab", b"another folder")
    assert {name: entry.size for name, entry in store.listed("a/").items()} == {"a/b/中.json": 2}
    assert store.listed("a/")["a/b/中.json"].etag == store.get("a/b/中.json").etag == etag
    assert store.listed("nothing/") == {}


def test_only_one_of_two_puts_of_a_new_object_wins(store) -> None:
    store.put("a", b"first", NOTHING)
    with pytest.raises(Conflict):
        store.put("a", b"second", NOTHING)
    assert store.get("a").data == b"first"


def test_an_object_is_replaced_only_where_it_is_what_was_expected(store) -> None:
    first = store.put("a", b"first")
    second = store.put("a", b"second", first)
    with pytest.raises(Conflict):
        store.put("a", b"third", first)
    assert store.get("a") == store.get("a")._replace(data=b"second", etag=second)


def test_the_same_bytes_again_are_no_conflict(store) -> None:
    assert store.put("a", b"mine", NOTHING) == store.put("a", b"mine", NOTHING)


def test_what_was_removed_is_gone_and_may_be_removed_again(store, tmp_path) -> None:
    store.put("a", b"1")
    store.remove("a")
    store.remove("a")
    with pytest.raises(FileNotFoundError):
        store.get("a")
    with pytest.raises(FileNotFoundError):
        store.get_file("a", tmp_path / "a")


def test_a_large_file_goes_in_parts_and_comes_back(here, tmp_path) -> None:
    data = bytes(range(256)) * 4 * (s3.PART_BYTES // 1024) + b"rest"
    (tmp_path / "large").write_bytes(data * 2)
    etag = S3Store(here.name).put_file("a/large", tmp_path / "large")
    assert etag.endswith('-3"')
    assert S3Store(here.name).get_file("a/large", tmp_path / "back") == etag
    assert (tmp_path / "back").read_bytes() == data * 2


def test_uploads_that_were_left_are_ended_below_the_prefix_alone(here) -> None:
    client = here.client()
    for key in ("mine/a", "mine/b", "others/a"):
        client.create_multipart_upload(Bucket=here.name, Key=key)
    assert S3Store(here.name).abort_uploads("mine/") == 2
    left = client.list_multipart_uploads(Bucket=here.name)["Uploads"]
    assert [upload["Key"] for upload in left] == ["others/a"]


def test_more_than_a_page_is_listed(here) -> None:
    store = S3Store(here.name)
    for number in range(1010):
        store.put(f"a/{number}", b"")
    assert len(store.listed("a/")) == 1010
