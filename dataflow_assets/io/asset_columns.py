"""What Dagster is told of an asset's columns: types, meanings, and the columns that they are made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import dagster as dg

from dataflow_assets.batch import Schema

SCHEMA_METADATA = "dagster/column_schema"
LINEAGE_METADATA = "dagster/column_lineage"


@dataclass(frozen=True)
class AssetColumns:
    """The meaning of each column, and for each the assets and columns that it is made of."""

    meanings: Mapping[str, str] = field(default_factory=dict)
    made_of: Mapping[str, Sequence[tuple[dg.AssetKey, str]]] = field(default_factory=dict)

    def metadata(self, schema: Schema) -> dict[str, dg.MetadataValue]:
        """The metadata of rows with these columns."""
        columns = [dg.TableColumn(name, kind, self.meanings.get(name)) for name, kind in schema.items()]
        metadata: dict[str, dg.MetadataValue] = {
            SCHEMA_METADATA: dg.MetadataValue.table_schema(dg.TableSchema(columns=columns))
        }
        if lineage := self._lineage(schema):
            metadata[LINEAGE_METADATA] = dg.MetadataValue.column_lineage(lineage)
        return metadata

    def _lineage(self, schema: Schema) -> dg.TableColumnLineage | None:
        deps = {
            name: [dg.TableColumnDep(key, column) for key, column in self.made_of[name]]
            for name in schema
            if self.made_of.get(name)
        }
        return dg.TableColumnLineage(deps_by_column=deps) if deps else None


NO_COLUMNS = AssetColumns()
