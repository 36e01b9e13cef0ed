"""The steps of a pipeline as an enhancement of the data set that is its source."""

from collections.abc import Sequence

from dataflow_assets.corpora.enhancing import BATCH_ROWS, Enhancement, enhancement
from dataflow_assets.errors import ConfigError
from dataflow_assets.operators.llm.operator import LLMOperator
from dataflow_assets.pipeline import Pipeline
from dataflow_assets.sources.sql.spec import CorpusSource


def enhancement_of_pipeline(
    pipeline: Pipeline, task: str | None, stage: str, write: Sequence[str], batch_rows: int | None
) -> Enhancement:
    """The steps of a pipeline whose source is a data set with `rows: turns`. Raises ConfigError."""
    source = pipeline.source
    if not isinstance(source, CorpusSource) or source.rows != "turns" or source.rename or source.columns:
        raise ConfigError(
            f"the source of {pipeline.name!r} is not `corpus` with `rows: turns` and all columns as they "
            "are; expected that, for the steps work on the turns themselves"
        )
    before = "source"
    for step in pipeline.steps:
        if pipeline.parents(step.name) != [before]:
            raise ConfigError(
                f"step {step.name!r} does not follow on {before!r} alone; expected steps in a row: run the "
                "pipeline, then `corpus write-back`"
            )
        if isinstance(pipeline.operator(step), LLMOperator):
            raise ConfigError(
                f"step {step.name!r} asks a model, whose answers are paid for and kept by a run; expected "
                "other operators: run the pipeline, then `corpus write-back`"
            )
        before = step.name
    operators = [pipeline.operator(step) for step in pipeline.steps]
    rows = batch_rows or pipeline.batch_rows or BATCH_ROWS
    return enhancement(source.dataset, task or pipeline.name, operators, write, stage, rows)
