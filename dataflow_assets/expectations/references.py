"""The profiles that drift is measured against: a file, and what the last complete runs left of a step."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from dataflow_assets.errors import ConfigError, StorageError
from dataflow_assets.expectations.drift import reference_of
from dataflow_assets.expectations.targets import Target
from dataflow_assets.io import atomic
from dataflow_assets.io.layout import STATE
from dataflow_assets.pipeline.problems import listed, printable, shown

if TYPE_CHECKING:
    from dataflow_assets.io.step_folder import StepFolder
    from dataflow_assets.profiles.profile import Profile

LAST_RUNS_FILE = "last_runs.json"
REFERENCE = "reference"
_MOST_KEPT = 2


def profile_file(profile: "Profile", pipeline: str, step: str) -> bytes:
    """What `dataflow-assets profile` writes: the profile for people, and what drift is measured against."""
    found = {"pipeline": pipeline, "step": step, **profile.as_json(), REFERENCE: reference_of(profile)}
    return orjson.dumps(found, option=orjson.OPT_INDENT_2) + b"\n"


def reference_path(base_dir: Path, name: str) -> Path:
    """Where a reference is; a relative path counts from the pipeline's folder."""
    return base_dir / Path(name).expanduser()


def read_reference(base_dir: Path, name: str) -> dict:
    """The reference in a file. Raises ConfigError."""
    path = reference_path(base_dir, name)
    how = "`dataflow-assets profile PIPELINE --step STEP --to FILE.json` writes one"
    try:
        found = orjson.loads(path.read_bytes())
        reference = found[REFERENCE]
        _check(reference)
    except (OSError, ValueError) as error:
        why = "is no JSON" if isinstance(error, orjson.JSONDecodeError) else _reason(error)
        raise ConfigError(f"the reference {printable(str(path))} {why}; {how}") from None
    except (KeyError, TypeError, AttributeError, IndexError):
        raise ConfigError(f"the reference {printable(str(path))} is no profile; {how}") from None
    return reference


def check_has(reference: Mapping, name: str, target: Target) -> None:
    """Raises ConfigError where the reference in this file has nothing that the target is compared with."""
    column = reference["columns"].get(target.column)
    known = reference["columns"]
    if column is not None:
        known = {
            **column["numbers"],
            **{label: counts for label, counts in column["labels"].items() if counts},
        }
        has_it = bool(column.get("values")) if target.kind == "value" else target.measure in known
        if has_it:
            return
    missing = f"column {shown(target.column)}"
    if column is not None:
        missing = f"{'values' if target.kind == 'value' else shown(target.measure)} of the {missing}"
    raise ConfigError(
        f"the reference {printable(name)} has no {missing} (it has: {listed(sorted(known))}); "
        "`dataflow-assets profile PIPELINE --step STEP --to FILE.json` writes it anew"
    )


def _reason(error: Exception) -> str:
    return f"cannot be read: {getattr(error, 'strerror', None) or shown(str(error))}"


def _check(reference: Mapping) -> None:
    """Raises what a file of another kind raises."""
    for column in reference["columns"].values():
        for bins in column["numbers"].values():
            edges, counts = list(map(float, bins["edges"])), list(map(int, bins["counts"]))
            if len(counts) != len(edges) + 1 or edges != sorted(edges):
                raise KeyError("edges")
        for counts in (*column["labels"].values(), column.get("values", {})):
            list(map(int, counts.values()))


def last_run_reference(folder: "StepFolder", contents: str, measures: str) -> dict | None:
    """The profile of the last complete run with these measures and other rows than these; None for none."""
    kept = _last_run(folder, contents, measures)
    return None if kept is None else kept["profile"]


def last_run_contents(folder: "StepFolder", contents: str, measures: str) -> str | None:
    """What that profile is of."""
    kept = _last_run(folder, contents, measures)
    return None if kept is None else kept["contents"]


def _last_run(folder: "StepFolder", contents: str, measures: str) -> dict | None:
    return next((kept for kept in _kept(folder, measures) if kept["contents"] != contents), None)


def keep_last_run(folder: "StepFolder", contents: str, measures: str, profile: "Profile") -> None:
    """Keeps the profile of a run that is complete, and the one before it. Raises StorageError."""
    kept = [each for each in _kept(folder, measures) if each["contents"] != contents]
    newest = {"contents": contents, "measures": measures, "profile": reference_of(profile)}
    kept = [newest, *kept][:_MOST_KEPT]
    path = folder.path / STATE / LAST_RUNS_FILE
    atomic.make_folder(path.parent)
    atomic.write_atomically(path, orjson.dumps(kept))


def newest_contents(folder: "StepFolder", measures: str) -> str | None:
    """What the newest kept profile is of."""
    return next((kept["contents"] for kept in _kept(folder, measures)), None)


def _kept(folder: "StepFolder", measures: str) -> list[dict]:
    """What is kept of these measures, newest first; nothing where the file is damaged.

    Tokens that another tokenizer counted would be drift that is none.
    """
    path = folder.path / STATE / LAST_RUNS_FILE
    try:
        found = orjson.loads(path.read_bytes())
        for kept in found:
            _check(kept["profile"])
            kept["contents"]
        return [kept for kept in found if kept["measures"] == measures]
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError, IndexError):
        return []
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror}; give permission") from error
