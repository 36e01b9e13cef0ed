"""Safe, unique key parts for the files of a source."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import xxhash

if TYPE_CHECKING:
    from dataflow_assets.sources.discovery import SourceFile

MAX_SLUG_CHARS = 48
_EXTENSIONS = re.compile(r"(\.(jsonl|ndjson|json|csv|tsv|parquet|txt|gz|zst))+$", re.IGNORECASE)
_UNSAFE = re.compile(r"[^a-z0-9_-]+")


def with_slugs(files: Sequence["SourceFile"]) -> list["SourceFile"]:
    """The same files with slugs that are unique among them.

    A plain stem is its own slug; the first file of a name keeps it when another comes later, so
    that adding files renames no batches.
    """
    taken: set[str] = set()
    named = []
    for file in files:
        slug = next(each for each in _candidates(file) if each not in taken)
        taken.add(slug)
        named.append(file._replace(slug=slug))
    return named


def _candidates(file: "SourceFile"):
    """The stem, then the stem with more and more of the name's hash."""
    stem = _EXTENSIONS.sub("", file.path.name)
    safe = _UNSAFE.sub("-", stem.lower()).strip("-")
    if safe == stem and 0 < len(stem) <= MAX_SLUG_CHARS:
        yield stem
    digest = xxhash.xxh3_64_hexdigest(file.name.encode("utf-8", "backslashreplace"))
    for digits in (8, 16):
        yield f"{(safe or 'file')[: MAX_SLUG_CHARS - digits - 1]}-{digest[:digits]}"
