"""Brokers of the tests' own, a line that can be cut, and the user guest."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path
from typing import Any, Self

import httpx2

#: The frame that only says that somebody is there.
HEARTBEAT = b"\x08\x00\x00\x00\x00\x00\x00\xce"

#: A guard against hanging; it takes a tenth of a second.
START_MAX_S = 60


class Guest(httpx2.Client):
    """The user guest, who asks over HTTP."""

    def __init__(self, base: str, **options: Any) -> None:
        super().__init__(base_url=base, auth=httpx2.BasicAuth("guest", "guest"), timeout=60, **options)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """What the broker answers; it must not refuse."""
        response = self.request(method, path, json=body)
        assert response.is_success, f"{method} {path}: {response.status_code} {response.text}"
        return response.json() if response.content else None


class Broker:
    """A broker on free ports, which keeps its ports and its data when it is started again."""

    def __init__(self, directory: Path, *options: str) -> None:
        self._directory = directory
        self._options = options
        self._ports = {"amqp": "127.0.0.1:0", "http": "127.0.0.1:0"}
        self._process: subprocess.Popen[bytes] | None = None
        self.urls: dict[str, str] = {}
        self.start()

    @property
    def amqp(self) -> str:
        """Where it speaks AMQP."""
        return self.urls["amqp"]

    @property
    def http(self) -> str:
        """Where it serves HTTP."""
        return self.urls["http"]

    def start(self, *, empty: bool = False) -> None:
        """Starts it, also with nothing that it had, and waits until it says where it listens."""
        if empty:
            shutil.rmtree(self._directory / "data")
        said = self._directory / "ports.json"
        said.unlink(missing_ok=True)
        command = [os.environ["OVERTAKE_BINARY"], "serve"]
        command += ["--http", self._ports["http"], "--amqp", self._ports["amqp"]]
        command += ["--data-dir", str(self._directory / "data"), "--ports-file", str(said), *self._options]
        with open(self._directory / "log", "ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        end = time.monotonic() + START_MAX_S
        while not (said.exists() and said.read_text().strip()):
            assert self._process.poll() is None, (self._directory / "log").read_text()
            assert time.monotonic() < end, "the broker does not start"
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(0.01)
        for protocol, its in json.loads(said.read_text()).items():
            if isinstance(its, dict):
                self.urls[protocol] = its["url"]
                self._ports[protocol] = its["address"]

    def kill(self) -> None:
        """Ends it as a power cut does."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            assert self._process.wait(START_MAX_S) == 0
        assert "panicked at" not in (self._directory / "log").read_text()


class Line:
    """A line to a broker, which can be cut, held and silenced."""

    def __init__(self, url: str) -> None:
        head, _, rest = url.partition("://")
        address, _, self._path = rest.partition("/")
        host, _, port = address.rpartition("@")[2].rpartition(":")
        self._target = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = []
        self._changed = threading.Condition()
        self._is_held = False
        self._silent: set[socket.socket] = set()
        self._heartbeats = 0
        self.connections = 0
        self.url = f"{head}://127.0.0.1:{self._listener.getsockname()[1]}/{self._path}"
        threading.Thread(target=self._listen, daemon=True).start()

    def cut(self) -> None:
        """Cuts what is connected; who connects again gets a new line."""
        with self._changed:
            sockets, self._sockets = self._sockets, []
        for each in sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def hold(self) -> None:
        """From now on what the broker says waits."""
        self._is_held = True

    def release(self) -> None:
        """It comes."""
        with self._changed:
            self._is_held = False
            self._changed.notify_all()

    def fall_silent(self) -> None:
        """Of what is connected now nothing comes from the broker any more."""
        with self._changed:
            self._silent.update(self._sockets)

    def wait_for_connections(self, wanted: int) -> None:
        """Waits until so many have come."""
        with self._changed:
            self._changed.wait_for(lambda: self.connections >= wanted)

    def wait_for_heartbeats(self, wanted: int) -> bool:
        """Waits until so many have gone to the broker."""
        with self._changed:
            return self._changed.wait_for(lambda: self._heartbeats >= wanted)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
        # To close it would not wake who accepts.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def _listen(self) -> None:
        while True:
            try:
                ours, _ = self._listener.accept()
                theirs = socket.create_connection(self._target)
            except OSError:
                return
            with self._changed:
                self._sockets += [ours, theirs]
                self.connections += 1
                self._changed.notify_all()
            for pump in (self._ask, self._answer):
                threading.Thread(target=pump, args=(ours, theirs), daemon=True).start()

    def _ask(self, ours: socket.socket, theirs: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := ours.recv(65536):
                theirs.sendall(data)
                with self._changed:
                    self._heartbeats += data == HEARTBEAT
                    self._changed.notify_all()
        _hang_up(ours, theirs)

    def _answer(self, ours: socket.socket, theirs: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := theirs.recv(65536):
                with self._changed:
                    self._changed.wait_for(lambda: not self._is_held)
                if theirs not in self._silent:
                    ours.sendall(data)
        _hang_up(ours, theirs)


def _hang_up(*sockets: socket.socket) -> None:
    for each in sockets:
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
