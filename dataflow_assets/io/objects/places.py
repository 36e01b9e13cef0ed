"""Where the copy of an object store's folder is on this disk: a path for each URL, and back."""

import os
import re
from functools import lru_cache
from pathlib import Path

from dataflow_assets.errors import ConfigError
from dataflow_assets.optional_packages import require

CACHE_VARIABLE = "DATAFLOW_CACHE"
_ROOTS = "object_roots"
_PACKAGES = {
    "s3": {"boto3": "s3"},
    "gs": {"fsspec": "s3", "gcsfs": ""},
    "az": {"fsspec": "s3", "adlfs": ""},
    "memory": {"fsspec": "s3"},
}
_URL = re.compile(r"([a-z0-9+.-]+)://(.*)", re.IGNORECASE | re.DOTALL)
_REFUSED = re.compile(r"[\x00-\x1f\x7f?#\\]")


def local_folder(url: str) -> Path:
    """The folder on this disk that is a copy of what is below the URL.

    It is below DATAFLOW_CACHE, by default `~/.cache/dataflow_assets`. Raises ConfigError for a URL that
    cannot be a root, or whose package is not installed; the message shows no credentials.
    """
    found = _URL.fullmatch(url)
    protocol, rest = (found[1].lower(), found[2]) if found else ("", "")
    if protocol not in _PACKAGES:
        known = ", ".join(f"{name}://" for name in _PACKAGES)
        raise ConfigError(
            f"root {_without_credentials(url)!r} is on {protocol or 'no'}://; expected a folder, or a URL "
            f"that begins with one of {known}"
        )
    bucket, *parts = rest.removesuffix("/").split("/")
    if "@" in bucket:
        raise ConfigError(
            f"root {_without_credentials(url)!r} has credentials in it; give them by the environment or the "
            "files of the cloud's own tools, and the root as protocol://bucket/prefix"
        )
    if not bucket or any(part in ("", ".", "..") for part in (bucket, *parts)) or _REFUSED.search(rest):
        raise ConfigError(
            f"root {_without_credentials(url)!r} is no place for files; expected protocol://bucket/prefix"
        )
    require(_PACKAGES[protocol], f"root {url!r}")
    return roots().joinpath(protocol, bucket, *parts)


def _without_credentials(url: str) -> str:
    return re.sub(r"[?#].*", "?***", re.sub(r"//[^/]*@", "//***@", url), flags=re.DOTALL)


def roots() -> Path:
    """The folder below which the copies are: `<protocol>/<bucket>/<prefix>`."""
    return _roots(os.environ.get(CACHE_VARIABLE), os.environ.get("XDG_CACHE_HOME"))


@lru_cache(maxsize=8)
def _roots(named: str | None, users: str | None) -> Path:
    cache = Path(named) if named else Path(users or "~/.cache", "dataflow_assets")
    return Path(os.path.realpath(cache.expanduser())) / _ROOTS


def is_copy(path: str) -> bool:
    """Whether the path is in a copy of an object store."""
    return f"/{_ROOTS}/" in path and path.startswith(f"{roots()}/")


def url_of(path: Path) -> str | None:
    """The URL of what the path is a copy of, None for a file that is here alone."""
    if not is_copy(str(path)):
        return None
    protocol, *parts = path.relative_to(roots()).parts
    return f"{protocol}://{'/'.join(parts)}"


def place_of(path: Path) -> str:
    """The URL of a copy, else the path: what a person is told, and what is the same on every machine."""
    return url_of(path) or str(path)
