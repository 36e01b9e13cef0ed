"""All small objects of a folder in one, so that a machine with no copies asks once instead of for each.

A pack may be missing or old: what it has counts only where its ETag is that of the object itself.
"""

import contextlib
from base64 import b64decode, b64encode
from collections.abc import Mapping
from pathlib import Path

import orjson
from backports import zstd

from dataflow_assets.io.objects.journal import Known

PACK = ".pack"


def packed(folder: Path, known: Mapping[str, Known]) -> bytes:
    """The copies that are here, with their ETags."""
    found = {}
    for name, entry in known.items():
        with contextlib.suppress(FileNotFoundError):
            data = (folder / name).read_bytes()
            if len(data) == entry.size:
                found[name] = [entry.etag, b64encode(data).decode()]
    return zstd.compress(orjson.dumps(found))


def unpacked(data: bytes) -> dict[str, tuple[str, bytes]]:
    """ETag and content by name; nothing where the pack is damaged."""
    try:
        found = orjson.loads(zstd.decompress(data))
        return {name: (etag, b64decode(text)) for name, (etag, text) in found.items()}
    except (zstd.ZstdError, ValueError, TypeError, AttributeError):
        return {}
