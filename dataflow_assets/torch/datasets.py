"""The rows of a step as PyTorch data sets: by number, as a stream, and several steps mixed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from math import inf
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

import numpy as np
from torch.utils.data import Dataset, IterableDataset, get_worker_info

from dataflow_assets.errors import ConfigError
from dataflow_assets.fingerprints import hash_of
from dataflow_assets.finished_step import finished_step
from dataflow_assets.pipeline import Pipeline
from dataflow_assets.pipeline.catalog import find_pipeline
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets.torch.mixing import Mix, Until, counts_of
from dataflow_assets.torch.order import Numbers, Order
from dataflow_assets.torch.shares import Ranks, Share, ranks_of, share_of
from dataflow_assets.torch.stored_rows import Opened, StoredRows, stored_rows

if TYPE_CHECKING:
    import datasets

Row = dict[str, Any]
_CHUNK_ROWS = 1024
WINDOW_BYTES = 1 << 26


class FlowDataset(Dataset[Row]):
    """The kept rows of a step of a pipeline, by number, in the order of the pipeline.

    `pipeline` is a name, a YAML file or a Pipeline, `step` a name or number (default: the last; 0 is the
    source). A row is a dict with `row_id` and the other columns, or those that `columns` names; values of
    JSON columns are Python values, a missing one is None. What is committed when it is opened is
    what it has. No Dagster is needed.

    Raises ConfigError for what is not known, and RunError where batches are missing or stale or rows
    failed, unless `allow_partial`.
    """

    def __init__(
        self,
        pipeline: str | Path | Pipeline,
        step: str | int | None = None,
        *,
        root: str | Path | None = None,
        columns: Sequence[str] | None = None,
        allow_partial: bool = False,
    ) -> None:
        found = pipeline if isinstance(pipeline, Pipeline) else find_pipeline(str(pipeline))
        work = PipelineWork(found.with_changes(root=str(root)) if root is not None else found)
        self._step = finished_step(work, step, allow_partial, "the data set")
        self.stored: StoredRows = stored_rows(self._step, columns)
        self._starts = np.append(0, np.cumsum([block.rows for block in self.stored.blocks], dtype=np.int64))

    @property
    def name(self) -> str:
        """The step's name."""
        return self._step.name

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a row."""
        return self.stored.columns

    @property
    def content(self) -> str:
        """A hash of the rows: the same where the same rows were committed in the same batches."""
        return self.stored.content

    def __len__(self) -> int:
        return self.stored.total

    @overload
    def __getitem__(self, number: int) -> Row: ...

    @overload
    def __getitem__(self, number: slice) -> list[Row]: ...

    def __getitem__(self, number: int | slice) -> Row | list[Row]:
        if isinstance(number, slice):
            return self.__getitems__(range(*number.indices(len(self))))
        if not isinstance(number, SupportsIndex):
            raise TypeError(f"rows are had by number or by slice, found {number!r}")
        return self.__getitems__([index(number)])[0]

    def __getitems__(self, numbers: Sequence[int]) -> list[Row]:
        """Several rows at once, as DataLoader asks for them. Raises IndexError."""
        asked, total = np.asarray(numbers, np.int64), len(self)
        if outside := [number for number in numbers if not -total <= number < total]:
            raise IndexError(f"row {outside[0]} of {total}")
        asked = np.where(asked < 0, asked + total, asked)
        blocks = np.searchsorted(self._starts, asked, "right") - 1
        found: list[Any] = [None] * len(asked)
        for where in _by_key(blocks):
            block = int(blocks[where[0]])
            rows = self.stored.rows(block, asked[where] - self._starts[block])
            for place, row in zip(where.tolist(), rows, strict=True):
                found[place] = row
        return found

    def to_hf_dataset(self) -> "datasets.Dataset":
        """The rows as a `datasets.Dataset`, in the same order.

        A JSON column is nested where that holds its values exactly, else it is their text.
        """
        from dataflow_assets.exports.hugging_face import hf_dataset

        known = self._step.columns()
        return hf_dataset(self._step, {name: known[name] for name in self.columns}, self.content)


class FlowMixture:
    """Rows of several data sets in one stream, with the columns of all, null where one has not one.

    Without weights an epoch has each row of each once. With them an epoch has shares by weight: until the
    first data set is used up (`until="shortest"`, no row twice), or until the last is (`"longest"`: every
    row, those of the others several times). An epoch goes on in each data set where the one before ended.
    """

    def __init__(
        self,
        datasets: Sequence[FlowDataset],
        weights: Sequence[float] | None = None,
        until: Until = "shortest",
    ) -> None:
        if not datasets:
            raise ConfigError("a mixture of no data sets; expected one or more")
        if until not in ("shortest", "longest"):
            raise ConfigError(f"until={until!r}; expected 'shortest' or 'longest'")
        self.datasets = list(datasets)
        self.counts = counts_of([len(each) for each in datasets], weights, until)
        self.columns = tuple(dict.fromkeys(name for each in datasets for name in each.columns))

    def __len__(self) -> int:
        return sum(self.counts)


class MixedRows:
    """The rows of an epoch by position, in the order of a seed, or the natural one. For any process."""

    def __init__(
        self,
        rows: FlowDataset | FlowMixture,
        shuffle: bool,
        seed: int,
        window_bytes: int = WINDOW_BYTES,
    ) -> None:
        check_whole("seed", seed, most=2**64 - 1)
        parts = [rows] if isinstance(rows, FlowDataset) else rows.datasets
        counts = [len(rows)] if isinstance(rows, FlowDataset) else rows.counts
        self._stored = [replace(part.stored, columns=rows.columns, opened=Opened()) for part in parts]
        self._window_bytes = window_bytes if shuffle else 0
        self.keep_windows(1)
        orders = [
            Order(
                tuple(block.rows for block in stored.blocks),
                tuple(block.size for block in stored.blocks),
                (seed, 1 + number) if shuffle else None,
                window_bytes,
            )
            for number, stored in enumerate(self._stored)
        ]
        self._mix = Mix(orders, counts, seed)
        self._natural = self._stored[0] if len(parts) == 1 and not shuffle else None
        self._most_blocks = 1 + max(len(stored.blocks) for stored in self._stored)
        self.columns = rows.columns
        self.content = hash_of([part.content for part in parts])
        self.order = hash_of(
            [seed, shuffle, window_bytes, counts, [(order.rows, order.sizes) for order in orders]]
        )

    @property
    def total(self) -> int:
        """The rows of an epoch."""
        return self._mix.total

    def keep_windows(self, windows: int) -> None:
        """How many windows of each data set are kept in memory, beside the one that is read next."""
        for stored in self._stored:
            stored.opened.most_bytes = self._window_bytes * (windows + 1)

    def rows(self, epoch: int, start: int, stop: int) -> list[Row]:
        """The rows from one position of an epoch to before another."""
        if self._natural is not None:
            return [row for rows in self.pieces(epoch, start, stop) for row in rows]
        found: list[Any] = [None] * (stop - start)
        for source, block, numbers, places in self._pieces(epoch, start, stop):
            for place, row in zip(places, self._stored[source].rows(block, numbers), strict=True):
                found[place] = row
        return found

    def pieces(self, epoch: int, start: int, stop: int) -> Iterator[list[Row]]:
        """The same rows, as few at a time as costs least."""
        if self._natural is None:
            yield self.rows(epoch, start, stop)
            return
        for run in self._runs(epoch, start, stop):
            yield from self._natural.pieces(*run)

    @property
    def is_natural(self) -> bool:
        """Whether the rows come in the order in which one data set has them, so that `values` gives them."""
        return self._natural is not None

    def values(self, epoch: int, start: int, stop: int) -> dict[str, list]:
        """The same rows column by column, which costs less, where the order is the natural one."""
        assert self._natural is not None
        some = [self._natural.values(*run) for run in self._runs(epoch, start, stop)]
        if len(some) == 1:
            return some[0]
        return {name: [value for values in some for value in values[name]] for name in self.columns}

    def _runs(self, epoch: int, start: int, stop: int) -> Iterator[tuple[int, range]]:
        """The blocks and their rows where the order is the natural one of a single data set."""
        first = epoch * self.total
        return self._mix.orders[0].runs(first + start, first + stop)

    def _pieces(self, epoch: int, start: int, stop: int) -> Iterator[tuple[int, int, Numbers, list[int]]]:
        """Block by block: its data set and number, which of its rows, and where in the stretch they go."""
        sources, (blocks, rows) = self._mix.locate(epoch, start, stop)
        for where in _by_key(sources * self._most_blocks + blocks):
            yield int(sources[where[0]]), int(blocks[where[0]]), rows[where], where.tolist()


def _by_key(keys: Numbers) -> Iterator[Numbers]:
    """The places of each key, 0 or more, in order."""
    places = np.argsort(keys, kind="stable")
    for first, last in pairwise(np.flatnonzero(np.diff(keys[places], prepend=-1, append=-1))):
        yield places[first:last]


class FlowIterableDataset(IterableDataset[Row]):
    """The rows of a data set or mixture as a stream, for DataLoader or a plain loop.

    Ranks and the workers of a DataLoader each have a stretch of the epoch, all together each row once. The
    state (`state_dict`) is of this process's copy: with workers, use FlowDataLoader, or torchdata's
    StatefulDataLoader, which asks each worker's copy.
    """

    def __init__(
        self,
        rows: FlowDataset | FlowMixture,
        *,
        shuffle: bool = False,
        seed: int = 0,
        rank: int | None = None,
        world_size: int | None = None,
    ) -> None:
        self._rows = MixedRows(rows, shuffle, seed)
        self._ranks = ranks_of(rank, world_size)
        self._epoch = self._given = self._resumed = 0

    def set_epoch(self, epoch: int) -> None:
        """The epoch that the next iteration is of. Raises ConfigError where it is no whole number."""
        check_whole("epoch", epoch)
        if epoch != self._epoch:
            self._epoch, self._given, self._resumed = epoch, 0, 0

    def __len__(self) -> int:
        share = share_of(self._rows.total, self._ranks)
        return share.stop - share.start

    def __iter__(self) -> Iterator[Row]:
        share = self._share()
        self._given, self._resumed = self._resumed, 0
        place = share.start + self._given
        while place < share.stop:
            for row in self._rows.rows(self._epoch, place, min(place + _CHUNK_ROWS, share.stop)):
                place += 1
                self._given += 1
                yield row
        self._given = 0

    def _share(self) -> Share:
        share = share_of(self._rows.total, self._ranks)
        worker = get_worker_info()
        if worker is None:
            return share
        mine = share_of(share.stop - share.start, Ranks(worker.id, worker.num_workers))
        return Share(share.start + mine.start, share.start + mine.stop)

    def state_dict(self) -> dict[str, Any]:
        """How far this copy is: plain values."""
        return {**self._identity(), "epoch": self._epoch, "given": self._given}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The next iteration goes on behind the row before which the state was taken. Raises ConfigError."""
        check_state(state, self._identity())
        self._epoch, self._given = state["epoch"], state["given"]
        self._resumed = self._given

    def _identity(self) -> dict[str, Any]:
        return {"content": self._rows.content, "order": self._rows.order, **self._ranks._asdict()}


_MEANINGS = {
    "content": "the rows of the data set",
    "order": "the seed, the shuffling, the mixture, or the files in which the rows are",
}


def check_whole(name: str, value: object, least: int = 0, most: float = inf) -> None:
    """Raises ConfigError where an argument is not a whole number within these bounds."""
    if not isinstance(value, SupportsIndex) or not least <= index(value) <= most:
        bounds = f"{least:,} or more" if most == inf else f"from {least:,} to {most:,}"
        raise ConfigError(f"{name}={value!r}; expected a whole number, {bounds}")


def check_state(state: Mapping[str, Any], identity: Mapping[str, Any]) -> None:
    """Raises ConfigError where a state is of another loader than the one with this identity."""
    for name, value in identity.items():
        if name not in state:
            raise ConfigError(f"the state has no {name!r}: it is no state of this loader")
        if state[name] != value:
            what = _MEANINGS.get(name, name.replace("_", " "))
            raise ConfigError(
                f"the state is of another loader: {what} differs ({name} is {value!r}, the state's "
                f"{state[name]!r}); load it into the loader as it was, over the data as it was"
            )
