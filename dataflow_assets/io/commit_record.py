"""The record that makes a batch exist: what was stored, from what, by what."""

from dataclasses import asdict, dataclass, field

import orjson
import xxhash

from dataflow_assets.batch import Schema
from dataflow_assets.errors import RunError
from dataflow_assets.io.formats import Format

RECORD_VERSION = 1


@dataclass(frozen=True)
class StoredFile:
    """One file of a batch: `name` is relative to the step's folder, `rows` its number of rows.

    `mtime_ns` is of a file on a disk, `etag` of an object in an object store.
    """

    name: str
    rows: int
    size: int
    hash: str
    mtime_ns: int
    schema: Schema
    etag: str = ""


@dataclass(frozen=True)
class CommitRecord:
    """What was committed for one batch of one step.

    `code_version` is the hash of what the operator does: name, version, parameters, own code.
    `fingerprint` decides whether the batch must be done again, `content_hash` is the hash of the
    kept rows, whatever the format. `files` has `kept`, and `rejected` and `failed` where there are
    such rows. `inputs` maps each parent to the content hash that was read. `seconds` is the
    operator's time, reading and writing included. `generation` counts the commits of this key. `usage`
    has the calls to models: `calls`, `cached`, `tokens_in`, `tokens_out` and `cost`. `counts` are
    the operator's own numbers, e.g. what it replaced.
    """

    batch: str
    operator: str
    operator_version: str
    code_version: str
    fingerprint: str
    content_hash: str
    format: Format
    files: dict[str, StoredFile]
    rows_in: int
    rows_out: int
    rejected: dict[str, int] = field(default_factory=dict)
    failed: dict[str, int] = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)
    generation: int = 1
    started_at: float = 0.0
    seconds: float = 0.0
    usage: dict[str, float] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def schema(self) -> Schema:
        """The columns of the kept rows."""
        return self.files["kept"].schema

    def to_bytes(self) -> bytes:
        """The record as one JSON document that carries its own checksum."""
        body = {"version": RECORD_VERSION, **asdict(self)}
        for file in body["files"].values():
            if not file["etag"]:
                del file["etag"]
        return orjson.dumps({**body, "checksum": _checksum(body)}, option=orjson.OPT_INDENT_2)

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> "CommitRecord | None":
        """The record, or None where the bytes are not one whole record: then the batch does not exist.

        Raises RunError for a record of a newer version of this package.
        """
        try:
            body = orjson.loads(data)
            checksum = body.pop("checksum")
            version = body["version"]
        except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError):
            return None
        if isinstance(version, int) and version > RECORD_VERSION:
            raise RunError(
                f"{where} was written by a newer dataflow_assets (record version {version}, this one reads "
                f"up to {RECORD_VERSION}); upgrade this installation or use another root"
            )
        if checksum != _checksum(body):
            return None
        del body["version"]
        body["files"] = {part: StoredFile(**file) for part, file in body["files"].items()}
        return cls(**body)


def _checksum(body: dict) -> str:
    return xxhash.xxh3_64_hexdigest(orjson.dumps(body, option=orjson.OPT_SORT_KEYS))
