"""A Dagster project that makes LLM training data: pipelines in YAML, every batch a committed file."""
