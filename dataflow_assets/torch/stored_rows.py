"""The rows of committed batches, read block by block: what a training process and its workers hold.

A block is a file, a row group of a large Parquet file, or some lines of a large JSONL file. A few are
kept in memory; each is checked against its commit record when it is read.
"""

import io
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import BinaryIO, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from dataflow_assets.batch import Schema, arrow_schema
from dataflow_assets.errors import ConfigError, CorruptFile, StorageError
from dataflow_assets.finished_step import FinishedStep
from dataflow_assets.io.commit_record import StoredFile
from dataflow_assets.io.formats import Format, decode
from dataflow_assets.io.step_folder import is_as_stored
from dataflow_assets.io.storage import storage_of
from dataflow_assets.torch.opened_blocks import JsonLines, OpenedBlock, Rows, Table
from dataflow_assets.torch.order import Numbers

_BLOCK_BYTES = 1 << 24
_HASHED_BYTES = 1 << 18


class BatchFile(NamedTuple):
    """A committed batch as its record has it."""

    path: str
    format: Format
    stored: StoredFile


class Block(NamedTuple):
    """Rows that are read together: of which file, its size, and what of the file it is.

    `part` is the number of a row group, or the byte at which the lines begin; None for the whole file.
    """

    file: int
    rows: int
    size: int
    part: int | None = None


class Opened:
    """The blocks that were used last, as many as `most_bytes` of files hold, and at least one.

    `checked` are the files whose content was hashed in this process.
    """

    def __init__(self, most_bytes: int = 1 << 26) -> None:
        self.most_bytes = most_bytes
        self.checked: set[int] = set()
        self._blocks: OrderedDict[int, tuple[int, OpenedBlock]] = OrderedDict()

    def __reduce__(self) -> "tuple[type[Opened], tuple[int]]":
        return Opened, (self.most_bytes,)  # another process opens its own

    def get(self, number: int) -> OpenedBlock | None:
        """A block, if it is here."""
        if number not in self._blocks:
            return None
        self._blocks.move_to_end(number)
        return self._blocks[number][1]

    def add(self, number: int, size: int, block: OpenedBlock) -> OpenedBlock:
        """Keeps a block, and lets those go that were not used for the longest time."""
        self._blocks[number] = size, block
        held = sum(size for size, _ in self._blocks.values())
        while held > self.most_bytes and len(self._blocks) > 1:
            held -= self._blocks.popitem(last=False)[1][0]
        return block


@dataclass(frozen=True)
class StoredRows:
    """The rows of a finished step with these columns, by block. Can be sent to other processes."""

    files: tuple[BatchFile, ...]
    blocks: tuple[Block, ...]
    columns: tuple[str, ...]
    content: str
    allow_pickle: bool = False
    opened: "Opened" = field(default_factory=lambda: Opened(), compare=False, repr=False)

    @property
    def total(self) -> int:
        """How many rows there are."""
        return sum(block.rows for block in self.blocks)

    def pieces(self, block: int, numbers: range) -> Iterator[Rows]:
        """Consecutive rows of a block, some at a time, as dicts of Python values."""
        return self._open(block).pieces(numbers, self.columns)

    def rows(self, block: int, numbers: Numbers) -> Rows:
        """Rows of a block by their numbers, in this order."""
        return self._open(block).rows(numbers, self.columns)

    def values(self, block: int, numbers: range) -> dict[str, list]:
        """Consecutive rows of a block column by column, which costs less."""
        return self._open(block).values(numbers, self.columns)

    def _open(self, number: int) -> OpenedBlock:
        block = self.blocks[number]
        return self.opened.get(number) or self.opened.add(number, block.size, self._read(block))

    def _read(self, block: Block) -> OpenedBlock:
        file = self.files[block.file]
        _check(file, content=block.part is None and block.file not in self.opened.checked)
        self.opened.checked.add(block.file)
        if file.format == "parquet":
            return Table(_read_parquet(file, block.part, self.columns))
        if file.format == "jsonl":
            opened = partial(_opened, file)
            return JsonLines(opened, file.path, block.part or 0, block.size)
        with _opened(file) as stream:
            data = stream.read()
        if file.format == "json":
            # `decode` goes through polars, which hangs in a forked worker
            lines = data[2:-3].replace(b",\n", b"\n") + b"\n"
            return JsonLines(partial(io.BytesIO, lines), file.path, 0, len(lines))
        return Table(decode(data, file.format, file.stored.schema, allow_pickle=self.allow_pickle))


def stored_rows(step: FinishedStep, columns: Sequence[str] | None = None) -> StoredRows:
    """The rows of a finished step; `columns` names those that are wanted, in order, each once.

    Of a root on an object store all files are brought to this disk first. Raises ConfigError for a column
    that no batch has, CorruptFile, StorageError.
    """
    if isinstance(columns, str):
        raise ConfigError(f"columns={columns!r}; expected a list of names: columns=[{columns!r}]")
    known = step.columns()
    missing = [name for name in columns or () if name not in known]
    if missing:
        raise ConfigError(f"step {step.name!r} has no column {missing[0]!r}; it has {', '.join(known)}")
    files = tuple(
        BatchFile(
            str(step.kept.folder.stored_path(record.files["kept"])), record.format, record.files["kept"]
        )
        for record in step.records
    )
    storage_of(step.kept.folder.path).bring_all(file.path for file in files)
    digest = xxhash.xxh3_128()
    for record in step.records:
        digest.update(f"{record.batch} {record.content_hash}\n".encode())
    blocks = [block for number, file in enumerate(files) for block in _blocks_of(number, file)]
    wanted = tuple(known if columns is None else dict.fromkeys(columns))
    pickle = step.kept.folder.allow_pickle
    return StoredRows(
        files, tuple(block for block in blocks if block.rows), wanted, digest.hexdigest(), pickle
    )


def _blocks_of(number: int, file: BatchFile) -> Iterator[Block]:
    rows, size = file.stored.rows, file.stored.size
    if size <= _BLOCK_BYTES or file.format not in ("jsonl", "parquet"):
        yield Block(number, rows, size)
        return
    _check(file, content=True)
    if file.format == "parquet":
        metadata = _opened_parquet(file).metadata
        for part in range(metadata.num_row_groups):
            group = metadata.row_group(part)
            yield Block(number, group.num_rows, group.total_byte_size, part)
    else:
        yield from _line_blocks(number, file)


def _line_blocks(number: int, file: BatchFile) -> Iterator[Block]:
    """Cuts a large JSONL file after the first line that ends behind each 16 MiB."""
    begin = 0
    with open(file.path, "rb") as lines:
        while piece := lines.read(_BLOCK_BYTES):
            piece += lines.readline()
            yield Block(number, piece.count(b"\n"), len(piece), begin)
            begin += len(piece)


def _check(file: BatchFile, content: bool) -> None:
    """Raises CorruptFile where the file is not what was committed: by its content, or its size and time.

    The content is looked at once in each process; that of a large file when the data set is opened.
    """
    if content:
        digest = xxhash.xxh3_128()
        with _opened(file) as stream:
            while piece := stream.read(_HASHED_BYTES):
                digest.update(piece)
        unchanged = digest.hexdigest() == file.stored.hash
    else:
        unchanged = is_as_stored(file.path, file.stored)
    if not unchanged:
        raise CorruptFile(
            f"{file.path} is not what was committed when the data set was opened; open it again, or delete "
            "the file and run the pipeline again where it is damaged"
        )


def _opened(file: BatchFile) -> BinaryIO:
    try:
        return open(file.path, "rb", buffering=0)
    except OSError as error:
        raise StorageError(f"{file.path} cannot be read: {error.strerror}") from error


def _opened_parquet(file: BatchFile) -> pq.ParquetFile:
    return pq.ParquetFile(file.path, binary_type=pa.large_binary())


def _read_parquet(file: BatchFile, part: int | None, columns: Sequence[str]) -> pa.Table:
    schema: Schema = {name: kind for name, kind in file.stored.schema.items() if name in columns}
    try:
        parquet = _opened_parquet(file)
        if part is None:
            table = parquet.read(columns=list(schema), use_threads=False)
        else:
            table = parquet.read_row_group(part, columns=list(schema), use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise CorruptFile(f"{file.path} is no Parquet file as it was written: {error}") from error
    return pa.Table.from_arrays([table[name] for name in schema], schema=arrow_schema(schema))
