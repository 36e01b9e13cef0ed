"""Croissant 1.0 metadata of an exported file: what it holds, for catalogues and for `mlcroissant`.

The vocabulary is MLCommons', https://docs.mlcommons.org/croissant/docs/croissant-spec-1.0.html.
"""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

import orjson

from dataflow_assets.batch import ColumnType, Schema
from dataflow_assets.errors import ConfigError
from dataflow_assets.io.atomic import write_atomically
from dataflow_assets.pipeline import Pipeline

_ENCODINGS = {".jsonl": "application/jsonlines", ".csv": "text/csv", ".parquet": "application/x-parquet"}
_TYPES: Mapping[ColumnType, str] = {
    "string": "sc:Text",
    "int64": "sc:Integer",
    "float64": "sc:Float",
    "bool": "sc:Boolean",
    "json": "sc:Text",
}
_CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileProperty": "cr:fileProperty",
    "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}


def check_format(data: Path) -> None:
    """Raises ConfigError for a file whose records Croissant cannot name."""
    if data.suffix not in _ENCODINGS:
        known = ", ".join(_ENCODINGS)
        raise ConfigError(f"{data} ends in {data.suffix!r}; Croissant metadata are written for {known}")


def write_croissant(to: Path, pipeline: Pipeline, data: Path, columns: Schema, rows: int) -> None:
    """Writes the metadata of the exported file `data`, found from the folder of `to`. Raises StorageError."""
    body = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "name": pipeline.name,
        "description": pipeline.description or pipeline.name,
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        **({"license": pipeline.license} if pipeline.license else {}),
        "distribution": [_file(data, to)],
        "recordSet": [_record_set(columns, rows, as_text=data.suffix != ".jsonl")],
    }
    write_atomically(to, orjson.dumps(body, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def _file(data: Path, to: Path) -> dict[str, object]:
    digest = hashlib.sha256()
    with open(data, "rb") as file:
        while block := file.read(1 << 22):
            digest.update(block)
    return {
        "@type": "cr:FileObject",
        "@id": "data",
        "name": "data",
        "contentUrl": Path(os.path.relpath(data.resolve(), to.resolve().parent)).as_posix(),
        "contentSize": f"{data.stat().st_size} B",
        "encodingFormat": _ENCODINGS[data.suffix],
        "sha256": digest.hexdigest(),
    }


def _record_set(columns: Schema, rows: int, as_text: bool) -> dict[str, object]:
    """The columns as fields; nested values of JSON Lines, for which Croissant 1.0 has no type, are named."""
    nested = [] if as_text else [name for name, kind in columns.items() if kind == "json"]
    more = f" Besides, as JSON values: {', '.join(nested)}." if nested else ""
    return {
        "@type": "cr:RecordSet",
        "@id": "records",
        "name": "records",
        "description": f"{rows} records, one for each row.{more}",
        "field": [_field(name, kind) for name, kind in columns.items() if name not in nested],
    }


def _field(name: str, kind: ColumnType) -> dict[str, object]:
    return {
        "@type": "cr:Field",
        "@id": f"records/{quote(name, safe='')}",
        "name": name,
        **({"description": "The text of a JSON value."} if kind == "json" else {}),
        "dataType": _TYPES[kind],
        "source": {"fileObject": {"@id": "data"}, "extract": {"column": name}},
    }
