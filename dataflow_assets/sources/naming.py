"""Safe, unique key parts for the files of a source."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import xxhash

if TYPE_CHECKING:
    from dataflow_assets.sources.discovery import SourceFile

MAX_SLUG_CHARS = 48
_EXTENSIONS = re.compile(r"(\.(jsonl|ndjson|json|csv|tsv|parquet|txt|gz|zst))+$", re.IGNORECASE)
_GROUP_DOCUMENTS = 16
_UNSAFE = re.compile(r"[^a-z0-9_-]+")


def with_slugs(files: Sequence["SourceFile"], known: Mapping[str, str] = {}) -> list["SourceFile"]:
    """The same files with slugs that are unique among them.

    A plain stem is its own slug. A file keeps the slug that it has in `known`, by its name, when
    another of that stem comes, so that adding files renames no batches.
    """
    slugs = unique_slugs([(_EXTENSIONS.sub("", file.path.name), file.name) for file in files], known)
    return [file._replace(slug=slug) for file, slug in zip(files, slugs, strict=True)]


def unique_slugs(named: Iterable[tuple[str, str]], known: Mapping[str, str] = {}) -> list[str]:
    """A slug for each stem and whole name, different from the others; the first of a stem keeps it plain.

    Slugs of `known`, by whole name, stay, where they are still slugs of the name.
    """
    named = list(named)
    taken: dict[str, str] = {}
    for stem, name in named:
        slug = known.get(name)
        if slug is not None and slug in _candidates(stem, name):
            taken.setdefault(slug, name)
    slugs = []
    for stem, name in named:
        slug = known.get(name, "")
        if taken.get(slug) != name:
            slug = next(each for each in _candidates(stem, name) if each not in taken)
            taken[slug] = name
        slugs.append(slug)
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
