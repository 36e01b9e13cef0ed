"""What the operators that run a class of open-dataflow share: parameters, checks, columns, instances."""

import hashlib
import importlib
import os
import sys
import threading
from abc import abstractmethod
from collections.abc import Mapping
from functools import cached_property, partial
from typing import Any, Literal, cast

from pydantic import Field, ValidationInfo, field_validator, model_validator

from dataflow_assets.batch import ROW_ID, ColumnType, Schema
from dataflow_assets.errors import ConfigError, RunError
from dataflow_assets.operators.opendcai.declared import Declared, declared
from dataflow_assets.operators.opendcai.places import (
    DISTRIBUTION,
    OPERATORS,
    PACKAGE,
    find_place,
    is_installed,
)
from dataflow_assets.operators.opendcai.storage import MemoryStorage
from dataflow_assets.operators.operator import RESERVED_COLUMNS, Operator, Params
from dataflow_assets.operators.registry import import_object
from dataflow_assets.optional_packages import version_of

Scope = Literal["row", "batch", "dataset"]
# Words in the names of operators whose verdict on a row depends on the others.
_LOOKS_AT_ALL = ("Deduplicate", "DatasetEvaluator", "KCenterGreedy", "DomainKnowledgeRow", "QuestionFusion")
# Operators of 1.0.13 that write several rows for one.
_SPLITTING = (
    "KBCChunkGenerator",
    "Text2QAGenerator",
    "Text2MultiHopQAGenerator",
    "ReasoningQuestionGenerator",
)
_loading = threading.RLock()


class OpenDCAIParams(Params):
    """Which class, how it is made and how it is run."""

    operator: str = Field(
        min_length=1,
        description="The class: `LowercaseRefiner`, `general_text.LowercaseRefiner`, or `my.module.Class`.",
    )
    init: dict[str, object] = Field(
        default={},
        description="Arguments of the class. `{object: my.module.name}` is the object of that name; with "
        "`init` beside it, what calling it gives.",
    )
    run: dict[str, object] = Field(default={}, description="Arguments of `run`, without `storage`.")
    columns: dict[str, ColumnType] = Field(
        default={},
        description="Types of the columns that it adds or whose type it changes. Columns named by an "
        "argument `output_…` of `run` are JSON, which holds any value, without being told here.",
    )
    splits: bool | None = Field(
        default=None,
        description="True where it writes several rows for one; they are called `<row_id>/<n>`. Default: as "
        "known of the class, else false.",
    )
    one_by_one: bool = Field(
        default=False,
        description="Give it one row at a time, so that rows can be followed that lose their `row_id`.",
    )
    scope: Scope | None = Field(
        default=None,
        description="`row`: rows are independent; `batch`: it gets each batch as a whole; `dataset`: it "
        "needs all rows, so that the pipeline has `batch_rows: null`. Default: `dataset` for "
        "deduplication and the like, else `row`.",
    )

    @field_validator("columns")
    @classmethod
    def _not_reserved(cls, columns: dict[str, ColumnType]) -> dict[str, ColumnType]:
        if taken := [name for name in columns if name in RESERVED_COLUMNS or not name]:
            raise ValueError(f"reserved column names: {', '.join(map(repr, taken))}")
        return columns

    @field_validator("init", "run")
    @classmethod
    def _has_no_storage(cls, given: dict[str, object], info: ValidationInfo) -> dict[str, object]:
        if "storage" in given:
            raise ValueError("the storage is given by the pipeline; leave it out")
        return given

    @model_validator(mode="after")
    def _goes_one_by_one(self) -> "OpenDCAIParams":
        if self.one_by_one and self.scope not in (None, "row"):
            raise ValueError(
                f"one_by_one gives it one row at a time, which scope {self.scope!r} does not allow"
            )
        return self


class OpenDCAIOperator(Operator):
    """An operator that runs a class of open-dataflow in memory."""

    Params = OpenDCAIParams

    def __init__(self, params: OpenDCAIParams) -> None:
        super().__init__(params)
        name = params.operator.replace(":", ".").rpartition(".")[2]
        self.splits = name in _SPLITTING if params.splits is None else params.splits

    def __reduce__(self) -> tuple[type["OpenDCAIOperator"], tuple[OpenDCAIParams]]:
        """Another process makes its own instances."""
        return type(self), (self._own,)

    @property
    def _own(self) -> OpenDCAIParams:
        """The parameters, for a subclass that declares `params` as its own type."""
        return cast(OpenDCAIParams, self.params)

    @property
    def row_scope(self) -> Scope:
        """Which rows it must get at once."""
        known = any(word in self._own.operator for word in _LOOKS_AT_ALL) and not self._own.one_by_one
        return self._own.scope or ("dataset" if known else "row")

    @property
    def label(self) -> str:
        """The class, for messages."""
        return self._own.operator.replace(":", ".").rpartition(".")[2]

    @cached_property
    def declared(self) -> Declared | None:
        """What the class says of itself; None where open-dataflow or the class is not there."""
        try:
            return declared(find_place(self._own.operator))
        except ConfigError:
            return None

    def _values(self) -> Mapping[str, object]:
        """The arguments of `run`, defaults included where they are known."""
        if self.declared is None:
            return self._own.run
        values = self.declared.run.values(self._own.run)
        label = self.declared.label
        return values if label is None or values.get("output_key") else {**values, "output_key": label}

    def reads(self) -> list[str]:
        """The columns that the given arguments `input_…` name, and `input_key` also by its default."""
        given = {**self._own.run, "input_key": self._values().get("input_key")}
        found = [value for name, value in given.items() if name.startswith("input_")]
        names = [name for value in found for name in (value if isinstance(value, list) else [value])]
        return list(dict.fromkeys(name for name in names if isinstance(name, str) and name))

    def writes(self) -> Schema:
        """The columns that the arguments `output_…` name, defaults included, and the declared ones."""
        named = (value for name, value in self._values().items() if name.startswith("output_"))
        outputs: Schema = {name: "json" for name in named if isinstance(name, str) and name}
        return {**outputs, **self._own.columns}

    def output_schema(self, schema: Schema) -> Schema:
        """A column that was there keeps its type unless another is declared."""
        new: Schema = {name: kind for name, kind in self.writes().items() if name not in schema}
        return {**schema, **new, **self._own.columns}

    def touched(self, schema: Schema) -> set[str]:
        """Every column but `row_id`: it may change any."""
        return set(self.output_schema(schema)) - {ROW_ID}

    def identity(self) -> Mapping[str, object]:
        """The version of open-dataflow, or the hash of the file of a class of one's own."""
        return self._identity

    @cached_property
    def _identity(self) -> Mapping[str, object]:
        """Taken once, so that a file that is edited during a run counts for the next one."""
        if self.declared is None or self.declared.place.is_of_package:
            return {"package": f"{DISTRIBUTION} {version_of(DISTRIBUTION)}"}
        return {"source": hashlib.sha256(self.declared.place.file.read_bytes()).hexdigest()}

    def needed_packages(self) -> Mapping[str, str]:
        """What its rows are handed over in."""
        return {"pandas": "pandas"}

    def check_ready(self) -> None:
        """Raises ConfigError without open-dataflow, the class, a package that it imports, or an argument."""
        super().check_ready()
        if not is_installed():
            raise ConfigError(
                f"operator {self.name!r} needs {DISTRIBUTION}, which is not installed; run `pip install "
                f"{DISTRIBUTION}`, or with `--no-deps` and the packages that its operators import"
            )
        found = declared(find_place(self._own.operator))
        servings = self.given_servings(found)
        init = {**self._own.init, **dict.fromkeys(servings, "")}
        label = f"{DISTRIBUTION}'s {found.place.name}"
        problems = found.init.problems(init, label) + found.run.problems(self._own.run, f"{label}.run")
        if problems:
            raise ConfigError(problems)
        if missing := found.missing_packages():
            raise ConfigError(
                f"{label} imports {' and '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not "
                f"installed; run `pip install {' '.join(missing)}`, or what brings them"
            )

    @abstractmethod
    def given_servings(self, found: Declared) -> list[str]:
        """The arguments of the class that the pipeline gives: servings. Raises ConfigError."""

    def made(self, servings: Mapping[str, object]) -> Any:
        """An instance of the class. Raises ConfigError where it cannot be loaded, RunError, not made."""
        init = {name: object_of(value) for name, value in self._own.init.items()}
        loaded = made_class(self._own.operator)
        try:
            return loaded(**init, **servings)
        except (Exception, SystemExit) as error:
            raise RunError(
                f"{self.label} of {DISTRIBUTION} cannot be made: {type(error).__name__}: {error}; look at "
                "the step's `init`"
            ) from error


def object_of(value: object) -> object:
    """The value, with `{object: path}` as that object, and `{object: path, init: {…}}` as what it gives."""
    if isinstance(value, list):
        return [object_of(inner) for inner in value]
    if not isinstance(value, Mapping):
        return value
    if "object" not in value or not set(value) <= {"object", "init"}:
        return {name: object_of(inner) for name, inner in value.items()}
    module, _, name = str(value["object"]).replace(":", ".").rpartition(".")
    _quiet()
    loaded = import_object(f"{module}:{name}")
    if "init" not in value:
        return loaded
    arguments = cast("Mapping[str, object]", value["init"])
    return cast(Any, loaded)(**{key: object_of(inner) for key, inner in arguments.items()})


def made_class(path: str) -> Any:
    """The class, imported. Its package loads modules in a way that two threads at once would break."""
    place = find_place(path)
    with _loading:
        try:
            _quiet()
            loaded = getattr(importlib.import_module(place.module), place.name)
            storage = importlib.import_module(f"{PACKAGE}.utils.storage")
        except (Exception, SystemExit) as error:
            raise ConfigError(
                f"{place.path} cannot be loaded: {type(error).__name__}: {error}; install what its module "
                "imports"
            ) from error
        storage.DataFlowStorage.register(MemoryStorage)
        _hush()
        return loaded


def _quiet() -> None:
    """Its log of each call goes to standard output, where our own is; DF_LOGGING_LEVEL has it back."""
    os.environ.setdefault("DF_LOGGING_LEVEL", "ERROR")


def _hush() -> None:
    """Takes the progress bars and the prints of each call from the package's modules: batches are told of."""
    for name, module in list(sys.modules.items()):
        if not name.startswith(f"{OPERATORS}.") or "__file__" not in vars(module):
            continue
        words = vars(module)
        if callable(words.get("tqdm")) and not isinstance(words["tqdm"], partial):
            words["tqdm"] = partial(words["tqdm"], disable=True)
        words["print"] = _say_nothing


def _say_nothing(*words: object, **options: object) -> None:
    """What `print` is in modules of the package."""
