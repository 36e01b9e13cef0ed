"""Deals sequences out over the forward passes of a model, with little padding and in bounded memory."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from dataflow_assets.errors import RowError

_FREE_PADDING = 128
_PADDING_SHARE = 0.1
_MEMORY_WORDS = ("out of memory", "can't allocate memory", "not enough memory", "alloc_failed")
Result = TypeVar("Result")


class OutOfMemory(RowError):
    """A row that does not fit into memory although it is alone in its forward pass."""


class NotFinite(RowError):
    """A row for which the model gave NaN or infinity."""

    @classmethod
    def of_a_model(cls) -> "NotFinite":
        """The error with what to do."""
        return cls(
            "not finite: the model gave NaN or infinity for this row, expected numbers; "
            "set `dtype: float32` or `bfloat16`"
        )


@dataclass
class PassCounts:
    """What the forward passes took. `padded_tokens` counts all places, `real_tokens` those with a token."""

    passes: int = 0
    real_tokens: int = 0
    padded_tokens: int = 0
    halvings: int = 0


class ForwardPasses:
    """Runs a model on sequences, many at a time.

    Sequences are sorted by length, the longest first, and go together as long as they make up at most
    `tokens_per_pass` tokens, padding included, and the padding is at most a tenth of them (or
    128 tokens). One that is longer goes alone. When memory ends, `free_memory` is called, the limit is
    halved for good, and what is left goes on. `counts` says what all passes took.
    """

    def __init__(self, tokens_per_pass: int, free_memory: Callable[[], None] = lambda: None) -> None:
        self.tokens_per_pass = tokens_per_pass
        self.counts = PassCounts()
        self._free_memory = free_memory

    def run(
        self, lengths: Sequence[int], do: Callable[[Sequence[int]], Sequence[Result]]
    ) -> list[Result | OutOfMemory]:
        """The result of each sequence, in the order given; `do` gets the places of those that go together.

        A sequence for which memory does not suffice has OutOfMemory instead.
        """
        results: dict[int, Result | OutOfMemory] = {}
        waiting = list(range(len(lengths)))
        while waiting:
            waiting = self._until_memory_ends(lengths, waiting, do, results)
        return [results[place] for place in range(len(lengths))]

    def _until_memory_ends(
        self,
        lengths: Sequence[int],
        places: Sequence[int],
        do: Callable[[Sequence[int]], Sequence[Result]],
        results: dict[int, Result | OutOfMemory],
    ) -> list[int]:
        """Does these places; gives those that are left when a pass needed too much memory."""
        for together in planned(lengths, places, self.tokens_per_pass):
            done = self._tried(together, do)
            if done is not None:
                results.update(zip(together, done, strict=True))
                self._count(lengths, together)
                continue
            self._free_memory()
            if len(together) == 1:
                results[together[0]] = _too_large(lengths[together[0]])
            else:
                self.tokens_per_pass = max(1, len(together) * lengths[together[0]] // 2)
                self.counts.halvings += 1
            return [place for place in places if place not in results]
        return []

    def _tried(
        self, together: Sequence[int], do: Callable[[Sequence[int]], Sequence[Result]]
    ) -> Sequence[Result] | None:
        """The results, or None where memory ended; the error, which holds on to the memory, is gone then."""
        try:
            return do(together)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
        return None

    def _count(self, lengths: Sequence[int], together: Sequence[int]) -> None:
        self.counts.passes += 1
        self.counts.real_tokens += sum(lengths[place] for place in together)
        self.counts.padded_tokens += len(together) * lengths[together[0]]


def planned(lengths: Sequence[int], places: Iterable[int], tokens_per_pass: int) -> Iterator[list[int]]:
    """The places that go together, the longest first; equal lengths keep their order."""
    together: list[int] = []
    real = 0
    for place in sorted(places, key=lambda place: -lengths[place]):
        longest = lengths[together[0]] if together else lengths[place]
        padded, tokens = longest * (len(together) + 1), real + lengths[place]
        if together and (
            padded > tokens_per_pass or padded - tokens > max(_FREE_PADDING, _PADDING_SHARE * tokens)
        ):
            yield together
            together, tokens = [], lengths[place]
        together.append(place)
        real = tokens
    if together:
        yield together


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory ended, on whatever device; torch has an own class for CUDA alone."""
    text = str(error).lower()
    return isinstance(error, MemoryError) or any(words in text for words in _MEMORY_WORDS)


def _too_large(tokens: int) -> OutOfMemory:
    return OutOfMemory(
        f"out of memory: the text of {tokens} tokens does not fit into the device's memory alone; "
        "lower `max_tokens`, take another `dtype`, or leave such rows out by `filter_length`"
    )
