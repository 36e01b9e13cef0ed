"""Another package with plugins, as pip would leave it: a module, and its entry points beside it."""

import json
import os
from pathlib import Path

from dataflow_assets_tests.crash.command import PACKAGE_ROOT, environment

_RECORDER = '''
import dataclasses, json

class Recorder:
    """Keeps each event as a line of `file`."""

    def __init__(self, file="events.jsonl"):
        self.file = file

    def keep(self, hook, event):
        values = {f.name: getattr(event, f.name) for f in dataclasses.fields(event) if f.name != "work"}
        if "steps" in values:
            values["steps"] = [dataclasses.asdict(step) for step in values["steps"]]
        with open(self.file, "a") as file:
            file.write(json.dumps({"hook": hook, **values}) + "\\n")

for hook in ("on_pipeline_start", "on_step_start", "on_batch", "on_step_end", "on_pipeline_end",
             "on_pause", "on_failure"):
    setattr(Recorder, hook, lambda self, event, hook=hook: self.keep(hook, event))

class Broken:
    def on_batch(self, batch):
        raise ValueError(f"no more\\x1b[2J of {batch.batch}")

class Leaving:
    def on_step_start(self, started):
        raise SystemExit(9)

class Unmade:
    def __init__(self):
        raise OSError("nowhere")
'''


def install(folder: Path, **classes: str) -> Path:
    """A folder for PYTHONPATH with plugins `name=class`; a class that is not there cannot be imported."""
    site = folder / "site"
    about = site / "other_plugins-1.0.dist-info"
    about.mkdir(parents=True)
    (site / "other_plugins.py").write_text(_RECORDER)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: other_plugins\nVersion: 1.0\n")
    points = "".join(f"{name} = other_plugins:{made}\n" for name, made in classes.items())
    (about / "entry_points.txt").write_text(f"[dataflow_assets.plugins]\n{points}")
    return site


def environment_with(site: Path, **more: str) -> dict[str, str]:
    """The environment of a command that finds these plugins."""
    return environment({"PYTHONPATH": os.pathsep.join([str(PACKAGE_ROOT), str(site)]), **more})


def events(folder: Path, hook: str | None = None) -> list[dict]:
    """What the recorder kept in `folder`, of one hook or of all."""
    lines = (folder / "events.jsonl").read_text().splitlines()
    return [event for event in map(json.loads, lines) if hook in (None, event["hook"])]


def hooks(folder: Path) -> list[str]:
    """The hooks in the order of their calls; `on_batch` once for all of a step."""
    called = [event["hook"] for event in events(folder)]
    return [
        hook for place, hook in enumerate(called) if hook != "on_batch" or called[place - 1] != "on_batch"
    ]
