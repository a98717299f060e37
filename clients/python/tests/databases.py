"""PostgreSQL and MariaDB of the tests' own, as Debian has them, in a directory of their own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import pytest

#: As `overtake relay init` makes it, as far as a writer sees it.
COLUMNS = """
    message_id {text} NOT NULL, stream {text} NOT NULL, type {text} NOT NULL, data {json} NOT NULL, metadata {json},
    priority integer NOT NULL DEFAULT 0, partition_key {text}, status {text} NOT NULL DEFAULT 'pending',
    attempts integer NOT NULL DEFAULT 0, next_attempt_at timestamp NULL, locked_by {text}, locked_until timestamp NULL,
    last_error {text}, created_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP, published_at timestamp NULL
"""
SQLITE = f"CREATE TABLE outbox (id integer PRIMARY KEY AUTOINCREMENT, {COLUMNS.format(text='text', json='text')})"
POSTGRES = f"CREATE TABLE outbox (id bigserial PRIMARY KEY, {COLUMNS.format(text='text', json='jsonb')})"
MARIADB = (
    f"CREATE TABLE outbox (id bigint AUTO_INCREMENT PRIMARY KEY, {COLUMNS.format(text='varchar(255)', json='json')})"
)


class _Database:
    def __init__(self, command: list[str], ready: str, directory: Path) -> None:
        self._process = subprocess.Popen(
            command,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self._process.stdout is not None
        assert any(ready in line for line in self._process.stdout), f"{command[0]} starts"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


def _program(name: str, *where: str) -> str:
    path = os.pathsep.join([os.environ.get("PATH", ""), *where, "/usr/sbin"])
    found = shutil.which(name, path=path)
    if found is None:
        assert "CI" not in os.environ, f"{name} must be there in CI"
        pytest.skip(f"{name} is not there; on Debian: apt-get install postgresql mariadb-server")
    return found


def _as_nobody(directory: Path) -> list[str]:
    """What goes before a program that does not run as root."""
    if os.geteuid() != 0:
        return []
    shutil.chown(directory, "nobody")
    return ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]


class Postgres(_Database):
    def __init__(self, directory: Path) -> None:
        bins = sorted(str(each) for each in Path("/usr/lib/postgresql").glob("*/bin"))
        initdb, postgres = _program("initdb", *bins), _program("postgres", *bins)
        before = _as_nobody(directory)
        data = str(directory / "data")
        words = [initdb, "--pgdata", data, "--username", "app", "--auth", "trust", "--no-sync", "--encoding", "UTF8"]
        subprocess.run([*before, *words], check=True, cwd=directory, stdout=subprocess.DEVNULL)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.options: dict[str, Any] = {"host": "127.0.0.1", "port": port, "user": "app"}
        self.address = f"app@127.0.0.1:{port}/postgres"
        options = ["-p", str(port), "-h", "127.0.0.1", "-k", str(directory), "-F"]
        super().__init__([*before, postgres, "-D", data, *options], "ready to accept connections", directory)


class MariaDb(_Database):
    def __init__(self, directory: Path) -> None:
        install, server = _program("mariadb-install-db"), _program("mariadbd")
        before = _as_nobody(directory)
        data = str(directory / "data")
        words = [
            install,
            "--no-defaults",
            f"--datadir={data}",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
        ]
        subprocess.run([*before, *words], check=True, cwd=directory, stdout=subprocess.DEVNULL)
        self.socket = str(directory / "socket")
        options = [f"--datadir={data}", f"--socket={self.socket}", "--skip-networking"]
        super().__init__([*before, server, "--no-defaults", *options], "ready for connections", directory)


Started = Callable[[Path], _Database]
