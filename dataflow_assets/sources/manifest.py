"""The manifest: what was read, file by file, and which batches it became."""

from dataclasses import asdict, dataclass, field
from pathlib import Path

import orjson
import xxhash

from dataflow_assets.batch import ColumnType, Schema
from dataflow_assets.errors import RunError, StorageError
from dataflow_assets.io.atomic import write_atomically
from dataflow_assets.sources.states import State, state_of

MANIFEST_VERSION = 3


@dataclass(frozen=True)
class ReadFile:
    """One piece of the source (a file, a folder of one-row files, a shard), its batches and its columns.

    `batches` has the fingerprint of each batch by its key: a batch with another one is of another
    reading. A column type of None is a column that held nothing but nulls.
    """

    name: str
    slug: str
    states: dict[str, State]
    batches: dict[str, str]
    schema: dict[str, ColumnType | None]
    rows: int
    rejected: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Manifest:
    """What a pipeline read: `settings` is the hash of everything else that decides the batches.

    `pins` is what the source left open and was resolved once, a revision for example.
    """

    pipeline: str
    prefix: str
    settings: str
    files: list[ReadFile]
    schema: Schema
    skipped: list[str] = field(default_factory=list)
    pins: dict[str, str] = field(default_factory=dict)

    @property
    def batches(self) -> list[str]:
        """All batch keys in partition order."""
        return [key for file in self.files for key in file.batches]

    @property
    def rows(self) -> int:
        """Good rows over all files."""
        return sum(file.rows for file in self.files)

    def write(self, path: Path) -> None:
        """Stores the manifest whole or not at all. Raises StorageError."""
        body = {"version": MANIFEST_VERSION, **asdict(self)}
        write_atomically(
            path, orjson.dumps({**body, "checksum": _checksum(body)}, option=orjson.OPT_INDENT_2)
        )

    @classmethod
    def read(cls, path: Path) -> "Manifest | None":
        """The stored manifest, or None where there is no whole one: then the source is read again.

        Raises StorageError where it cannot be read, RunError for one of a newer version.
        """
        try:
            body = orjson.loads(path.read_bytes())
            checksum, version = body.pop("checksum"), body["version"]
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageError(f"{path} cannot be read: {error.strerror}; give permission") from error
        except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError):
            return None
        if isinstance(version, int) and version > MANIFEST_VERSION:
            raise RunError(
                f"{path} was written by a newer dataflow_assets (version {version}, this one reads up to "
                f"{MANIFEST_VERSION}); upgrade this installation or use another root"
            )
        if checksum != _checksum(body):
            return None
        del body["version"]
        body["files"] = [_file(entry) for entry in body["files"]]
        return cls(**body)


def _file(entry: dict) -> ReadFile:
    states = {name: state_of(state) for name, state in entry.pop("states").items()}
    batches = entry.pop("batches")
    if isinstance(batches, list):  # version 2 had the keys alone: the piece is read again
        batches = dict.fromkeys(batches, "")
    return ReadFile(states=states, batches=batches, **entry)


def _checksum(body: dict) -> str:
    return xxhash.xxh3_64_hexdigest(orjson.dumps(body, option=orjson.OPT_SORT_KEYS))
