"""What the rules of a step need: labels beside inputs, files; and what is wrong with them."""

from collections.abc import Mapping, Sequence

from dataflow_assets.batch import ROW_ID, Schema
from dataflow_assets.errors import ConfigError
from dataflow_assets.expectations.references import check_has, read_reference
from dataflow_assets.expectations.targets import Columns, Target, target_of
from dataflow_assets.pipeline import Pipeline, Step
from dataflow_assets.pipeline.expectations import ExpectSpec
from dataflow_assets.pipeline.problems import listed, shown
from dataflow_assets.pipeline.rule_grammar import Conflicts, Drift, File
from dataflow_assets.profiles.making import Pair


def pairs_of(rules: Sequence[ExpectSpec]) -> tuple[Pair, ...]:
    """The inputs and labels whose conflicts are looked for, each once."""
    values = (rule.rule.value for rule in rules)
    pairs = {Pair(value.inputs, value.label) for value in values if isinstance(value, Conflicts)}
    return tuple(sorted(pairs, key=lambda pair: (pair.inputs, pair.label)))


def problems_of_rules(
    pipeline: Pipeline, step: Step, schema: Schema, parents: Mapping[str, Schema]
) -> list[str]:
    """The mistakes of a step's rules where its output, and its parents', have these columns."""
    if pipeline.profile is False and any(rule.needs_profile for rule in step.expect):
        return ["expect: rules look at the profile, and the pipeline has `profile: false`; take that out"]
    own = () if pipeline.profile is False else tuple(pipeline.profile.measures)
    problems = []
    for rule in step.expect:
        try:
            target = target_of(rule.rule.value, Columns(schema, own))
        except ValueError as error:
            problems.append(f"expect: {rule.that!r}: {error}")
            continue
        drift = rule.rule.value
        if not isinstance(drift, Drift) or target is None:
            continue
        if isinstance(drift.reference, File) and (problem := _lack(pipeline, drift.reference, target)):
            problems.append(f"expect: {rule.that!r}: {problem}")
        if drift.reference != "before":
            continue
        if target.column not in own and not any(target.column in columns for columns in parents.values()):
            there = {name for columns in parents.values() for name in columns if name != ROW_ID}
            problems.append(
                f"expect: {rule.that!r}: the column {shown(target.column)} is not there before the step "
                f"(there are: {listed(sorted(there))}); compare with last_run or a file"
            )
    return problems


def _lack(pipeline: Pipeline, file: File, target: Target) -> str | None:
    """What the reference in a file lacks; of one that cannot be read `check_references` tells."""
    try:
        reference = read_reference(pipeline.base_dir, file.name)
    except ConfigError:
        return None
    try:
        check_has(reference, file.name, target)
    except ConfigError as error:
        return str(error)
    return None


def check_references(pipeline: Pipeline) -> None:
    """Raises ConfigError for each file of a rule that is not there, or is no profile."""
    problems = []
    for step in pipeline.steps:
        for rule in step.expect:
            drift = rule.rule.value
            if isinstance(drift, Drift) and isinstance(drift.reference, File):
                try:
                    read_reference(pipeline.base_dir, drift.reference.name)
                except ConfigError as error:
                    problems.append(f"{pipeline.place(step)}: expect: {rule.that!r}: {error}")
    if problems:
        raise ConfigError(problems)
