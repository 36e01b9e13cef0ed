"""The features of a data set, as its JSON has them: names of class labels, and kinds that are no text."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from dataflow_assets.errors import SourceError

_MEDIA = ("Audio", "Image", "Mesh", "Nifti", "Pdf", "Video")


def refuse_media(features: Mapping[str, Any], columns: Iterable[str], piece: str) -> None:
    """Raises SourceError where one of the columns holds images, sounds or the like, at any depth."""
    for name in columns:
        media = next((kind for kind in _kinds(features.get(name)) if kind in _MEDIA), None)
        if media:
            raise SourceError(
                f"source {piece}: column {name!r} is a feature {media}, and that is no text; expected "
                "text, numbers, booleans, times, lists or structs. List the other columns in "
                "`source.columns` to leave it out"
            )


def with_class_names(batch: pa.RecordBatch, features: Mapping[str, Any]) -> pa.RecordBatch:
    """The batch with the names of class labels in place of their numbers; -1, no label, is null."""
    arrays = []
    for name, array in zip(batch.schema.names, batch.columns, strict=True):
        feature = features.get(name)
        if "ClassLabel" not in _kinds(feature):
            arrays.append(array)
        elif isinstance(feature, Mapping) and feature.get("_type") == "ClassLabel":
            arrays.append(pa.array([_named(each, feature) for each in array.to_pylist()], pa.large_string()))
        else:
            arrays.append(pa.array([_named(each, feature) for each in array.to_pylist()]))
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def _named(value: object, feature: object) -> object:
    if value is None or feature is None:
        return value
    if isinstance(feature, Mapping) and feature.get("_type") == "ClassLabel" and isinstance(value, int):
        names = feature.get("names") or []
        return names[value] if 0 <= value < len(names) else None
    inner = _inner(feature)
    if isinstance(value, list) and inner is not None:
        return [_named(each, inner) for each in value]
    if isinstance(value, dict) and isinstance(feature, Mapping):
        return {name: _named(each, feature.get(name)) for name, each in value.items()}
    return value


def _inner(feature: object) -> object | None:
    """The feature of a list's elements."""
    if isinstance(feature, list):
        return feature[0]
    return feature.get("feature") if isinstance(feature, Mapping) and "_type" in feature else None


def _kinds(feature: object) -> Iterator[str]:
    """The kinds of a feature and of those inside it."""
    if isinstance(feature, list):
        for each in feature:
            yield from _kinds(each)
    elif isinstance(feature, Mapping):
        if isinstance(feature.get("_type"), str):
            yield feature["_type"]
        for each in feature.values():
            yield from _kinds(each)
