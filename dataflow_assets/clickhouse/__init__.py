"""ClickHouse, and MyScale, which speaks as it does: a step into a table, a table as a source."""
