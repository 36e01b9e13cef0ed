"""A store that answers with errors, or not at all, or whose answers are lost."""

import pytest

from dataflow_assets.errors import StorageError
from dataflow_assets.io.objects import retries
from dataflow_assets.io.objects.s3 import S3Store
from dataflow_assets.io.objects.store import NOTHING, Conflict
from dataflow_assets_tests.objects.faulty_proxy import FAULTS, faulty_proxy


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits that are as many as ever, and short."""
    monkeypatch.setattr(retries, "_FIRST_WAIT_S", 0.001)


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_met_and_passes(here, quick, monkeypatch, tmp_path, fault: str) -> None:
    with faulty_proxy(here.endpoint, 2, (fault,)) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.address)
        store = S3Store(here.name)
        for number in range(6):
            etag = store.put(f"a/{number}", b"content" * 1000, NOTHING)
            assert store.put(f"a/{number}", b"other" * 1000, etag) != etag
            assert store.get(f"a/{number}").data == b"other" * 1000
            store.get_file(f"a/{number}", tmp_path / "file")
        assert (tmp_path / "file").read_bytes() == b"other" * 1000
        assert len(store.listed("a/")) == 6
        assert proxy.met[fault] >= 6


def test_a_lost_answer_is_no_conflict_and_anothers_bytes_are(here, quick, monkeypatch) -> None:
    with faulty_proxy(here.endpoint, 1, ("cut_after",)) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.address)
        unlucky = S3Store(here.name)
        with pytest.raises(StorageError, match="cannot be reached"):
            unlucky.put("a/record", b"mine", NOTHING)
    monkeypatch.setenv("AWS_ENDPOINT_URL", here.endpoint)
    store = S3Store(here.name)
    assert store.put("a/record", b"mine", NOTHING) == store.get("a/record").etag
    with pytest.raises(Conflict):
        store.put("a/record", b"yours", NOTHING)


def test_what_does_not_pass_is_said_at_once_with_what_to_do(here) -> None:
    with pytest.raises(StorageError, match=r"s3://no-such-bucket/a/b .*404 NoSuchBucket; make the bucket"):
        S3Store("no-such-bucket").put("a/b", b"")


def test_a_store_that_is_away_is_tried_again_then_named(here, quick, monkeypatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(StorageError, match=f"{retries.ATTEMPTS} times; run the same command again"):
        S3Store(here.name).get("a")


def test_a_run_over_a_store_that_fails_every_seventh_time_is_as_any(machine, undisturbed_objects, tmp_path):
    with faulty_proxy(machine.bucket.endpoint, 7) as proxy:
        finished = machine._replace(variables={**machine.variables, "AWS_ENDPOINT_URL": proxy.address}).run()
        assert finished.code == 5, finished
        assert min(proxy.met.values()) > 0
    assert machine.bucket.content(tmp_path / "end") == undisturbed_objects
