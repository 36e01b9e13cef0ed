"""A table or query of ClickHouse as a source."""
