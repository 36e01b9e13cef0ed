"""A data set of the Hub, at one commit: its data files by HTTP, or whatever `datasets` streams of it."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from dataflow_assets.errors import SourceError
from dataflow_assets.optional_packages import require
from dataflow_assets.sources.chunk import Chunk
from dataflow_assets.sources.discovery import SourceFile
from dataflow_assets.sources.hub.builder import (
    chosen_files,
    data_file_chunks,
    dataset_builder,
    features_of,
    file_spec,
    plain_format,
    streamed,
    streamed_chunks,
)
from dataflow_assets.sources.hub.spec import HubSource
from dataflow_assets.sources.naming import unique_slugs
from dataflow_assets.sources.piece import Found, Known, Piece
from dataflow_assets.sources.remote.attempts import repeated
from dataflow_assets.sources.remote.file_system import FileSystemStore
from dataflow_assets.sources.remote.pieces import pieces_of
from dataflow_assets.sources.remote.store import RemoteFile
from dataflow_assets.sources.states import State, VersionState

if TYPE_CHECKING:
    from datasets import IterableDataset


def online_pieces(spec: HubSource, known: Known) -> Found:
    """The data files of the data set at its commit. Raises SourceError, ConfigError."""
    require({"datasets": "hub"}, "source `hf`")
    name = spec.dataset.name
    commit = _commit(spec, known)
    pins = {spec.pin: commit}
    builder = dataset_builder(spec, name, commit)
    split, urls = chosen_files(builder, spec)
    if not plain_format(builder, urls):
        dataset = streamed(builder, split, spec)
        return Found(_streamed_pieces(dataset, split, commit, spec), [], pins)
    store = HubStore("hf://datasets", {})
    files = {f"{name}/{url.partition('@')[2].partition('/')[2]}": url for url in urls}
    told = repeated(partial(store.told, name, commit))
    found = {shown: (_hub_file(url, shown, commit, told), store) for shown, url in files.items()}
    read = partial(_read, features=features_of(builder), spec=spec)
    return Found(pieces_of(found, file_spec(spec), read), [], pins)


class HubStore(FileSystemStore):
    """The files of the Hub at one commit, where nothing changes."""

    def told(self, name: str, commit: str) -> Mapping[str, Mapping[str, object]]:
        """What the Hub tells of each file of a data set, by its path there."""
        prefix = f"datasets/{name}@{commit}"
        with self.told_in_our_words(f"hf:{name}"):
            found = self.system.find(prefix, detail=True)
        return {path.partition("@")[2].partition("/")[2]: info for path, info in found.items()}

    def looked_at(self, file: RemoteFile) -> RemoteFile:
        """The file, of a commit that never changes."""
        return file


def _commit(spec: HubSource, known: Known) -> str:
    """The commit that is read: the given one, that of a branch or tag, or the one of the first time."""
    name, revision = spec.dataset.name, spec.revision
    if spec.commit is not None:
        return spec.commit
    pinned = known.pins.get(spec.pin)
    if revision is None and pinned is not None:
        return pinned
    from huggingface_hub import HfApi

    try:
        commit = HfApi().dataset_info(name, revision=revision).sha
    except Exception as error:  # the Hub's client raises those of its HTTP library
        told = " ".join(str(error).split()) or type(error).__name__
        raise SourceError(
            f"source hf:{spec.hf}: {told[:300].rstrip('.')}; expected a data set of the Hub, a folder of "
            "data files or one that `save_to_disk` wrote"
        ) from error
    if commit is None:
        raise SourceError(f"source hf:{spec.hf}: the Hub names no commit of it; set `source.revision`")
    return commit


def _hub_file(url: str, shown: str, commit: str, told: Mapping[str, Mapping[str, object]]) -> RemoteFile:
    """The file; its content decides, so that one that another commit left alone is not read again."""
    info = told.get(url.partition("@")[2].partition("/")[2], {})
    content = info.get("blob_id") or info.get("etag")
    size = info.get("size")
    facts = {"blob": str(content)} if content else {"commit": commit}
    return RemoteFile(url, shown, facts, size if isinstance(size, int) else None)


def _read(file: SourceFile, chunk_bytes: int, features: dict, spec: HubSource) -> Iterator[Chunk]:
    return data_file_chunks(file, chunk_bytes, features, spec)


class OnlineShard(Piece):
    """A shard of what `datasets` streams of the Hub at one commit."""

    def __init__(
        self, dataset: "IterableDataset", shard: int, name: str, slug: str, commit: str, spec: HubSource
    ) -> None:
        self.name, self.slug = name, slug
        self._dataset, self._shard, self._commit, self._spec = dataset, shard, commit, spec

    def states(self) -> dict[str, State]:
        """The commit, and which shard of how many it is."""
        shards = self._dataset.num_shards
        facts = {
            "commit": self._commit,
            "shard": self._shard,
            "shards": shards,
            "config": self._spec.dataset.config,
        }
        return {self.name: VersionState.of(facts)}

    def chunks(self, chunk_bytes: int) -> Iterator[Chunk]:
        """The rows in order, 1,000 at once."""
        return streamed_chunks(self._dataset, self._shard, self.name, self._spec)


def _streamed_pieces(
    dataset: "IterableDataset", split: str, commit: str, spec: HubSource
) -> list[OnlineShard]:
    name = spec.dataset.name
    names = [f"{name}/{split} {shard}" for shard in range(dataset.num_shards)]
    slugs = unique_slugs((f"{split}-{shard:05d}", each) for shard, each in enumerate(names))
    return [
        OnlineShard(dataset, shard, each, slug, commit, spec)
        for shard, (each, slug) in enumerate(zip(names, slugs, strict=True))
    ]
