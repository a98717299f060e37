"""A line to a broker that ends connections at chosen moments of the login, or answers in the broker's place."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections import deque
from typing import Self

from .broker import Line


def method(class_id: int, method_id: int, arguments: bytes) -> bytes:
    """A frame with a method, on the connection's own channel."""
    payload = struct.pack(">HH", class_id, method_id) + arguments
    return struct.pack(">BHI", 1, 0, len(payload)) + payload + b"\xce"


def close(code: int, text: str) -> bytes:
    """The frame by which a broker closes a connection."""
    return method(10, 50, struct.pack(">HB", code, len(text)) + text.encode() + b"\0\0\0\0")


#: Each is what comes of one connection: how many frames of the broker are let through (a fraction: the next one is cut in its middle), and
#: what is said then in the broker's place.
START, TUNE = 1.0, 2.0
CUTS: dict[str, tuple[float, bytes]] = {
    "after the protocol header": (0.0, b""),
    "after start-ok": (START, b""),
    "after tune": (TUNE, b""),
    "in the middle of a frame": (1.5, b""),
    "the broker is stopping": (START, close(320, "CONNECTION_FORCED - broker forced connection closure")),
    "logins are crowded": (START, close(506, "RESOURCE_ERROR - login not checked (PLAIN); too many logins wait")),
    "a proxy answers": (0.0, b"HTTP/1.1 503 Service Unavailable\r\n\r\n"),
}


class CuttingLine(Line):
    """Of the next connections each is cut as it is said; those that come then go through."""

    def __init__(self, url: str) -> None:
        self._cuts: deque[tuple[float, bytes]] = deque()
        self._cut_count = 0
        self._done = threading.Condition()
        super().__init__(url)

    def cut_next(self, *cuts: tuple[float, bytes]) -> None:
        """Cuts the next connections like this."""
        with self._done:
            self._cuts.extend(cuts)

    def wait_for_cuts(self, wanted: int) -> None:
        """Waits until so many connections were cut."""
        with self._done:
            self._done.wait_for(lambda: self._cut_count >= wanted)

    def __enter__(self) -> Self:
        return self

    def _answer(self, ours: socket.socket, theirs: socket.socket) -> None:
        with self._done:
            cut = self._cuts.popleft() if self._cuts else None
        if cut is None:
            super()._answer(ours, theirs)
            return
        frames, said = cut
        with contextlib.suppress(OSError):
            data = _forward(theirs, ours, b"", frames)
            if said:
                # In place of the broker's answer something else is said.
                _read(theirs, data, int(frames) + 1)
                ours.sendall(said)
            if said.startswith(b"\x01"):
                while theirs.recv(65536):
                    pass  # Until the client agrees and hangs up.
        with self._done:
            self._cut_count += 1
            self._done.notify_all()
        for each in (ours, theirs):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


def _read(source: socket.socket, data: bytes, frames: float) -> bytes:
    """Reads until so many frames are there."""
    while len(data) < _length(data, frames):
        piece = source.recv(65536)
        if not piece:
            break
        data += piece
    return data


def _forward(source: socket.socket, sink: socket.socket, data: bytes, frames: float) -> bytes:
    """Passes so many frames on, each as it comes."""
    whole = 0.0
    while whole < frames:
        whole = min(whole + 1, frames)
        before = _length(data, whole - 1 if whole == int(whole) else int(whole))
        data = _read(source, data, whole)
        sink.sendall(data[before : _length(data, whole)])
    return data


def _length(data: bytes, frames: float) -> int:
    """How many bytes so many frames have, as far as they can be told: at least one more than there are while a header is missing."""
    at = 0
    while frames > 0:
        if len(data) < at + 7:
            return at + 7
        whole = 8 + struct.unpack_from(">I", data, at + 3)[0]
        at += whole if frames >= 1 else whole // 2
        frames -= 1
    return at
