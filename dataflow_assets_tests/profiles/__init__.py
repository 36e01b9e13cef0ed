"""Tests of `dataflow_assets.profiles`."""
