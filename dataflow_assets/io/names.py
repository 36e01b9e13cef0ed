"""Which names files get: partition keys as file names, and folders that stay inside the root."""

import os
import re
from pathlib import Path

import xxhash

from dataflow_assets.errors import ConfigError

_PLAIN_KEY = re.compile(r"[a-z0-9_][a-z0-9_-]{0,99}\Z")
_DEVICE_NAMES = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])\Z")
_UNSAFE = re.compile(r"[^a-z0-9_]+")
_REFUSED = re.compile(r"[\x00-\x1f\x7f]|\.\.\.")
HASH_MARK = "="


def key_to_name(key: str) -> str:
    """The file name (without extension) of a partition key.

    A key of `[a-z0-9_-]` is its own name. Any other gets a readable slug, `=` and a 128-bit hash
    of the key; `=` is in no plain name, so different keys have different names, on disks that
    fold case too. The commit record keeps the key itself. Raises ConfigError for a key that
    Dagster cannot address: empty, with `...`, or with control characters.
    """
    if not key:
        raise ConfigError("a partition key is empty; expected at least one character")
    if _REFUSED.search(key):
        raise ConfigError(
            f"partition key {key!r} holds control characters or '...', which Dagster cannot address; "
            "rename it"
        )
    if _PLAIN_KEY.match(key) and not _DEVICE_NAMES.match(key):
        return key
    slug = _UNSAFE.sub("-", key.lower())[:40].strip("-")
    return f"{slug}{HASH_MARK}{xxhash.xxh3_128_hexdigest(key.encode('utf-8', 'surrogatepass'))}"


def inside(root: Path, path: Path) -> Path:
    """`path`, after checking that it stays below `root` when links are followed.

    Raises ConfigError that names the link.
    """
    real_root, real = os.path.realpath(root), os.path.realpath(path)
    if os.path.commonpath([real_root, real]) != real_root:
        raise ConfigError(f"{path} leads to {real}, outside of the root {real_root}; remove the link")
    return path
