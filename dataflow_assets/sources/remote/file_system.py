"""Files of an object store, or of any other file system that fsspec reaches."""

import glob
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from dataflow_assets.errors import ConfigError, SourceError
from dataflow_assets.sources.remote.store import RemoteFile, Unreachable
from dataflow_assets.sources.remote.urls import scheme_of, shown_url

_BLOCK_BYTES = 4 * 2**20
_PACKAGES = {
    "s3": "'dataflow_assets[s3]'",
    "s3a": "'dataflow_assets[s3]'",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "az": "adlfs",
    "abfs": "adlfs",
    "abfss": "adlfs",
    "hf": "'dataflow_assets[hub]'",
}
_VERSIONS = ("etag", "versionid", "version_id", "generation", "blob_id", "content_md5", "md5hash")
_DATES = ("lastmodified", "last_modified", "updated", "mtime", "created")


class FileSystemStore:
    """Asks the file system of a URL's scheme; logins come from the environment or `storage_options`."""

    def __init__(self, url: str, options: Mapping[str, object]) -> None:
        scheme = scheme_of(url)
        package = _PACKAGES.get(scheme, "fsspec")
        try:
            import fsspec

            self.system = fsspec.filesystem(
                scheme, use_listings_cache=False, skip_instance_cache=True, **options
            )
        except (ImportError, ValueError) as error:
            raise ConfigError(
                f"source {shown_url(url)}: {_first_line(error)}; run `pip install {package}`, "
                "or give another URL"
            ) from error
        self._scheme = scheme

    def found(self, url: str) -> list[RemoteFile]:
        """The file, those below the folder, or those of the glob; sorted by name."""
        path = self.system._strip_protocol(url)
        with self.told_in_our_words(shown_url(url)):
            if (own := self._info(path)) is not None and own["type"] == "file":
                return [self._file(own)]
            if own is None and glob.has_magic(path):
                found = self.system.glob(path, detail=True)
            else:
                found = self.system.find(path, detail=True)
        # A key that ends in `/` is how consoles of stores make a folder.
        files = (info for info in found.values() if info["type"] == "file" and not info["name"].endswith("/"))
        return [self._file(info) for info in sorted(files, key=lambda info: info["name"])]

    def looked_at(self, file: RemoteFile) -> RemoteFile:
        """The file as it is now."""
        self.system.invalidate_cache()
        with self.told_in_our_words(file.name):
            return self._file(self.system.info(file.url))

    def blocks(self, file: RemoteFile, start: int) -> Iterator[bytes]:
        """The bytes from `start` on."""
        with (
            self.told_in_our_words(file.name),
            self.system.open(file.url, "rb", block_size=_BLOCK_BYTES, cache_type="readahead") as stream,
        ):
            stream.seek(start)
            while block := stream.read(_BLOCK_BYTES):
                yield block

    def _info(self, path: str) -> dict[str, Any] | None:
        try:
            return self.system.info(path)
        except FileNotFoundError:
            return None

    def _file(self, info: Mapping[str, Any]) -> RemoteFile:
        lower = {str(key).lower(): value for key, value in info.items() if value is not None}
        facts: dict[str, object] = {"size": lower.get("size")}
        known = [key for key in _VERSIONS if key in lower] or [key for key in _DATES if key in lower][:1]
        facts |= {key: str(lower[key]) for key in known}
        name = f"{self._scheme}://{info['name'].lstrip('/')}"
        return RemoteFile(info["name"], name, facts, lower.get("size"), certain=bool(known))

    @contextmanager
    def told_in_our_words(self, name: str) -> Iterator[None]:
        """Tells in our words what went wrong: what is not there or forbidden is final, all else may pass."""
        try:
            yield
        except SourceError:
            raise
        except FileNotFoundError as error:
            raise SourceError(
                f"source {name}: there is no such file, folder or bucket; correct the URL"
            ) from error
        except PermissionError as error:
            raise SourceError(
                f"source {name}: permission denied ({_first_line(error)}); give a login that may read it, in "
                "the environment or as `source.storage_options`"
            ) from error
        except Exception as error:  # each store has errors of its own; those that last are told in the end
            if type(error).__name__ == "FileExpired":
                raise SourceError(
                    f"{name} changed while it was read; run again when it is complete"
                ) from error
            if type(error).__name__ in (
                "NoCredentialsError",
                "DefaultCredentialsError",
                "PartialCredentialsError",
            ):
                raise SourceError(
                    f"source {name}: {_first_line(error)}; give a login in the environment or as "
                    "`source.storage_options`"
                ) from error
            raise Unreachable(f"source {name}: {type(error).__name__}: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
