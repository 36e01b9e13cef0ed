"""What an event says of the parents it was made of, so that Dagster shows as stale what is out of date."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import dagster as dg

INPUT_DATA_VERSION_TAG = "dagster/input_data_version"
INPUT_EVENT_TAG = "dagster/input_event_pointer"
# Dagster's word for the version of an asset that records none. Source and states record none:
# a new version would make every batch stale, though only some depend on what changed.
_NO_VERSION = "INITIAL"
_CHANGED = "changed"
_NO_EVENT = "NULL"
_BEFORE_ALL_EVENTS = "-1"


@dataclass(frozen=True)
class Parents:
    """The assets that an asset is made of, by their names in commit records.

    Dagster compares those in `batches` batch by batch, those in `whole`, which have no partitions, by
    their version.
    """

    batches: Mapping[str, dg.AssetKey] = field(default_factory=dict)
    whole: Mapping[str, dg.AssetKey] = field(default_factory=dict)

    def are_named_in(self, tags: Mapping[str, str]) -> bool:
        """Whether the tags of an event name all of them."""
        keys = [*self.batches.values(), *self.whole.values()]
        return all(f"{INPUT_DATA_VERSION_TAG}/{key.to_user_string()}" in tags for key in keys)


class Lineage:
    """The parents of an asset with their newest events; made after those were written."""

    def __init__(self, instance: dg.DagsterInstance, parents: Parents) -> None:
        self._parents = parents
        self._newest = {
            name: instance.event_log_storage.get_latest_storage_id_by_partition(
                key, dg.DagsterEventType.ASSET_MATERIALIZATION
            )
            for name, key in parents.batches.items()
        }

    def tags_of_batch(
        self, batch: str, inputs: Mapping[str, str], changed: Collection[str] = ()
    ) -> dict[str, str]:
        """The tags of a batch that was made of `inputs`, content hashes by parent.

        `changed` names parents that have other content now: Dagster shows the batch as stale.
        """
        events = {
            name: _BEFORE_ALL_EVENTS if name in changed else str(newest.get(batch, _NO_EVENT))
            for name, newest in self._newest.items()
        }
        return self._tags({name: inputs.get(name, _NO_VERSION) for name in events}, events, changed)

    def tags_of_whole(self) -> dict[str, str]:
        """The tags of an asset that was made of all batches as they are now."""
        events = {name: str(max(newest.values(), default=_NO_EVENT)) for name, newest in self._newest.items()}
        return self._tags(dict.fromkeys(events, _NO_VERSION), events, ())

    def _tags(
        self, versions: Mapping[str, str], events: Mapping[str, str], changed: Collection[str]
    ) -> dict[str, str]:
        tags = {}
        for name, key in self._parents.batches.items():
            tags[f"{INPUT_DATA_VERSION_TAG}/{key.to_user_string()}"] = versions[name]
            tags[f"{INPUT_EVENT_TAG}/{key.to_user_string()}"] = events[name]
        for name, key in self._parents.whole.items():
            version = _CHANGED if name in changed else _NO_VERSION
            tags[f"{INPUT_DATA_VERSION_TAG}/{key.to_user_string()}"] = version
            tags[f"{INPUT_EVENT_TAG}/{key.to_user_string()}"] = _NO_EVENT
        return tags
