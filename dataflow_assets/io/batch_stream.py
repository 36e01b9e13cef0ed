"""The lazy stream of one step's batches, and the loop that pulls it and commits batch by batch."""

import contextlib
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, Protocol

import pyarrow as pa

from dataflow_assets.batch import content_hash
from dataflow_assets.control import InMemory, StopFlag
from dataflow_assets.errors import Stopped
from dataflow_assets.io.atomic import make_folder
from dataflow_assets.io.commit_record import CommitRecord
from dataflow_assets.io.samples import Samples
from dataflow_assets.io.step_folder import NO_NOTES, Notes, Origin, Prepared, StepFolder
from dataflow_assets.operators.operator import Outcome

# Threads that commit batches which were held: a disk takes many files at once in the time of one.
_WRITERS = 8


class Committed(NamedTuple):
    """A batch that exists now: its record, where it is, and whether it was there before.

    `samples` is what is shown of its rows where they were at hand, `notes` what is told of its making.
    `again` is a batch that came before in the same work and got the columns of later ones: it is not counted.
    """

    record: CommitRecord
    folder: StepFolder
    reused: bool
    samples: Samples | None = None
    notes: Notes = NO_NOTES
    again: bool = False


class Committable(Protocol):
    """What an asset hands to the IO manager: batches that come into being as they are pulled."""

    def commit_all(self, stop: StopFlag) -> Iterator[Committed]:
        """Commits what is missing, one batch after another. Raises Stopped once `stop` is up."""
        ...


class Work(NamedTuple):
    """What a batch became, where it comes from, what is told of its making and shown of its rows."""

    outcome: Outcome
    origin: Origin
    notes: Notes = NO_NOTES
    samples: Samples | None = None


class ToTranscode(NamedTuple):
    """A batch that is committed, but not in the format or place that is wanted."""

    record: CommitRecord


class Held(NamedTuple):
    """A batch that is made and not yet written: `write` makes its files durable. `size` is in bytes."""

    content_hash: str
    size: int
    write: Callable[[], Prepared]


Ready = CommitRecord | Prepared | ToTranscode | Held
"""What became of a batch: it was there, is durable but not published, must be moved, or is in memory."""


class HandedOver(NamedTuple):
    """A parent's batch that a later step of the same run takes from memory.

    `table` is None where the batch was committed before; it is then read from its file.
    """

    content_hash: str
    table: pa.Table | None


Handed = Mapping[str, HandedOver]
NOTHING_HANDED: Handed = {}


class Known(NamedTuple):
    """What a run knows of a batch before it is made, by the names of streams.

    `made_ahead` have it from earlier in this run, `given_up` failed on another batch ahead of their turn.
    """

    made_ahead: frozenset[str] = frozenset()
    given_up: frozenset[str] = frozenset()


class Ahead:
    """The batches that this process committed for later steps ahead of their turn.

    What is told of them waits for that turn: their samples, and notes.
    """

    def __init__(self) -> None:
        self._told: dict[tuple[str, str], tuple[Samples | None, Notes]] = {}
        self._given_up: set[str] = set()

    def give_up(self, name: str) -> None:
        """Notes that a step failed ahead of its turn: its other batches, too, wait for their turn."""
        self._given_up.add(name)

    def add(self, committed: Committed) -> None:
        """Notes a batch that was made for a later step."""
        told = committed.samples, committed.notes
        self._told[str(committed.folder.path), committed.record.batch] = told

    def known(self, streams: "Sequence[BatchStream]", key: str) -> Known:
        """What is known of the batch."""
        held = {stream.name for stream in streams if (str(stream.folder.path), key) in self._told}
        return Known(frozenset(held), frozenset(self._given_up))

    def seen(self, committed: Committed) -> Committed:
        """The batch as its own step would have committed it, where it was made ahead."""
        place = (str(committed.folder.path), committed.record.batch)
        if place not in self._told:
            return committed
        samples, notes = self._told.pop(place)
        return committed._replace(reused=False, samples=samples, notes=notes)

    def __reduce__(self) -> tuple[type["Ahead"], tuple[()]]:
        return Ahead, ()  # another process committed nothing


class Look(Protocol):
    """Is shown the rows of a batch when its files are durable: folder, key, rows, their content hash."""

    def __call__(self, folder: StepFolder, key: str, rows: pa.Table, content_hash: str, /) -> Notes:
        """Looks at the rows, in the thread that made them, and gives what is told of them; raises nothing."""
        ...


class Maker(Protocol):
    """Makes one batch of the first stream, and of those that follow from its rows; in any thread."""

    def __call__(self, streams: "Sequence[BatchStream]", key: str, known: Known) -> "Made":
        """The batch of each stream, durable but not published."""
        ...


def _nothing(*_: object) -> None:
    """What a stream does that has nothing to begin or close."""


@dataclass(frozen=True)
class BatchStream:
    """One step's batches, none of them computed yet.

    `fingerprint(key, handed)` says what the batch would be made of, `compute(key, fingerprint,
    handed)` makes it; both may run in any thread, for `workers` batches at a time. With `reuse`
    off, committed batches are made again.

    `begin` is told of the stop flag before the first batch, `close` is called after the last.

    `parents` are the names of the steps whose rows it reads. `followers` are streams of later
    steps, in order, whose batches are made right after this one's from the rows in memory, so that
    they are not read from the file again. They are committed after it and noted in `ahead`; their
    own step then finds them there. A follower that fails once is left to its own step, which raises
    the error: no further batch of it is tried ahead. `maker` says where the work is done, `look` is
    shown the rows of each batch that was made.
    """

    name: str
    folder: StepFolder
    keys: Sequence[str]
    fingerprint: Callable[[str, Handed], str]
    compute: Callable[[str, str, Handed], Work]
    workers: int = 1
    reuse: bool = True
    close: Callable[[], None] = _nothing
    begin: Callable[[StopFlag], None] = _nothing
    parents: frozenset[str] = frozenset()
    followers: "Sequence[BatchStream]" = ()
    ahead: Ahead = field(default_factory=Ahead)
    maker: Maker | None = None
    look: Look | None = None
    hold_bytes: int | None = None

    def commit_all(self, stop: StopFlag) -> Iterator[Committed]:
        """Makes what is missing of these batches and commits each, in the order of the keys."""
        streams = (self, *self.followers)
        tasks = (partial(self._made, streams, key) for key in self.keys)
        with contextlib.ExitStack() as stack:
            for stream in streams:
                stream.begin(stop)
                stack.callback(stream.close)
            if self.hold_bytes is None:
                committed = commit_in_order(tasks, self.workers, stop, self.ahead)
            else:
                committed = commit_together(tasks, self.workers, stop, self.hold_bytes, self.ahead)
            with contextlib.closing(committed):
                yield from map(self.ahead.seen, committed)

    def _made(self, streams: "Sequence[BatchStream]", key: str) -> "Made":
        made = (self.maker or make)(streams, key, self.ahead.known(streams, key))
        if made.given_up is not None:
            self.ahead.give_up(made.given_up)
        return made

    def ready(self, key: str, handed: Handed, known: Known) -> "tuple[Ready, pa.Table | None]":
        """The batch, with its rows where it was made just now."""
        fingerprint, there = self.there(key, handed, known)
        if there is not None:
            return there, None
        work = self.compute(key, fingerprint, handed)
        if self.hold_bytes is not None:
            size = sum(table.nbytes for table in work.outcome if table is not None)
            held = Held(content_hash(work.outcome.kept), size, partial(self._written, key, work))
            return held, work.outcome.kept
        return self._written(key, work), work.outcome.kept

    def _written(self, key: str, work: Work) -> Prepared:
        """The batch as files that are durable, and what is told of it."""
        prepared = self.folder.prepare(key, work.outcome, work.origin)
        prepared = prepared._replace(notes=work.notes, samples=work.samples)
        if self.look is None:
            return prepared
        seen = self.look(self.folder, key, work.outcome.kept, prepared.record.content_hash)
        return prepared._replace(notes={**work.notes, **seen})

    def there(self, key: str, handed: Handed, known: Known) -> tuple[str, Ready | None]:
        """What the batch would be made of, and the batch where it is committed and made of that."""
        fingerprint = self.fingerprint(key, handed)
        record = self.folder.record(key) if self.reuse or self.name in known.made_ahead else None
        if record is None or record.fingerprint != fingerprint:
            return fingerprint, None
        return fingerprint, as_wanted(self.folder, record)


@dataclass
class Made:
    """What a task made of one batch: for its own step, and for the steps that follow at once.

    `given_up` is the stream that failed among those that follow.
    """

    folder: StepFolder
    ready: Ready
    followers: list[tuple[StepFolder, Ready]] = field(default_factory=list)
    given_up: str | None = None

    def all(self) -> list[tuple[StepFolder, Ready]]:
        """The batch of each step, in their order."""
        return [(self.folder, self.ready), *self.followers]


def make(streams: Sequence[BatchStream], key: str, known: Known) -> Made:
    """The batch of the first stream, and of those that follow from its rows in memory, in this thread."""
    first, *followers = streams
    ready, table = first.ready(key, NOTHING_HANDED, known)
    made = Made(first.folder, ready)
    handed = {first.name: HandedOver(_content_hash(ready), table)}
    for place, follower in enumerate(followers):
        if follower.name in known.given_up:
            break
        try:
            later, table = follower.ready(key, handed, known)
        except Stopped:
            raise
        except (Exception, SystemExit):  # noqa: BLE001  its own step raises it
            made.given_up = follower.name
            break
        made.followers.append((follower.folder, later))
        handed[follower.name] = HandedOver(_content_hash(later), table)
        wanted = set().union(*(stream.parents for stream in followers[place + 1 :]))
        handed = {name: over for name, over in handed.items() if name in wanted}
    return made


def all_there(streams: Sequence[BatchStream], key: str, known: Known) -> Made | None:
    """The batch of each stream where all are committed, None where one must be made. Raises MissingBatch."""
    handed: dict[str, HandedOver] = {}
    ready: list[tuple[StepFolder, Ready]] = []
    for stream in streams:
        if ready and stream.name in known.given_up:
            break
        _, there = stream.there(key, handed, known)
        if there is None:
            return None
        ready.append((stream.folder, there))
        handed[stream.name] = HandedOver(_content_hash(there), None)
    return Made(*ready[0], followers=ready[1:])


def alone(folder: StepFolder, tasks: Iterable[Callable[[], Ready]]) -> Iterator[Callable[[], Made]]:
    """The tasks of a step that nobody follows."""
    return (partial(_made_alone, folder, task) for task in tasks)


def _made_alone(folder: StepFolder, task: Callable[[], Ready]) -> Made:
    return Made(folder, task())


def _content_hash(ready: Ready) -> str:
    return ready.content_hash if isinstance(ready, CommitRecord | Held) else ready.record.content_hash


def as_wanted(folder: StepFolder, record: CommitRecord) -> Ready:
    """The record where its batch is stored as `folder` stores batches, else the order to move it."""
    in_place = record.files["kept"].name == folder.name_of(record.batch)
    return record if in_place else ToTranscode(record)


def commit_in_order(
    tasks: Iterator[Callable[[], Made]], workers: int, stop: StopFlag, ahead: Ahead | None = None
) -> Generator[Committed, None, None]:
    """Runs the tasks in `workers` threads and commits each batch here, in the order of the tasks.

    At most one task more than there are threads is taken from `tasks` ahead of its commit. When
    `stop` goes up, the batches in hand are finished and committed, then Stopped is raised. An error
    of one batch is raised when its turn comes: those before it are committed. Batches of followers
    are noted in `ahead`.
    """
    with contextlib.closing(_made_in_order(tasks, workers, stop)) as batches:
        for made in batches:
            yield _commit_made(made, ahead)


def commit_together(
    tasks: Iterator[Callable[[], Made]],
    workers: int,
    stop: StopFlag,
    hold_bytes: int,
    ahead: Ahead | None = None,
) -> Generator[Committed, None, None]:
    """The same, but batches stay in memory until they are `hold_bytes` large, and are committed together.

    That is done too when the tasks are over, when one of them raises, when `stop` goes up, and when
    somebody asked for it (`stop.write_now`). Whatever is in memory when the process is killed is lost:
    `stop.held` says how much that is.
    """
    hold = Hold(stop, ahead)
    with contextlib.closing(_made_in_order(tasks, workers, stop)) as batches:
        try:
            for made in batches:
                hold.add(made)
                if hold.size >= hold_bytes or not hold.size or stop.write_now:
                    yield from hold.committed()
        except GeneratorExit:
            raise
        except BaseException:
            yield from hold.committed()
            raise
        yield from hold.committed()


def _made_in_order(
    tasks: Iterator[Callable[[], Made]], workers: int, stop: StopFlag
) -> Generator[Made, None, None]:
    """What the tasks made, in their order; Stopped once `stop` is up and those in hand are given."""
    pending: deque[Future[Made]] = deque()
    pool = ThreadPoolExecutor(workers, thread_name_prefix="batch")
    try:
        while True:
            while len(pending) <= workers and not stop and (task := next(tasks, None)) is not None:
                pending.append(pool.submit(task))
            if stop:
                for future in pending:
                    if not future.cancel():
                        yield future.result()
                stop.raise_if_up()
            if not pending:
                return
            yield pending.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


class Hold:
    """Batches in memory that are committed together, by several threads: they wait for the disk at once."""

    def __init__(self, stop: StopFlag, ahead: Ahead | None) -> None:
        self._stop, self._ahead = stop, ahead
        self._batches: list[Made] = []
        self.size = 0

    def add(self, made: Made) -> None:
        """Takes a batch, and those of the steps that follow."""
        self._batches.append(made)
        held = [ready.size for _, ready in made.all() if isinstance(ready, Held)]
        self.size += sum(held)
        there = self._stop.held
        self._stop.held = InMemory(there.batches + len(held), there.bytes + sum(held))

    def committed(self) -> Iterator[Committed]:
        """Commits all that is held, and gives those of the first step in order; then nothing is held.

        An error of one is raised when its turn comes; the others are committed all the same.
        """
        batches, self._batches, self.size = self._batches, [], 0
        folders = (folder for made in batches for folder, ready in made.all() if isinstance(ready, Held))
        for folder in dict.fromkeys(folders):
            make_folder(folder.path)  # several threads would do it, and write its one loader file, at once
            folder.tell_loaders()
        if len(batches) == 1:
            yield _commit_made(batches[0], self._ahead)
            batches = []
        with ThreadPoolExecutor(_WRITERS, thread_name_prefix="write") as pool:
            for future in [pool.submit(_commit_made, made, self._ahead) for made in batches]:
                yield future.result()
        self._stop.held, self._stop.write_now = InMemory(), False


def _commit_made(made: Made, ahead: Ahead | None) -> Committed:
    committed = _commit(made.folder, made.ready)
    for folder, ready in made.followers:
        later = _commit(folder, ready)
        if ahead is not None and not later.reused:
            ahead.add(later)
    return committed


def _commit(folder: StepFolder, ready: Ready) -> Committed:
    if isinstance(ready, CommitRecord):
        return Committed(ready, folder, reused=True)
    if isinstance(ready, ToTranscode):
        return Committed(folder.transcode(ready.record.batch, ready.record), folder, reused=True)
    if isinstance(ready, Held):
        ready = ready.write()
    return Committed(folder.commit(ready), folder, False, ready.samples, ready.notes)
