"""ClickHouse over HTTP for tests: the engine is real (chdb, in a process of its own), the HTTP is ours.

No package registry has a current ClickHouse server. What this proves: DDL, types, the formats of inserts
and answers, `ReplacingMergeTree`, deletes and counts, for they are the engine's own; and that our code
and clickhouse-connect speak over a real socket, with a password, compressed bodies and connections that
break. What it does not prove: replicas, a cluster, TLS, async inserts, settings and limits of a server.
"""
