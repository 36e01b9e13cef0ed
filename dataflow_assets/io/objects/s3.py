"""Objects in S3, or a store that speaks as it does, through boto3.

Credentials, region and endpoint come from where boto3 takes them: the environment (AWS_ACCESS_KEY_ID,
AWS_ENDPOINT_URL, …), its files, or the machine's role.
"""

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

from dataflow_assets.io.objects.retries import retried
from dataflow_assets.io.objects.store import Conflict, Entry, Found

PART_BYTES = 16 << 20
AT_ONCE = 16
_TIMEOUT_S = 60
_PASSING_CODES = {
    "SlowDown",
    "RequestTimeout",
    "Throttling",
    "ThrottlingException",
    "ConditionalRequestConflict",
}
_Result = TypeVar("_Result")


class S3Store:
    """The objects of one bucket."""

    def __init__(self, bucket: str) -> None:
        self.bucket = bucket
        self._guard = threading.Lock()

    @cached_property
    def _client(self) -> Any:
        import boto3
        from botocore.config import Config

        config = Config(
            retries={"total_max_attempts": 1},  # tried again here, one way for all that can go wrong
            connect_timeout=10,
            read_timeout=_TIMEOUT_S,
            max_pool_connections=2 * AT_ONCE,
        )
        return boto3.client("s3", config=config)

    def _ask(self, name: str, attempt: Callable[[Any], _Result]) -> _Result:
        with self._guard:
            client = self._client

        def asked() -> _Result:
            try:
                return attempt(client)
            except Exception as error:
                if _status(error) == 404 and _code(error) in ("NoSuchKey", "404", "NotFound"):
                    raise FileNotFoundError(name) from error
                raise

        return retried(f"s3://{self.bucket}/{name}", asked, _may_pass, _reason)

    def listed(self, prefix: str) -> dict[str, Entry]:
        """Folder by folder at the same time: a listing gives a thousand names a call."""
        entries: dict[str, Entry] = {}
        folders: list[str] = []
        for page in self._pages(prefix, Delimiter="/"):
            entries.update(_entries(page))
            folders += [found["Prefix"] for found in page.get("CommonPrefixes", ())]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for found in pool.map(self._below, folders):
                entries.update(found)
        return entries

    def _below(self, prefix: str) -> dict[str, Entry]:
        return {name: entry for page in self._pages(prefix) for name, entry in _entries(page).items()}

    def _pages(self, prefix: str, **more: str) -> Iterator[dict]:
        token: dict[str, str] = {}
        while True:
            ask = partial(_list_page, self.bucket, prefix, {**more, **token})
            page = self._ask(prefix, ask)
            yield page
            if not page.get("IsTruncated"):
                return
            token = {"ContinuationToken": page["NextContinuationToken"]}

    def get(self, name: str) -> Found:
        """A whole object, with its age by the store's clock."""

        def attempt(client: Any) -> Found:
            answer = client.get_object(Bucket=self.bucket, Key=name)
            return Found(answer["Body"].read(), answer["ETag"], _age_s(answer))

        return self._ask(name, attempt)

    def get_file(self, name: str, to: Path) -> str:
        """Streams the object to the file."""

        def attempt(client: Any) -> str:
            answer = client.get_object(Bucket=self.bucket, Key=name)
            with open(to, "wb") as file:
                for block in answer["Body"].iter_chunks(1 << 20):
                    file.write(block)
            return answer["ETag"]

        return self._ask(name, attempt)

    def put(self, name: str, data: bytes, expected: str | None = None) -> str:
        """One request, with `If-None-Match` or `If-Match`."""
        condition = {} if expected is None else {"IfMatch": expected} if expected else {"IfNoneMatch": "*"}

        def attempt(client: Any) -> str:
            try:
                return client.put_object(Bucket=self.bucket, Key=name, Body=data, **condition)["ETag"]
            except Exception as error:
                if _status(error) == 412 or (
                    expected and _status(error) == 404 and _code(error) == "NoSuchKey"
                ):
                    raise Conflict(name) from None
                raise

        try:
            return self._ask(name, attempt)
        except Conflict:
            return self._as_put_before(name, data)

    def _as_put_before(self, name: str, data: bytes) -> str:
        """The ETag where these bytes are there: an answer that was lost, after which the put was repeated."""
        try:
            found = self.get(name)
        except FileNotFoundError:
            raise Conflict(name) from None
        if found.data != data:
            raise Conflict(name) from None
        return found.etag

    def put_file(self, name: str, path: Path) -> str:
        """One request, or parts of 16 MiB at the same time."""
        if os.path.getsize(path) <= PART_BYTES:
            return self.put(name, path.read_bytes())
        place = {"Bucket": self.bucket, "Key": name}
        upload = self._ask(name, lambda client: client.create_multipart_upload(**place)["UploadId"])
        starts = range(0, os.path.getsize(path), PART_BYTES)
        with ThreadPoolExecutor(AT_ONCE // 2) as pool:
            send = partial(self._put_part, {**place, "UploadId": upload}, path)
            parts = list(pool.map(send, range(1, len(starts) + 1), starts))
        done = {"UploadId": upload, "MultipartUpload": {"Parts": parts}}
        return self._ask(name, lambda client: client.complete_multipart_upload(**place, **done)["ETag"])

    def _put_part(self, upload: dict[str, str], path: Path, number: int, start: int) -> dict[str, object]:
        with open(path, "rb") as file:
            file.seek(start)
            data = file.read(PART_BYTES)

        def attempt(client: Any) -> str:
            return client.upload_part(**upload, PartNumber=number, Body=data)["ETag"]

        return {"PartNumber": number, "ETag": self._ask(upload["Key"], attempt)}

    def remove(self, name: str) -> None:
        """Removes an object that may not be there."""
        self._ask(name, lambda client: client.delete_object(Bucket=self.bucket, Key=name))

    def abort_uploads(self, prefix: str) -> int:
        """A killed upload in parts is paid for until it is aborted."""
        found = self._ask(
            prefix, lambda client: client.list_multipart_uploads(Bucket=self.bucket, Prefix=prefix)
        )
        uploads = found.get("Uploads", ())
        for upload in uploads:
            place = {"Bucket": self.bucket, "Key": upload["Key"], "UploadId": upload["UploadId"]}
            self._ask(upload["Key"], partial(_abort, place))
        return len(uploads)


def _list_page(bucket: str, prefix: str, more: dict[str, str], client: Any) -> dict:
    return client.list_objects_v2(Bucket=bucket, Prefix=prefix, **more)


def _abort(place: dict[str, str], client: Any) -> None:
    client.abort_multipart_upload(**place)


def _entries(page: dict) -> dict[str, Entry]:
    return {found["Key"]: Entry(found["Size"], found["ETag"]) for found in page.get("Contents", ())}


def _age_s(answer: dict) -> float | None:
    """By the store's clock alone: the time of its answer less the time at which it took the object."""
    from email.utils import parsedate_to_datetime

    said = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
    return (parsedate_to_datetime(said) - answer["LastModified"]).total_seconds() if said else None


def _status(error: Exception) -> int:
    answer: dict = getattr(error, "response", None) or {}
    return answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)


def _code(error: Exception) -> str:
    answer: dict = getattr(error, "response", None) or {}
    return str(answer.get("Error", {}).get("Code", ""))


def _may_pass(error: Exception) -> bool:
    """Answers of 5xx and 429, time-outs, and connections that break, before or in the middle of a body."""
    from botocore.exceptions import (
        ClientError,
        EndpointConnectionError,
        HTTPClientError,
        IncompleteReadError,
        ResponseStreamingError,
    )
    from urllib3.exceptions import HTTPError

    if isinstance(error, Conflict):
        raise error
    if isinstance(error, ClientError):
        return _status(error) >= 500 or _status(error) == 429 or _code(error) in _PASSING_CODES
    broken = (
        HTTPClientError,
        EndpointConnectionError,
        IncompleteReadError,
        ResponseStreamingError,
        HTTPError,
    )
    return isinstance(error, (*broken, ConnectionError))


def _reason(error: Exception) -> str:
    """What the store said, and what to do; raises what is no error of a store."""
    from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError
    from urllib3.exceptions import HTTPError

    if isinstance(error, NoCredentialsError):
        return "no credentials were found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile"
    if isinstance(error, ClientError):
        hint = {"NoSuchBucket": "; make the bucket", "AccessDenied": "; give permission"}
        return f"{_status(error)} {_code(error)}{hint.get(_code(error), '')}"
    if isinstance(error, (BotoCoreError, HTTPError, ConnectionError)):
        return type(error).__name__
    raise error
