"""Loads a pipeline from a YAML or JSON file; all its mistakes come together, each with its line."""

import os
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from dataflow_assets.errors import ConfigError
from dataflow_assets.pipeline.environment import BadReference, Environment
from dataflow_assets.pipeline.model import Origin, Pipeline, problem_lines
from dataflow_assets.pipeline.problems import Path as Place
from dataflow_assets.pipeline.problems import Problem, printable, shown
from dataflow_assets.pipeline.text import Node, Unreadable, read_text

SUFFIXES: Mapping[str, Literal["yaml", "json"]] = {".yaml": "yaml", ".yml": "yaml", ".json": "json"}
MAX_FILE_BYTES = 2**20


def load_pipeline(path: str | Path) -> Pipeline:
    """The pipeline of a `.yaml`, `.yml` or `.json` file.

    Its folder is appended to `sys.path`, so that `type: my_module:MyOperator` finds code beside
    it. Raises ConfigError with one line `file.yaml:LINE: step 2 'plain' (strip_html): message` for
    each mistake of the file; values of the environment are not in them.
    """
    path = Path(path)
    where = printable(str(path))
    text = _text(path, where)
    try:
        root, problems = read_text(text, SUFFIXES[path.suffix.lower()])
    except Unreadable as error:
        raise ConfigError(problem_lines([error.problem], {}, Origin(path.parent), where)) from None
    if root is None or root.value is None:
        raise ConfigError(f"{where}: the file is empty; expected a pipeline: name, source, steps")
    if not isinstance(root.value, dict):
        raise ConfigError(
            f"{where}:{root.line}: found {_kind(root)}, expected a mapping with name, source and steps"
        )
    return _pipeline(path, where, root, problems)


def _pipeline(path: Path, where: str, root: Node, problems: list[Problem]) -> Pipeline:
    folder = path.absolute().parent
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    environment = Environment(os.environ)
    data, unset = _filled(root, environment)
    steps = root.value["steps"].value if isinstance(root.value, dict) and "steps" in root.value else []
    lines = [step.line for step in steps] if isinstance(steps, list) else []
    origin = Origin(folder, path, lines, environment.used)
    pipeline, found = Pipeline.from_data(data, origin)
    bad = {problem.path for problem in unset}
    found = [problem for problem in found if not _within(problem.path, bad)]
    problems = problems + unset + [p._replace(line=p.line or root.line_of(p.path)) for p in found]
    if problems:
        problems.sort(key=lambda problem: problem.line or 0)
        raise ConfigError(problem_lines(problems, data, origin, where))
    return pipeline


def _within(path: Place, bad: set[Place]) -> bool:
    """Whether the value at this path, or one around it, could not be filled in."""
    return any(path[:length] in bad for length in range(1, len(path) + 1))


def _filled(root: Node, environment: Environment) -> tuple[dict[str, object], list[Problem]]:
    """The values of the file with its variables put in, and a mistake for each that could not be."""
    problems: list[Problem] = []

    def fill(text: str, path: Place, line: int) -> str:
        try:
            return environment.filled(text)
        except BadReference as error:
            problems.append(Problem(f"{'.'.join(map(str, path))}: {error}", path, line))
            return text

    data = root.plain(fill)
    return data if isinstance(data, dict) else {}, problems


def _kind(node: Node) -> str:
    return "a list" if isinstance(node.value, list) else shown(node.value)


def _text(path: Path, where: str) -> str:
    """The text of the file. Raises ConfigError for what cannot be a pipeline's file."""
    if path.suffix.lower() not in SUFFIXES:
        raise ConfigError(f"{where}: the name of a pipeline's file ends in {', '.join(SUFFIXES)}")
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise ConfigError(f"{where}: is a folder, expected a pipeline's file")
        if not stat.S_ISREG(status.st_mode):
            raise ConfigError(f"{where}: is a device or pipe, expected a file")
        if status.st_size > MAX_FILE_BYTES:
            raise ConfigError(
                f"{where}: has {status.st_size} bytes; a pipeline's file has at most {MAX_FILE_BYTES}"
            )
        content = path.read_bytes()
    except FileNotFoundError:
        raise ConfigError(f"{where}: there is no such file") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"{where}: cannot be read: {reason}") from None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            f"{where}:{line}: byte {error.start + 1} of the file is not UTF-8; save it as UTF-8"
        ) from None
