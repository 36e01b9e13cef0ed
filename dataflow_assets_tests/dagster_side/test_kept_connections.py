"""Dagster's databases with kept connections hold what they hold without."""

from pathlib import Path

import dagster as dg

from dataflow_assets.kept_connections import kept_connections


@dg.op
def report(context: dg.OpExecutionContext) -> None:
    for number in range(3):
        context.log_event(dg.AssetMaterialization("rows", partition=str(number)))


@dg.job
def reporting() -> None:
    report()


def partitions_of(instance: dg.DagsterInstance) -> set[str]:
    return set(instance.get_materialized_partitions(dg.AssetKey("rows")))


def test_events_are_there_for_everybody_at_once(tmp_path: Path) -> None:
    with dg.instance_for_test(temp_dir=str(tmp_path)) as instance, kept_connections(instance):
        reporting.execute_in_process(instance=instance)
        other = dg.DagsterInstance.from_ref(instance.get_ref())
        assert partitions_of(other) == {"0", "1", "2"}


def test_the_storage_is_as_before_afterwards(tmp_path: Path) -> None:
    with dg.instance_for_test(temp_dir=str(tmp_path)) as instance:
        with kept_connections(instance):
            assert "_connect" in vars(instance.event_log_storage)
        assert "_connect" not in vars(instance.event_log_storage)
        assert "connect" not in vars(instance.run_storage)
        reporting.execute_in_process(instance=instance)
        assert partitions_of(instance) == {"0", "1", "2"}


def test_runs_of_two_threads_may_end_in_any_order(tmp_path: Path) -> None:
    with dg.instance_for_test(temp_dir=str(tmp_path)) as instance:
        first, second = kept_connections(instance), kept_connections(instance)
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        reporting.execute_in_process(instance=instance)
        second.__exit__(None, None, None)
        assert "_connect" not in vars(instance.event_log_storage)
        assert partitions_of(instance) == {"0", "1", "2"}


def test_a_storage_in_memory_is_left_alone() -> None:
    with dg.DagsterInstance.ephemeral() as instance, kept_connections(instance):
        assert reporting.execute_in_process(instance=instance).success
