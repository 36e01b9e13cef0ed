"""Dagster resources: what assets of pipelines and assets of your own are given."""
