"""Safe, unique key parts for the files of a source."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import xxhash

if TYPE_CHECKING:
    from dataflow_assets.sources.discovery import SourceFile

MAX_SLUG_CHARS = 48
_EXTENSIONS = re.compile(r"(\.(jsonl|ndjson|json|csv|tsv|parquet|txt|gz|zst))+$", re.IGNORECASE)
_GROUP_DOCUMENTS = 16
_UNSAFE = re.compile(r"[^a-z0-9_-]+")


def with_slugs(files: Sequence["SourceFile"]) -> list["SourceFile"]:
    """The same files with slugs that are unique among them.

    A plain stem is its own slug; the first file of a name keeps it when another comes later, so
    that adding files renames no batches.
    """
    slugs = unique_slugs((_EXTENSIONS.sub("", file.path.name), file.name) for file in files)
    return [file._replace(slug=slug) for file, slug in zip(files, slugs, strict=True)]


def unique_slugs(named: Iterable[tuple[str, str]]) -> list[str]:
    """A slug for each stem and whole name, different from the others; the first of a stem keeps it plain."""
    taken: set[str] = set()
    slugs = []
    for stem, name in named:
        slugs.append(next(each for each in _candidates(stem, name) if each not in taken))
        taken.add(slugs[-1])
    return slugs


def _candidates(stem: str, name: str) -> Iterator[str]:
    """The stem, then the stem with more and more of the name's hash."""
    safe = _UNSAFE.sub("-", stem.lower()).strip("-")
    if safe == stem and 0 < len(stem) <= MAX_SLUG_CHARS:
        yield stem
    digest = _digest(name)
    for digits in (8, 16):
        yield f"{(safe or 'file')[: MAX_SLUG_CHARS - digits - 1]}-{digest[:digits]}"


def document_slug(name: str) -> str:
    """What the row ids of a document begin with: its stem and the hash of its name."""
    safe = _UNSAFE.sub("-", PurePosixPath(name).stem.lower()).strip("-")
    return f"{(safe or 'file')[: MAX_SLUG_CHARS - 17].rstrip('-')}-{_digest(name)}"


def starts_group(name: str) -> bool:
    """Whether a group of documents begins with this one: one in 16 does."""
    return int(_digest(name), 16) % _GROUP_DOCUMENTS == 0


def _digest(name: str) -> str:
    return xxhash.xxh3_64_hexdigest(name.encode("utf-8", "backslashreplace"))
