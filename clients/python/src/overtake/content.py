"""What a message says, however it came."""

from __future__ import annotations

import json
from typing import Any


class Content:
    """A body, and how to read it."""

    __slots__ = ()

    body: bytes
    """The content."""

    @property
    def text(self) -> str:
        """The body as UTF-8."""
        return self.body.decode()

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)
