"""The ClickHouse server, one for all tests of the session."""

from dataflow_assets_tests.clickhouse_server.fixture import clickhouse, clickhouse_process, database

__all__ = ["clickhouse", "clickhouse_process", "database"]
