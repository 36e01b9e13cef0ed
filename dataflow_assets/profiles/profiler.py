"""Profiles of one step's batches: made while they are in memory, read or made when asked for."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import NamedTuple, cast

import pyarrow as pa

from dataflow_assets.fingerprints import hash_of
from dataflow_assets.io.commit_record import CommitRecord
from dataflow_assets.io.names import key_to_name
from dataflow_assets.io.step_folder import NO_NOTES, PROFILES, Notes, StepFolder
from dataflow_assets.operators.registry import import_object
from dataflow_assets.operators.splitting.tokenizer import TokenizerFile, encoder
from dataflow_assets.profiles.making import HowToProfile, OwnMeasure, Pair, profile_of_rows
from dataflow_assets.profiles.markdown import numbers_of
from dataflow_assets.profiles.profile import Profile
from dataflow_assets.profiles.remembered import Remembered
from dataflow_assets.profiles.sampling import Rates, fingerprint_of_hashing
from dataflow_assets.profiles.stored import read_profile, write_profile
from dataflow_assets.profiles.texts import Tokenize

_log = logging.getLogger(__name__)
_MEASURES_VERSION = 4
# By step, batch and settings. A batch goes from step to step: the next one asks for what was just made.
_made_lately: Remembered[tuple[str, str, str], Profile] = Remembered(4)

_told: dict[tuple[str, str], object] = {}


class StepBefore(NamedTuple):
    """The step before, whose profiles of the same batches are made in the same way, and their settings."""

    folder: StepFolder
    settings: str


@dataclass(frozen=True)
class Profiler:
    """Makes the profiles of a step's batches, at these rates; `own` are paths to functions by name.

    `pairs` are what the rules of the step look at beside the usual. What is as it was in the step `before` is
    taken from its profile.
    """

    rates: Rates
    tokenizer: TokenizerFile | None = None
    own: Mapping[str, str] = field(default_factory=dict)
    pairs: tuple[Pair, ...] = ()
    before: StepBefore | None = None

    @cached_property
    def settings(self) -> str:
        """What profiles must have in common to be put together; the rates may differ."""
        pairs = [[list(pair.inputs), pair.label] for pair in self.pairs]
        return hash_of([self.measures, fingerprint_of_hashing(), pairs])

    @cached_property
    def measures(self) -> str:
        """What decides the value of a measure: profiles can be compared where it is the same."""
        return hash_of([_MEASURES_VERSION, self.tokenizer and self.tokenizer.digest, dict(self.own)])

    def look(self, folder: StepFolder, key: str, rows: pa.Table, content_hash: str) -> Notes:
        """Makes and stores the profile of a batch; gives some numbers of it to be told with the batch.

        What goes wrong is logged: the batch itself is right.
        """
        try:
            return numbers_of(self.made(folder, key, rows, content_hash))
        except (Exception, SystemExit):  # noqa: BLE001  a profile never stops the work that it looks at
            _log.warning("no profile of batch %r of %s could be made", key, folder.path.name, exc_info=True)
            return NO_NOTES

    def made(self, folder: StepFolder, key: str, rows: pa.Table, content_hash: str) -> Profile:
        """The profile of these rows, stored too."""
        before = self.before and _before(self.before, key)
        if before and self._is_of_the_same(before, content_hash):
            profile = before
        else:
            how = replace(self.how, tell=partial(_tell_once, str(folder.path)))
            profile = profile_of_rows(rows, key, how, before, content_hash)
        write_profile(_file(folder, key), profile, self.settings)
        _made_lately.keep((str(folder.path), key, self.settings), profile)
        return profile

    def _is_of_the_same(self, profile: Profile, content_hash: str) -> bool:
        """Whether the profile of a batch of the step before is the one that these rows would get."""
        assert self.before is not None
        wanted = profile.chosen and profile.chosen.wanted
        made_alike = (self.before.settings, wanted) == (self.settings, self.rates)
        return made_alike and profile.content_hash == content_hash

    def of_batch(self, folder: StepFolder, record: CommitRecord) -> Profile:
        """The profile of a committed batch; made from its rows where none is stored. Raises CorruptFile."""
        stored = self.stored(folder, record)
        if stored is not None:
            return stored
        rows = folder.read(record.batch, record=record)
        assert rows is not None
        return self.made(folder, record.batch, rows, record.content_hash)

    def stored(self, folder: StepFolder, record: CommitRecord) -> Profile | None:
        """The profile of a committed batch, None where none is stored that is of these rows."""
        file = _file(folder, record.batch)
        return read_profile(file, record.batch, record.content_hash, self.settings)

    @cached_property
    def how(self) -> HowToProfile:
        """What is measured, with its functions at hand. Raises ConfigError where one is not there."""
        own = {name: cast(OwnMeasure, import_object(path)) for name, path in self.own.items()}
        tokenize = None if self.tokenizer is None else _tokenize(self.tokenizer)
        return HowToProfile(self.rates, tokenize, own, self.pairs)

    def __reduce__(self) -> tuple[type["Profiler"], tuple[object, ...]]:
        own = dict(self.own)
        return Profiler, (self.rates, self.tokenizer, own, self.pairs, self.before)


def _tell_once(folder: str, measure: str, row_id: object, error: Exception) -> None:
    """Logs the first error of an own measure in a step."""
    mark = object()  # batches are measured in threads: one of them finds its own mark
    if _told.setdefault((folder, measure), mark) is mark:
        name, why = Path(folder).name, f"{type(error).__name__}: {error}"
        _log.warning(
            "the own measure %r raised on row %r of %s, which has no value: %s", measure, row_id, name, why
        )


def _before(step: StepBefore, key: str) -> Profile | None:
    """The profile of a batch in the step before, whichever rows it is of: columns are told by their hash."""
    lately = _made_lately.get((str(step.folder.path), key, step.settings))
    return lately or read_profile(_file(step.folder, key), key, None, step.settings)


def _file(folder: StepFolder, key: str) -> Path:
    return folder.path / PROFILES / f"{key_to_name(key)}.profile"


@cache
def _tokenize(tokenizer: TokenizerFile) -> Tokenize:
    """Counts tokens; the same function for the same file, so that what it counted can be found again."""

    def token_counts(texts: Sequence[str]) -> list[int]:
        encode = encoder(tokenizer)
        return [len(encode(text).ids) for text in texts]

    return token_counts
