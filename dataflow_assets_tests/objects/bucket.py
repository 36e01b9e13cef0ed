"""One bucket of the server, and the small project with its root there."""

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from dataflow_assets_tests.crash.command import Finished, environment, finish, start
from dataflow_assets_tests.crash.compare import final_files
from dataflow_assets_tests.crash.project import write_project

DRIVER = "dataflow_assets_tests.objects.driver"
NOT_DATA = (".lease", ".pack")
_numbers = itertools.count()


class Bucket(NamedTuple):
    """A bucket that this test alone uses."""

    endpoint: str
    name: str

    @classmethod
    def new(cls, endpoint: str) -> "Bucket":
        bucket = cls(endpoint, f"test-{next(_numbers)}")
        bucket.client().create_bucket(Bucket=bucket.name)
        return bucket

    def client(self) -> Any:
        import boto3

        settings = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "us-east-1"}
        return boto3.client("s3", endpoint_url=self.endpoint, **settings)

    def environment(self, cache: Path, **more: str) -> dict[str, str]:
        """What a machine has whose copies are in `cache`; leases there last 4 s."""
        return {
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": self.endpoint,
            "DATAFLOW_CACHE": str(cache),
            "DATAFLOW_LEASE_S": "4",
            **more,
        }

    def names(self) -> list[str]:
        pages = self.client().get_paginator("list_objects_v2").paginate(Bucket=self.name)
        return [found["Key"] for page in pages for found in page.get("Contents", ())]

    def read(self, name: str) -> bytes:
        return self.client().get_object(Bucket=self.name, Key=name)["Body"].read()

    def downloaded(self, to: Path) -> Path:
        """All that people read of the bucket, as files."""
        client = self.client()
        for name in self.names():
            if not name.endswith(NOT_DATA):
                (to / name).parent.mkdir(parents=True, exist_ok=True)
                client.download_file(self.name, name, str(to / name))
        return to

    def content(self, to: Path) -> dict[str, object]:
        """What must be equal after every run, see `final_files`."""
        return final_files(self.downloaded(to))


def write_s3_project(folder: Path, bucket: Bucket, workers: int | None = None) -> None:
    """The small project of the crash tests with its root in the bucket."""
    write_project(folder, workers=workers)
    file = folder / "four.yaml"
    file.write_text(file.read_text().replace("root: data", f"root: s3://{bucket.name}/data"))


class Machine(NamedTuple):
    """A machine with the project: a working folder and copies of its own."""

    folder: Path
    bucket: Bucket
    variables: Mapping[str, str]

    def start(self, *arguments: str, kill: str | None = None, **more: str):
        env = environment({**self.variables, **more})
        if kill is None:
            return start(self.folder, *arguments, env=env)
        return start(self.folder, *arguments, kill=kill, env=env, driver=DRIVER)

    def run(self, *arguments: str, kill: str | None = None, **more: str) -> Finished:
        return finish(self.start("run", "four.yaml", *arguments, kill=kill, **more))

    def command(self, *arguments: str) -> Finished:
        return finish(self.start(*arguments))


def new_machine(folder: Path, bucket: Bucket, workers: int | None = None, **more: str) -> Machine:
    """A machine that has seen nothing of the bucket yet."""
    write_s3_project(folder, bucket, workers)
    return Machine(folder, bucket, bucket.environment(folder / "cache", **more))
