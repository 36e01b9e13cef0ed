"""SQL over the steps of a pipeline: a view for each step, what it rejected and what failed."""

from dataflow_assets.views.query import query

__all__ = ["query"]
