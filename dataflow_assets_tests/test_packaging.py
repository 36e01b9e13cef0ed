import ast
import configparser
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

TREE = Path(__file__).parents[1]
PACKAGE = TREE / "dataflow_assets"
HEAVY = ("datasets", "ray", "torch", "transformers")
MODULES = {
    "dotenv": "python-dotenv",
    "yaml": "pyyaml",
    "dagster_ray": "dagster-ray",
    "clickhouse_connect": "clickhouse-connect",
    "json_repair": "json-repair",
    "backports": "backports-zstd",
    "ahocorasick": "pyahocorasick",
    "mlflow": "mlflow-skinny",
    "opentelemetry": "opentelemetry-sdk",
    "prometheus_client": "prometheus-client",
    "presidio_analyzer": "presidio-analyzer",
}


def settings() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(TREE / "setup.cfg")
    return parser


def names(requirements: str) -> set[str]:
    return {re.split(r"[<>=\[ ]", line)[0].lower() for line in requirements.split("\n") if line}


def core() -> set[str]:
    return names(settings()["options"]["install_requires"])


def extras() -> set[str]:
    return set().union(*(names(lines) for lines in settings()["options.extras_require"].values()))


def imported(node: ast.AST) -> list[str]:
    """The top-level packages that an import statement names."""
    if isinstance(node, ast.Import):
        return [alias.name.partition(".")[0] for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return [node.module.partition(".")[0]]
    return []


def third_party(folder: Path) -> set[str]:
    trees = (ast.parse(file.read_text("utf-8")) for file in folder.rglob("*.py"))
    modules = {name for tree in trees for node in ast.walk(tree) for name in imported(node)}
    ours = {"dataflow_assets", "dataflow_assets_tests", "benchmarks"}
    return {MODULES.get(name, name) for name in modules - set(sys.stdlib_module_names) - ours}


def python(*arguments: str, cwd: Path = TREE) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, *arguments], cwd=cwd, capture_output=True, text=True, timeout=300)


def pins() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in (TREE / "constraints.txt").read_text().splitlines():
        if not line.startswith("#"):
            name, _, version = line.partition("==")
            found.setdefault(name, []).append(version)
    return found


def test_every_import_of_the_package_is_declared():
    assert third_party(PACKAGE) <= core() | extras()


def test_the_core_declares_what_it_imports_and_the_web_server_alone_besides():
    assert core() == third_party(PACKAGE) - extras() | {"dagster-webserver"}


def test_every_import_of_the_tests_is_declared():
    assert third_party(TREE / "dataflow_assets_tests") - {"sre_parse"} <= core() | extras()


def test_all_extras_come_with_the_tests():
    declared = settings()["options.extras_require"]
    (own,) = [line for line in declared["test"].splitlines() if line.startswith("dataflow_assets[")]
    without = {"test", "pii"}  # the models that Presidio wants are on no package index
    assert own == f"dataflow_assets[{','.join(sorted(set(declared) - without))}]"


def test_every_declared_package_is_pinned():
    wanted = {name.replace("_", "-") for name in core() | extras()} - {"dataflow-assets"}
    assert wanted <= set(pins())


@pytest.mark.parametrize("line", (TREE / "constraints.txt").read_text().splitlines())
def test_a_constraint_is_one_public_version(line: str):
    assert re.fullmatch(r'[a-z0-9-]+==[0-9a-z.]+( ; python_version (<|>=) "3\.11")?|# .*', line)


def test_torch_is_the_version_with_a_small_build():
    assert pins()["torch"] == ["2.13.0"]


def test_the_minor_version_of_dagster_is_pinned():
    assert "dagster>=1.13,<1.14" in settings()["options"]["install_requires"]
    assert pins()["dagster"][0].startswith("1.13.")


def test_the_changelog_tells_of_this_version():
    version = settings()["metadata"]["version"]
    assert f"\n## [{version}] - " in (TREE / "CHANGELOG.md").read_text("utf-8")


def test_the_definitions_load_without_anything_heavy():
    code = f"import sys, dataflow_assets.definitions; print([m for m in {HEAVY} if m in sys.modules])"
    done = python("-c", code)
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr


def test_help_needs_no_dagster():
    code = "import sys, dataflow_assets.cli.main; print('dagster' in sys.modules)"
    assert python("-c", code).stdout == "False\n"


def test_the_module_is_the_command():
    done = python("-m", "dataflow_assets", "--help")
    assert done.returncode == 0
    assert "Exit codes: 0 all done" in done.stdout


def test_a_wheel_holds_every_file_of_the_package(tmp_path: Path):
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(TREE / name, tmp_path)
    shutil.copytree(PACKAGE, tmp_path / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
    done = python("-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", ".", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    stored = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    files = {str(file.relative_to(TREE)) for file in PACKAGE.rglob("*") if file.is_file()}
    assert stored == {file for file in files if "__pycache__" not in file}
