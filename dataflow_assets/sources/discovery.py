"""Which files a source means: paths, folders and globs to a sorted list of files."""

import glob
import os
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple

from dataflow_assets.errors import SourceError
from dataflow_assets.sources.documents.formats import FORMATS, check_packages, document_format
from dataflow_assets.sources.naming import document_slug, starts_group, with_slugs
from dataflow_assets.sources.outputs import OutputsBelow, spells_a_step, without_outputs
from dataflow_assets.sources.spec import FileFormat, SourceSpec

Compression = Literal["gz", "zst"]
FORMAT_BY_EXTENSION: dict[str, FileFormat] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".txt": "txt",
}
_COMPRESSION_BY_EXTENSION: dict[str, Compression] = {".gz": "gz", ".zst": "zst"}
_FAMILIES = ({"jsonl", "json"}, {"csv", "tsv", "txt"}, {"parquet"})
KNOWN_EXTENSIONS = ", ".join([*FORMAT_BY_EXTENSION, *_COMPRESSION_BY_EXTENSION])


class SourceFile(NamedTuple):
    """One file of a source, or several that are read together: texts of `rows: file`, or documents.

    `name` is how people know it (relative, as it is spelled), `slug` is its part of a batch key.
    `names` are those of the members where they are documents, else they go by the path below `path`.
    """

    path: Path
    name: str
    slug: str
    format: FileFormat | Literal["documents"]
    compression: Compression | None = None
    members: tuple[Path, ...] = ()
    names: tuple[str, ...] = ()


class Named(NamedTuple):
    """A file and how people know it."""

    path: Path
    name: str


def discover(
    spec: SourceSpec, base_dir: Path, known_slugs: Mapping[str, str] = {}
) -> tuple[list[SourceFile], list[str]]:
    """The files of the source, and the names of files in folders that were left out.

    Each path in the given order, the files of a folder or glob sorted by name, a file that comes
    twice once. Hidden files, names with a leading `_` and outputs of pipelines are left out of folders. A
    file that was read before keeps its slug. Raises SourceError where a path leads to nothing that can be
    read.
    """
    files: list[SourceFile] = []
    skipped: list[str] = []
    seen: set[str] = set()
    for text in spec.paths:
        try:
            found, left_out = _usable(spec, text, base_dir)
        except OSError as error:
            what = error.strerror or str(error)
            raise SourceError(f"source {text}: {what}; expected a path that can be read") from error
        skipped += left_out
        for each in found:
            _check_permission(each)
        fresh = [each for each in found if not _known(each.path, seen)]
        if spec.files is not None:
            files += [SourceFile(each.path, each.name, "", "documents") for each in fresh]
        elif spec.rows == "file":
            files += _as_one(fresh, text, base_dir)
        else:
            files += [source_file(spec, each) for each in fresh]
    named = _with_unique_names(files)
    if spec.files is not None:
        check_packages(spec.format or document_format(file.name) for file in named)
    return (with_slugs(named, known_slugs) if spec.files is None else document_groups(named)), skipped


def document_groups(documents: list[SourceFile]) -> list[SourceFile]:
    """Documents that are read together, about 16: a new or changed one touches its own group alone.

    A group begins where the hash of a document's name says so, so that the others stay as they were.
    """
    groups: list[list[SourceFile]] = []
    for document in documents:
        if not groups or starts_group(document.name):
            groups.append([])
        groups[-1].append(document)
    return [
        SourceFile(
            group[0].path.parent,
            f"documents from {group[0].name}" if number else "documents",
            document_slug(group[0].name) if number else "documents",
            "documents",
            None,
            tuple(document.path for document in group),
            tuple(document.name for document in group),
        )
        for number, group in enumerate(groups)
    ]


def kind_of(name: str) -> tuple[FileFormat | None, Compression | None]:
    """The format and compression that a file name says."""
    suffixes = PurePosixPath(name.lower()).suffixes
    compression = _COMPRESSION_BY_EXTENSION.get(suffixes[-1]) if suffixes else None
    if compression:
        suffixes = suffixes[:-1]
    return (FORMAT_BY_EXTENSION.get(suffixes[-1]) if suffixes else None), compression


def display_name(path: Path | str) -> str:
    r"""A path as text that can be written anywhere: `/` between parts, invalid bytes as `\xNN`."""
    return os.fsencode(path).decode("utf-8", "backslashreplace").replace(os.sep, "/")


def _known(path: Path, seen: set[str]) -> bool:
    resolved = os.path.realpath(path)
    if resolved in seen:
        return True
    seen.add(resolved)
    return False


def source_file(spec: SourceSpec, found: Named) -> SourceFile:
    """The file with its format, which the source or its name says. Raises SourceError."""
    by_name, compression = kind_of(found.path.name)
    kind = spec.format or by_name
    if kind is None:
        raise SourceError(
            f"source {found.name}: the extension says no format; expected one of {KNOWN_EXTENSIONS}. "
            "Rename the file or set `source.format`"
        )
    if kind == "parquet" and compression:
        raise SourceError(
            f"source {found.name}: a parquet file inside a .{compression} archive cannot be streamed; "
            "parquet compresses by itself, so unpack the file"
        )
    return SourceFile(found.path, found.name, "", kind, compression)


def _check_permission(found: Named) -> None:
    if not os.access(found.path, os.R_OK):
        raise SourceError(
            f"source {found.name}: permission denied; expected a file that this user may read. "
            "Change its permissions (chmod +r)"
        )


def _as_one(found: list[Named], text: str, base_dir: Path) -> list[SourceFile]:
    """One logical file whose members are these: small files then make few batches."""
    if not found:
        return []
    root = _fixed_root(text, base_dir)
    if root.is_file():
        return [SourceFile(root, found[0].name, "", "txt", None, (root,))]
    name = _name(root, text, base_dir)
    name = root.resolve().name if name == "." else name
    return [SourceFile(root, name, "", "txt", None, tuple(each.path for each in found))]


def _with_unique_names(files: list[SourceFile]) -> list[SourceFile]:
    """The same files; equal names (of folders outside) get more of their path until they differ."""
    groups: dict[str, list[Path]] = {}
    for file in files:
        groups.setdefault(file.name, []).append(file.path)
    named = []
    for file in files:
        paths, count = groups[file.name], len(PurePosixPath(file.name).parts)
        while len({path.parts[-count:] for path in paths}) < len(paths):
            count += 1
        named.append(file if len(paths) == 1 else file._replace(name="/".join(file.path.parts[-count:])))
    return named


def _absolute(text: str, base_dir: Path) -> Path:
    return Path(base_dir, os.path.expanduser(text))


def _split_at_wildcard(text: str) -> tuple[list[str], list[str]]:
    """The parts of a path before its first wildcard, and the others."""
    parts = Path(os.path.expanduser(text)).parts
    first = next((place for place, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    return list(parts[:first]), list(parts[first:])


def _fixed_root(text: str, base_dir: Path) -> Path:
    """The file or folder itself, or the part of a glob before its first wildcard."""
    path = _absolute(text, base_dir)
    return path if path.exists() else Path(base_dir, *_split_at_wildcard(text)[0])


def _name(path: Path, text: str, base_dir: Path) -> str:
    """Relative to the base folder where that contains it; else as the source spells its path."""
    if path.is_relative_to(base_dir):
        return display_name(path.relative_to(base_dir))
    root = _fixed_root(text, base_dir)
    return display_name(Path(root.name, path.relative_to(root)))


def _usable(spec: SourceSpec, text: str, base_dir: Path) -> tuple[list[Named], list[str]]:
    """The files of one path of the source that can be read, and the names of those left out."""
    path = _absolute(text, base_dir)
    if path.is_file():
        return [Named(path, _name(path, text, base_dir))], []
    if path.is_dir():
        return _chosen(spec, text, base_dir, list(_walk(path)), f"folder {text}")
    if path.exists():
        raise SourceError(f"source {text}: it is neither a file nor a folder; expected one of them")
    if glob.has_magic(text):
        return _chosen(spec, text, base_dir, list(_matches(text, base_dir)), f"glob {text}")
    raise SourceError(_missing(path, text))


def _chosen(
    spec: SourceSpec, text: str, base_dir: Path, paths: list[Path], what: str
) -> tuple[list[Named], list[str]]:
    found, left_out = [], []
    known = known_extensions(spec)
    for path in sorted(paths, key=display_name):
        if path.is_file() and fits(spec, path.name):
            found.append(Named(path, _name(path, text, base_dir)))
        else:
            left_out.append(_name(path, text, base_dir))
    if found:
        return found, left_out
    if not left_out:
        raise SourceError(f"source {what} has no files; expected files with one of {known}")
    some = ", ".join(left_out[:3]) + (", …" if len(left_out) > 3 else "")
    raise SourceError(
        f"source {what} has no file that can be read as {spec.format or 'a known format'} "
        f"(found {len(left_out)}: {some}); expected one of {known}, or set `source.format`"
    )


def known_extensions(spec: SourceSpec) -> str:
    """The extensions of files that can be read."""
    return KNOWN_EXTENSIONS if spec.files is None else ", ".join(FORMATS)


def fits(spec: SourceSpec, name: str) -> bool:
    """Whether a file that a folder or glob holds is meant.

    Without a format: every known extension. With one: its family (json and jsonl; csv, tsv and
    txt), and files without an extension; for txt also every unknown extension.
    """
    if spec.files is not None:
        return True
    by_name, _ = kind_of(name)
    wanted = "txt" if spec.rows == "file" else spec.format
    if wanted is None:
        return by_name is not None
    if spec.format is None:
        return by_name == wanted
    if by_name is None:
        return wanted == "txt" or not PurePosixPath(name).suffix or _only_compressed(name)
    return any(wanted in family and by_name in family for family in _FAMILIES)


def _only_compressed(name: str) -> bool:
    return kind_of(name)[1] is not None and len(PurePosixPath(name).suffixes) == 1


def _walk(folder: Path) -> Iterator[Path]:
    """Every file below, links followed; a folder that contains itself is entered once, outputs never."""
    entered = {os.path.realpath(folder)}
    for parent, folders, names in os.walk(folder, followlinks=True, onerror=_raise):
        folders[:] = [name for name in folders if is_data(name) and not _known(Path(parent, name), entered)]
        folders[:], names = without_outputs(Path(parent), folders, names)
        yield from (Path(parent, name) for name in names if is_data(name))


def _raise(error: OSError) -> None:
    raise error


def is_data(name: str) -> bool:
    """Whether a file or folder of this name is read where a folder is; hidden ones and notes are not."""
    return not name.startswith((".", "_"))


def _matches(text: str, base_dir: Path) -> Iterator[Path]:
    """The files of a glob; names with a leading `_`, and outputs, only where the pattern spells one."""
    root = _fixed_root(text, base_dir)
    _, pattern = _split_at_wildcard(text)
    spelled = any(part.startswith("_") for part in pattern)
    is_output = OutputsBelow(root) if not spells_a_step(text) else None
    for match in glob.iglob(os.path.join(*pattern), root_dir=root, recursive=True):
        path = Path(root, match)
        if path.is_dir() or not (spelled or all(map(is_data, Path(match).parts))):
            continue
        if is_output is None or not is_output(path):
            yield path


def _missing(path: Path, text: str) -> str:
    parent = path.parent
    while not parent.is_dir() and parent != parent.parent:
        parent = parent.parent
    if parent == path.parent:
        near = [display_name(name) for name in sorted(os.listdir(parent))[:5] if is_data(name)]
        hint = f"its folder has {', '.join(near)}" if near else "its folder is empty"
    else:
        hint = f"the folder {display_name(path.parent.name)!r} is not there either"
    if path.is_symlink():
        hint = "it is a link to something that is not there"
    return f"source {text}: there is no such file or folder ({hint}); expected a file, a folder or a glob"
