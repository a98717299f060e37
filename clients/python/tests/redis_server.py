"""A Redis of a test's own, on a free port, in a directory of its own."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any, Self

import pytest
import redis


class RedisServer:
    """A Redis that keeps its port and its data when it is started again."""

    def __init__(self, directory: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        self._directory = directory
        self._process: subprocess.Popen[str] | None = None
        self.url = f"redis://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        """Until it answers."""
        words = [
            "redis-server",
            "--port",
            str(self.port),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--dir",
            str(self._directory),
        ]
        words += ["--appendonly", "yes", "--appendfsync", "always"]
        self._process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert self._process.stdout is not None
        assert any("Ready to accept connections" in line for line in self._process.stdout), "it starts"

    def kill(self) -> None:
        """At once, and without a word."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def ask(self, *words: Any) -> Any:
        """What it answers."""
        client = redis.Redis.from_url(self.url, protocol=2)
        client.response_callbacks.clear()
        with client:
            return client.execute_command(*words)  # type: ignore[no-untyped-call]

    def add(self, stream: str, *all_data: Any, metadata: Any = None) -> None:
        """Entries about these."""
        for data in all_data:
            self.ask("XADD", stream, "*", "data", json.dumps({"data": data, "metadata": metadata}))

    def pending(self, stream: str, group: str = "mails") -> int:
        """How many entries are handed over and not settled."""
        return int(self.ask("XPENDING", stream, group)[0])

    def blocked(self) -> int:
        """How many wait for something."""
        info = self.ask("INFO", "clients").decode()
        return int(info.partition("blocked_clients:")[2].split()[0])

    def wait_for_blocked(self, count: int = 1) -> None:
        """Until so many wait."""
        while self.blocked() != count:
            pass

    def wait_for_next_ms(self) -> None:
        """Ids are made of its time."""
        first = self._now_ms()
        while self._now_ms() == first:
            pass

    def _now_ms(self) -> int:
        seconds, micros = self.ask("TIME")
        return int(seconds) * 1000 + int(micros) // 1000

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


def needed() -> None:
    """Skips where there is no Redis; in CI there must be one."""
    if shutil.which("redis-server") is None:
        assert "CI" not in os.environ, "redis-server must be there in CI"
        pytest.skip("redis-server is not there; on Debian: apt-get install redis-server")
