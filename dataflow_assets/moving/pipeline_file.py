"""A pipeline.py of DataFlow as the fields of a pipeline of ours; its source is read, nothing of it is run."""

import ast
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from dataflow_assets.errors import ConfigError
from dataflow_assets.operators.opendcai.declared import declared
from dataflow_assets.operators.opendcai.places import find_place
from dataflow_assets.pipeline.names import FOLDER_NAME, SOURCE, identifier

Fields = dict[str, object]
_FORMATS = ("json", "jsonl", "csv", "parquet")


class _Made(NamedTuple):
    """What `self.NAME` is: a call of a class, with its line."""

    path: str
    arguments: Mapping[str, ast.expr]
    line: int

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]


class Converted(NamedTuple):
    """The fields of the pipeline, the cache folder and prefix that it had, and what a person must look at."""

    fields: Fields
    cache: tuple[str, str] | None
    notes: list[str]


def convert(file: Path, class_name: str | None = None) -> Converted:
    """The pipeline of the first class with a `forward`, or of this one.

    Raises ConfigError with a line for each statement that cannot be said in YAML.
    """
    try:
        tree = ast.parse(file.read_text("utf-8"))
    except (OSError, ValueError, SyntaxError) as error:
        raise ConfigError(f"{file} cannot be read as Python: {error}") from error
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and _method(node, "forward")]
    chosen = [node for node in classes if class_name in (None, node.name)]
    if not chosen:
        names = ", ".join(node.name for node in classes) or "none"
        raise ConfigError(f"{file} has no class {class_name or 'with a method forward'}; with one: {names}")
    constants = {name: value for node in tree.body for name, value in _assigned(node).items()}
    return _Converter(file, _imported(tree), constants).convert(chosen[0])


def _method(node: ast.ClassDef, name: str) -> ast.FunctionDef | None:
    found = (each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == name)
    return next(found, None)


def _imported(tree: ast.Module) -> dict[str, str]:
    """The dotted paths of the names that the module imports."""
    paths: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            paths |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            paths |= {alias.asname or alias.name: alias.name for alias in node.names}
    return paths


def _assigned(node: ast.stmt) -> dict[str, ast.expr]:
    """The value of `NAME = …` or `self.NAME = …`, under `NAME` or `self.NAME`."""
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        targets, value = [node.target], node.value
    elif isinstance(node, ast.Assign):
        targets, value = node.targets, node.value
    else:
        return {}
    return {ast.unparse(target): value for target in targets if isinstance(target, ast.Name | ast.Attribute)}


class _Converter:
    def __init__(self, file: Path, imported: Mapping[str, str], constants: dict[str, ast.expr]) -> None:
        self._file, self._imported, self._constants = file, imported, constants
        self._problems: list[str] = []
        self._notes: list[str] = []
        self._made: dict[str, _Made] = {}

    def convert(self, node: ast.ClassDef) -> Converted:
        """The pipeline of this class."""
        init, forward = _method(node, "__init__"), _method(node, "forward")
        for statement in init.body if init else []:
            self._take(statement)
        steps = [step for statement in (forward.body if forward else []) for step in self._steps(statement)]
        storages = [made for made in self._made.values() if made.name.endswith("Storage")]
        if len(storages) != 1:
            self._problems.append(f"{self._file}: {len(storages)} storages; expected one, with a first file")
        if not steps:
            self._problems.append(f"{self._file}: `forward` runs no operator")
        fields: Fields = {"name": _folder_name(node.name)}
        cache = None
        if len(storages) == 1:
            given, cache = self._storage(storages[0])
            fields |= given
        if self._problems:
            raise ConfigError(self._problems)
        servings = self._servings()
        fields |= {"servings": servings} if servings else {}
        return Converted({**fields, "steps": _each_named_once(steps)}, cache, self._notes)

    def _take(self, statement: ast.stmt) -> None:
        """Notes what `__init__` sets; statements that set nothing are said to the person."""
        assigned = _assigned(statement)
        if not assigned and not _is_super_call(statement) and not _is_text(statement):
            self._notes.append(f"line {statement.lineno} was left out: {_shown(statement)}")
        for name, value in assigned.items():
            path = self._path(value.func) if isinstance(value, ast.Call) else None
            if isinstance(value, ast.Call) and path is not None and name.startswith("self."):
                arguments = self._named(value, value.args, path, "init")
                self._made[name.removeprefix("self.")] = _Made(path, arguments, value.lineno)
            else:
                self._constants[name] = value

    def _named(
        self, call: ast.Call, placed: Sequence[ast.expr], path: str, method: Literal["init", "run"]
    ) -> dict[str, ast.expr]:
        """The arguments of a call by name; those given by position by the names that the class has."""
        given = {str(each.arg): each.value for each in call.keywords if each.arg is not None}
        if not placed and len(given) == len(call.keywords):
            return given
        try:
            names = list(getattr(declared(find_place(path)), method).named)
        except ConfigError:
            names = []
        is_spread = any(isinstance(each, ast.Starred) for each in placed)
        if is_spread or len(names) < len(placed) or len(given) < len(call.keywords):
            self._refuse(call, "its arguments have no names; write them as `name=value`")
            return given
        return dict(zip(names, placed, strict=False)) | given

    def _path(self, node: ast.expr) -> str | None:
        if isinstance(node, ast.Name):
            return self._imported.get(node.id)
        if isinstance(node, ast.Attribute) and (above := self._path(node.value)) is not None:
            return f"{above}.{node.attr}"
        return None

    def _refuse(self, node: ast.stmt | ast.expr, expected: str) -> None:
        self._problems.append(f"{self._file}:{node.lineno}: {_shown(node)}: {expected}")

    def _steps(self, statement: ast.stmt) -> list[Fields]:
        """The step of `self.NAME.run(storage=self.storage.step(), …)`."""
        call = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(call, ast.Tuple) and len(call.elts) == 1:  # a comma behind the call
            call = call.elts[0]
        if _is_text(statement) or isinstance(statement, ast.Pass):
            return []
        if (
            assigned := {}
            if isinstance(getattr(statement, "value", None), ast.Call)
            else _assigned(statement)
        ):
            self._constants |= assigned
            return []
        function = call.func if isinstance(call, ast.Call) else None
        name = (
            _own(function.value) if isinstance(function, ast.Attribute) and function.attr == "run" else None
        )
        made = self._made.get(name or "")
        if isinstance(function, ast.Attribute) and function.attr == "cleanup":
            return []  # the pipeline ends its servings by itself
        if not isinstance(call, ast.Call) or name is None or made is None:
            self._refuse(statement, "expected `self.name.run(storage=self.storage.step(), …)`")
            return []
        is_storage_named = any(each.arg == "storage" for each in call.keywords)
        arguments = self._named(call, call.args if is_storage_named else call.args[1:], made.path, "run")
        arguments.pop("storage", None)
        return [self._step(name, made, {key: self._value(value) for key, value in arguments.items()})]

    def _step(self, name: str, made: _Made, run: Fields) -> Fields:
        asks = [key for key, value in made.arguments.items() if self._is_serving(value)]
        init = {key: self._value(value) for key, value in made.arguments.items() if key not in asks}
        params: Fields = {"operator": made.path.removeprefix("dataflow.operators.")}
        params |= {"init": init} if init else {}
        params |= {"run": run} if run else {}
        kind = "opendcai_llm" if asks else "opendcai"
        return {"name": _folder_name(name), "type": kind, "params": params}

    def _is_serving(self, value: ast.expr) -> bool:
        name = _own(value) or (value.id if isinstance(value, ast.Name) else "")
        made = self._made.get(name)
        return "serving" in name.lower() if made is None else "Serving" in made.name

    def _value(self, node: ast.expr) -> object:
        """A value as YAML has it: a plain one, or `{object: path}` for a class, function or prompt."""
        try:
            return ast.literal_eval(node)
        except ValueError:
            pass
        if isinstance(node, ast.List | ast.Tuple):
            return [self._value(each) for each in node.elts]
        if isinstance(node, ast.Dict) and all(isinstance(key, ast.Constant) for key in node.keys):
            keys = (key.value for key in node.keys if isinstance(key, ast.Constant))
            return {str(key): self._value(each) for key, each in zip(keys, node.values, strict=True)}
        constant = self._constants.get(ast.unparse(node))
        if constant is not None and constant is not node:
            return self._value(constant)
        if (made := self._made.get(_own(node) or "")) is not None:
            return {
                "object": made.path,
                "init": {name: self._value(each) for name, each in made.arguments.items()},
            }
        path = self._path(node.func if isinstance(node, ast.Call) else node)
        if path is None or (isinstance(node, ast.Call) and node.args):
            self._refuse(node, "not a plain value, and no name that the file imports; give it in the YAML")
            return None
        if not isinstance(node, ast.Call):
            return {"object": path}
        return {"object": path, "init": {str(each.arg): self._value(each.value) for each in node.keywords}}

    def _storage(self, made: _Made) -> tuple[Fields, tuple[str, str] | None]:
        """The source, format and mode of writing, and where the cache folder is."""
        given = {name: self._value(value) for name, value in made.arguments.items()}
        first = given.get("first_entry_file_name")
        if not isinstance(first, str) or not first:
            self._problems.append(f"{self._file}:{made.line}: no `first_entry_file_name`; expected a file")
        format = str(given.get("cache_type", "jsonl"))
        fields: Fields = {"source": _source_of(str(first))}
        if format in _FORMATS and format != "jsonl":
            fields["format"] = format
        if made.name == "LazyFileStorage":
            fields["write"] = "lazy"
        cache = (
            str(given.get("cache_path", "./cache")),
            str(given.get("file_name_prefix", "dataflow_cache_step")),
        )
        return fields, cache

    def _servings(self) -> Fields:
        """The servings that steps ask, where they are servers with the OpenAI API."""
        found: Fields = {}
        for name, made in self._made.items():
            if "Serving" not in made.name:
                continue
            given = {key: self._value(value) for key, value in made.arguments.items()}
            if made.name != "APILLMServing_request" or found:
                self._notes.append(f"self.{name} is a {made.name}: name a serving of yours under `servings:`")
                continue
            url = str(given.get("api_url", "https://api.openai.com/v1/chat/completions"))
            serving: Fields = {
                "type": "openai",
                "model": given.get("model_name", "gpt-4o"),
                "base_url": url.removesuffix("/chat/completions"),
                "api_key": f"${{{given.get('key_name_of_api_key', 'DF_API_KEY')}}}",
            }
            found["default"] = serving
        return found


def _source_of(first: str) -> Fields:
    """The source that a first file is: DataFlow's `hf:name:split` is `hf: name::split` here."""
    kind, *names = first.split(":")
    if kind not in ("hf", "ms"):
        return {"path": first}
    return {kind: "::".join(names) if len(names) == 2 else ":".join(names)}


def _each_named_once(steps: Sequence[Fields]) -> list[Fields]:
    """The steps, of which the second with the name `lower` is `lower_2`."""
    given = {identifier(str(step["name"])) for step in steps}
    used: set[str] = set()
    named: list[Fields] = []
    for step in steps:
        base = name = str(step["name"])
        number = 1
        while identifier(name) in used or (number > 1 and identifier(name) in given):
            number += 1
            name = f"{base[: 63 - len(str(number))]}_{number}"
        used.add(identifier(name))
        named.append({**step, "name": name})
    return named


def _own(node: ast.expr) -> str | None:
    """NAME of `self.NAME`."""
    is_own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    return node.attr if is_own else None  # pyright: ignore[reportAttributeAccessIssue]


def _is_super_call(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and ast.unparse(statement).startswith("super()")


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _shown(node: ast.stmt | ast.expr) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 80 else f"{text[:80]}…"


def _folder_name(name: str) -> str:
    """The name as a folder's: `PTTextFilter_CPUPipeline` is `pttextfilter_cpupipeline`."""
    lower = re.sub(r"[^a-z0-9_-]", "-", name.lower()).strip("_-")[:64] or "pipeline"
    lower = f"{lower}-step" if lower == SOURCE or lower.endswith(("_state", "-state")) else lower
    assert re.fullmatch(FOLDER_NAME[1:-1], lower)
    return lower
