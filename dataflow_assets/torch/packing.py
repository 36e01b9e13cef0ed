"""Packs examples of tokens into sequences of one length, and says which row each token is of."""

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch

from dataflow_assets.errors import ConfigError, UnwritableValue

_IGNORED_LABEL = -100
_OWN_COLUMNS = ("position_ids", "row_ids", "lengths", "begins")
Example = Mapping[str, Any]


class _Piece(NamedTuple):
    """Tokens of one row: from `begin`, so many."""

    row: int
    begin: int
    length: int


@dataclass(frozen=True)
class Packing:
    """How rows become sequences of `length` tokens.

    `too_long` says what becomes of a row with more tokens: it is refused, or cut off at the end, or (`split`)
    all rows stand one behind another and each sequence goes on where the one before ended. Else no row is
    cut, and the rows of one chunk of the loader are laid together so that little is empty.

    A sequence has the columns of the examples, which are lists with one number for each token, and
    `position_ids` (from 0 in each piece), `row_ids`, `lengths` and `begins`: for each piece its row, its
    tokens, and at which token of its row it begins.
    """

    length: int
    pad_token_id: int = 0
    too_long: Literal["refuse", "truncate", "split"] = "refuse"

    def __post_init__(self) -> None:
        if self.length < 1:
            raise ConfigError(f"packing to sequences of {self.length} tokens; expected 1 or more")

    def pack(self, examples: Sequence[Example], row_ids: Sequence[str]) -> list[dict[str, Any]]:
        """The sequences of these examples, in the order of the first row in each.

        Raises ConfigError for an example that is no tokens, UnwritableValue for one that is too long.
        """
        names, lengths = _measured(examples, row_ids)
        if self.too_long == "split":
            bins = self._one_behind_another(lengths)
        else:
            bins = self._laid_together(self._fitting(lengths, row_ids))
        return [self._sequence(pieces, names, examples, row_ids) for pieces in bins]

    def _fitting(self, lengths: Sequence[int], row_ids: Sequence[str]) -> list[_Piece]:
        for number, length in enumerate(lengths):
            if length > self.length and self.too_long == "refuse":
                raise UnwritableValue(
                    f"row {row_ids[number]!r} has {length} tokens, a sequence {self.length}; pack with a "
                    "larger length, or with too_long='truncate' or 'split', or filter the rows before"
                )
        return [_Piece(number, 0, min(length, self.length)) for number, length in enumerate(lengths)]

    def _laid_together(self, pieces: Sequence[_Piece]) -> list[list[_Piece]]:
        """Best fit, the longest first: each into the fullest sequence that has room."""
        bins: list[list[_Piece]] = []
        rooms: list[tuple[int, int]] = []
        for piece in sorted(pieces, key=lambda piece: -piece.length):
            place = bisect_left(rooms, (piece.length, -1))
            room, number = rooms.pop(place) if place < len(rooms) else (self.length, len(bins))
            if number == len(bins):
                bins.append([])
            bins[number].append(piece)
            insort(rooms, (room - piece.length, number))
        return sorted(sorted(some) for some in bins)

    def _one_behind_another(self, lengths: Sequence[int]) -> list[list[_Piece]]:
        bins: list[list[_Piece]] = []
        room = 0
        for row, length in enumerate(lengths):
            begin = 0
            while begin < length or not length:
                if not room:
                    bins.append([])
                    room = self.length
                taken = min(room, length - begin)
                bins[-1].append(_Piece(row, begin, taken))
                begin, room = begin + taken, room - taken
                if not length:
                    break
        return bins

    def _sequence(
        self,
        pieces: Sequence[_Piece],
        names: Sequence[str],
        examples: Sequence[Example],
        row_ids: Sequence[str],
    ) -> dict[str, Any]:
        columns: dict[str, Any] = {name: [] for name in names}
        for row, begin, length in pieces:
            for name in names:
                columns[name] += list(examples[row][name][begin : begin + length])
        return {
            **columns,
            "position_ids": [place for piece in pieces for place in range(piece.length)],
            "row_ids": [row_ids[piece.row] for piece in pieces],
            "lengths": [piece.length for piece in pieces],
            "begins": [piece.begin for piece in pieces],
        }

    def collate(self, sequences: Sequence[Example]) -> dict[str, Any]:
        """One batch: tensors of sequences x length, filled up at the end; the others are lists.

        Filled up with `pad_token_id` in `input_ids`, -100 in `labels`, 0 elsewhere.
        """
        fills = {"input_ids": self.pad_token_id, "labels": _IGNORED_LABEL}
        batch: dict[str, Any] = {}
        for name in sequences[0]:
            values = [sequence[name] for sequence in sequences]
            if name in ("row_ids", "lengths", "begins"):
                batch[name] = values
                continue
            fill = fills.get(name, 0)
            batch[name] = torch.tensor([some + [fill] * (self.length - len(some)) for some in values])
        return batch


def _measured(examples: Sequence[Example], row_ids: Sequence[str]) -> tuple[list[str], list[int]]:
    """The columns of the examples, and how many tokens each has."""
    names, lengths = list(examples[0]) if examples else [], []
    if examples and "input_ids" not in names:
        raise ConfigError(
            f"packing needs examples with 'input_ids', found {', '.join(names) or 'nothing'}; give "
            "`tokenize` a function that makes them"
        )
    if taken := [name for name in _OWN_COLUMNS if name in names]:
        raise ConfigError(f"the examples have {taken[0]!r}, which packing makes itself; leave it out")
    for example, row_id in zip(examples, row_ids, strict=True):
        found = {name: _length(tokens) for name, tokens in example.items()}
        if list(example) != names or None in found.values() or len(set(found.values())) > 1:
            raise ConfigError(
                f"the example of row {row_id!r} has {found}; expected the columns {', '.join(names)}, each a "
                "list with one number for each token"
            )
        lengths.append(found["input_ids"])
    return names, lengths


def _length(tokens: object) -> int | None:
    """How many tokens these are; None where they are none."""
    return len(tokens) if isinstance(tokens, Sized) and not isinstance(tokens, str) else None
