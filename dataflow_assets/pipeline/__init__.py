"""Pipelines as they are written: files, models, graph and columns, checked before any work."""

from dataflow_assets.pipeline.model import Pipeline
from dataflow_assets.pipeline.step import Step

__all__ = ["Pipeline", "Step"]
