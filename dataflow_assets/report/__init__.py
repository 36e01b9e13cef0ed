"""The report: what the steps of a pipeline did to the data, as one HTML page and as a data card."""

from dataflow_assets.report.page import render

__all__ = ["render"]
