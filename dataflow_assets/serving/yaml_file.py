"""Reads the YAML files of servings (scripts, prices) strictly, with mistakes told by file and line."""

from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from dataflow_assets.errors import ConfigError
from dataflow_assets.pipeline.problems import Problem, problems_of
from dataflow_assets.pipeline.text import Node, Unreadable, read_text

Model = TypeVar("Model", bound=BaseModel)


def read_yaml(path: Path, model: type[Model]) -> Model:
    """The content of the file as this model. Raises ConfigError with one line for each mistake."""
    node = _node(path)
    try:
        return model.model_validate(node.plain(lambda text, place, line: text))
    except ValidationError as error:
        raise ConfigError([_told(path, problem, node) for problem in problems_of(error, model)]) from None


def _node(path: Path) -> Node:
    try:
        node, problems = read_text(path.read_text(encoding="utf-8"), "yaml")
    except Unreadable as error:
        node, problems = None, [error.problem]
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    if node is None or problems:
        raise ConfigError([_told(path, problem) for problem in problems or [Problem("the file is empty")]])
    return node


def _told(path: Path, problem: Problem, node: Node | None = None) -> str:
    line = problem.line or (node.line_of(problem.path) if node else None)
    return f"{path}:{line}: {problem.message}" if line else f"{path}: {problem.message}"
