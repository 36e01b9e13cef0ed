"""What of an epoch a rank has, cut into batches and chunks, and the order in which the chunks come."""

import os
from dataclasses import dataclass
from typing import NamedTuple

from dataflow_assets.errors import ConfigError


class Ranks(NamedTuple):
    """Which of how many training processes this is."""

    rank: int
    world_size: int


def ranks_of(rank: int | None, world_size: int | None) -> Ranks:
    """As given, else as torch.distributed has it, else by RANK and WORLD_SIZE, else one process.

    Raises ConfigError where only one of the two is known, or the rank is not below the world size.
    """
    found = (rank, world_size)
    if found == (None, None):
        found = _distributed() or (_number("RANK"), _number("WORLD_SIZE"))
    rank, world_size = found
    if rank is None and world_size is None:
        return Ranks(0, 1)
    if rank is None or world_size is None or not 0 <= rank < world_size:
        raise ConfigError(
            f"rank {rank} of world size {world_size}; expected both, as arguments or as RANK and WORLD_SIZE "
            "in the environment, and a rank from 0 to the world size less 1"
        )
    return Ranks(rank, world_size)


def _distributed() -> tuple[int, int] | None:
    from torch import distributed

    if not (distributed.is_available() and distributed.is_initialized()):
        return None
    return distributed.get_rank(), distributed.get_world_size()


def _number(variable: str) -> int | None:
    text = os.environ.get(variable, "")
    if text and not text.isdecimal():
        raise ConfigError(f"{variable} is {text!r} in the environment; expected a whole number")
    return int(text) if text else None


class Share(NamedTuple):
    """A rank's rows: a stretch of the epoch, from `start` to before `stop`."""

    start: int
    stop: int


def share_of(total: int, ranks: Ranks, batch_rows: int = 1, drop_last: bool = False) -> Share:
    """A rank's stretch of `total` rows; the stretches of all ranks have each row once.

    Their lengths differ by one row at most. With `drop_last` all have as many full batches, and the rows
    beyond those are left out.
    """
    start, stop = (total * each // ranks.world_size for each in (ranks.rank, ranks.rank + 1))
    if drop_last:
        stop = start + total // ranks.world_size // batch_rows * batch_rows
    return Share(start, stop)


@dataclass(frozen=True)
class Schedule:
    """A share cut into batches, and these into chunks of `chunk_batches`, which `lanes` take in turns.

    A chunk is what one worker does at once. A lane is a stretch of the share; the chunks come one of each
    lane after another, so that a worker stays in its own stretch. The last chunk of the share, which
    may be short, comes last.
    """

    share: Share
    batch_rows: int
    chunk_batches: int
    lanes: int

    @property
    def batches(self) -> int:
        """How many batches there are."""
        return -(-(self.share.stop - self.share.start) // self.batch_rows)

    @property
    def chunks(self) -> int:
        """How many chunks there are."""
        return -(-self.batches // self.chunk_batches)

    def chunk(self, turn: int) -> Share:
        """The stretch of the epoch that comes at this turn, counted from 0."""
        each, more = divmod(self.chunks, self.lanes)
        shorter = self.lanes - more
        if turn < each * self.lanes:
            place, lane = divmod(turn, self.lanes)
        else:
            place, lane = each, shorter + turn - each * self.lanes
        number = lane * each + max(0, lane - shorter) + place
        rows = self.batch_rows * self.chunk_batches
        start = self.share.start + number * rows
        return Share(start, min(start + rows, self.share.stop))
