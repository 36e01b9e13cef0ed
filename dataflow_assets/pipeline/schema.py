"""The JSON Schema of pipeline files, for completion and checks in an editor."""

from pydantic import BaseModel
from pydantic.errors import PydanticInvalidForJsonSchema

from dataflow_assets.operators.registry import operators
from dataflow_assets.pipeline import Pipeline

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_VARIABLE = {"type": "string", "pattern": r"\$\{"}
_TYPED = {"integer", "number", "boolean"}


def json_schema() -> dict[str, object]:
    """The schema of a pipeline file: its fields, the known operators, and the parameters of each.

    A number or boolean may also be a text with a `${VARIABLE}` in it.
    """
    schema = _with_variables(Pipeline.model_json_schema())
    definitions = schema["$defs"]
    step = definitions["Step"]
    rules = []
    for name, operator in operators().items():
        params, needed = _params(name, operator.Params, definitions)
        step_of_type = {"properties": {"params": params}, **({"required": ["params"]} if needed else {})}
        rules.append({"if": {"properties": {"type": {"const": name}}}, "then": step_of_type})
    step["properties"]["type"] = {
        **step["properties"]["type"],
        "anyOf": [{"enum": list(operators())}, {"pattern": r"^[^:]+:[^:]+$"}, _VARIABLE],
    }
    step["allOf"] = rules
    return {"$schema": _DIALECT, **schema}


def _params(name: str, model: type[BaseModel], definitions: dict) -> tuple[dict, bool]:
    """The schema of an operator's parameters, and whether it has some that are needed."""
    try:
        schema = model.model_json_schema(ref_template=f"#/$defs/{name}.{{model}}")
    except PydanticInvalidForJsonSchema:
        return {"type": "object"}, False
    schema = _with_variables(schema)
    for inner, definition in schema.pop("$defs", {}).items():
        definitions[f"{name}.{inner}"] = definition
    return schema, bool(schema.get("required"))


def _with_variables(schema: dict) -> dict:
    """The schema, where each number and boolean may also be a text with a variable in it."""
    changed = {}
    for key, value in schema.items():
        if isinstance(value, dict):
            changed[key] = _with_variables(value)
        elif isinstance(value, list):
            changed[key] = [_with_variables(item) if isinstance(item, dict) else item for item in value]
        else:
            changed[key] = value
    if isinstance(changed.get("type"), str) and changed["type"] in _TYPED:
        told = {name: changed.pop(name) for name in ("title", "description", "default") if name in changed}
        return {**told, "anyOf": [changed, _VARIABLE]}
    return changed
