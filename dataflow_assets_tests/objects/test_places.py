"""Which URLs can be roots, and where their copies are."""

from pathlib import Path

import pytest

from dataflow_assets.errors import ConfigError
from dataflow_assets.io.objects.places import local_folder, place_of, roots, url_of


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATAFLOW_CACHE", str(tmp_path))


@pytest.mark.parametrize("url", ["s3://bucket", "s3://bucket/a/数据", "memory://b/a b"])
def test_a_url_has_one_folder_and_back(url: str) -> None:
    assert url_of(local_folder(url)) == url
    assert local_folder(f"{url}/") == local_folder(url)
    assert place_of(local_folder(url) / "p" / "manifest.json") == f"{url}/p/manifest.json"


def test_a_path_of_this_disk_is_itself(tmp_path: Path) -> None:
    assert url_of(tmp_path) is None
    assert url_of(roots()) is None
    assert place_of(tmp_path) == str(tmp_path)


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("s3://", "is no place for files"),
        ("s3://bucket//a", "is no place for files"),
        ("s3://bucket/../../etc", "is no place for files"),
        ("s3://bucket/a?versionId=1", "is no place for files"),
        ("s3://bucket/a\n", "is no place for files"),
        ("https://host/a", "is on https://; expected a folder, or a URL"),
        ("ftp://user:pass@host/a", r"'ftp://\*\*\*@host/a' is on ftp://"),
        ("s3://key:secret@bucket/a", r"'s3://\*\*\*@bucket/a' has credentials in it"),
        ("gs://bucket/a", "needs gcsfs"),
    ],
)
def test_what_cannot_be_a_root_is_refused_without_its_credentials(url: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told) as refused:
        local_folder(url)
    assert "secret" not in str(refused.value)
    assert "pass@" not in str(refused.value)


def test_a_bucket_never_leads_out_of_the_copies(tmp_path: Path) -> None:
    assert local_folder("s3://bucket/a").is_relative_to(tmp_path)
    with pytest.raises(ConfigError):
        local_folder("s3://..")
