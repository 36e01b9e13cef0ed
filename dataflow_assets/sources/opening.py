"""From what a pipeline says of its source to the pieces of it, whatever kind it is."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from dataflow_assets.sources.clickhouse.pieces import clickhouse_pieces
from dataflow_assets.sources.clickhouse.spec import ClickHouseSource
from dataflow_assets.sources.file_pieces import file_pieces
from dataflow_assets.sources.generated.pieces import empty_pieces, generator_pieces
from dataflow_assets.sources.generated.spec import EmptySource, GeneratorSource
from dataflow_assets.sources.hub.modelscope import modelscope_pieces
from dataflow_assets.sources.hub.pieces import hub_pieces
from dataflow_assets.sources.hub.spec import HubSource, ModelScopeSource
from dataflow_assets.sources.piece import Found, Known
from dataflow_assets.sources.reading_spec import ReadingSpec
from dataflow_assets.sources.spec import SourceSpec
from dataflow_assets.sources.sql.spec import CorpusSource, SqlSource


def _sql_pieces(spec: SqlSource, base_dir: Path, known: Known) -> Found:
    from dataflow_assets.sources.sql.query_pieces import sql_pieces

    return sql_pieces(spec, base_dir, known)


def _corpus_pieces(spec: CorpusSource, base_dir: Path, known: Known) -> Found:
    from dataflow_assets.sources.sql.corpus_pieces import corpus_pieces

    return corpus_pieces(spec, base_dir, known)


_Finder = Callable[[Any, Path, Known], Found]
_FINDERS: dict[type[ReadingSpec], _Finder] = {
    SourceSpec: file_pieces,
    HubSource: hub_pieces,
    ModelScopeSource: modelscope_pieces,
    EmptySource: empty_pieces,
    GeneratorSource: generator_pieces,
    SqlSource: _sql_pieces,
    CorpusSource: _corpus_pieces,
    ClickHouseSource: clickhouse_pieces,
}


def find_pieces(spec: ReadingSpec, base_dir: Path, known: Known) -> Found:
    """The pieces of the source in order; nothing is read of them yet. Raises SourceError, ConfigError."""
    return _FINDERS[type(spec)](spec, base_dir, known)
