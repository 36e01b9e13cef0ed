"""The server of the session, and buckets in it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from dataflow_assets_tests.objects.bucket import Bucket, Machine, new_machine
from dataflow_assets_tests.objects.server import moto_server


@pytest.fixture(scope="session")
def endpoint() -> Iterator[str]:
    """Where the S3 of this session is."""
    pytest.importorskip("moto", reason="no S3 to test with: `pip install 'moto[server]'`")
    with moto_server() as address:
        yield address


@pytest.fixture
def bucket(endpoint: str) -> Bucket:
    """A new bucket."""
    return Bucket.new(endpoint)


@pytest.fixture
def here(bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    """The bucket, for code in this process."""
    for name, value in bucket.environment(tmp_path / "cache").items():
        monkeypatch.setenv(name, value)
    return bucket


@pytest.fixture
def machine(tmp_path: Path, bucket: Bucket) -> Machine:
    """A machine that has seen nothing yet."""
    return new_machine(tmp_path / "machine", bucket)


@pytest.fixture(scope="session")
def undisturbed_objects(endpoint: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """What an undisturbed run of the small project leaves in a bucket."""
    folder = tmp_path_factory.mktemp("undisturbed_objects")
    bucket = Bucket.new(endpoint)
    assert new_machine(folder, bucket).run().code == 5
    return bucket.content(folder / "downloaded")
