"""Where the broker is: one URL for AMQP, and where its HTTP is unless somebody says so."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit

__all__ = ["Address"]

_AMQP_PORTS = {"amqp": 5672, "amqps": 5671}
_HTTP_OF = {"amqp": ("http", 15672), "amqps": ("https", 15671)}


@dataclass(frozen=True, slots=True)
class Address:
    """A broker, a user, and a virtual host."""

    host: str
    port: int
    user: str
    password: str
    vhost: str
    is_tls: bool
    http: str
    """Where HTTP is served, without a path."""

    @classmethod
    def parse(cls, url: str, http: str | None = None) -> Address:
        """`amqp://user:password@host:port/vhost`, or `amqps://…`; what is missing is as for RabbitMQ's clients."""
        parts = urlsplit(url)
        if parts.scheme not in _AMQP_PORTS:
            raise ValueError(f"an address begins with amqp:// or amqps://, not with {parts.scheme or url!r}")
        host = parts.hostname or "localhost"
        scheme, port = _HTTP_OF[parts.scheme]
        bracketed = f"[{host}]" if ":" in host else host
        if http is not None and urlsplit(http).scheme not in ("http", "https"):
            raise ValueError(f"http= begins with http:// or https://, not {http!r}")
        return cls(
            host=host,
            port=parts.port or _AMQP_PORTS[parts.scheme],
            user=unquote(parts.username) if parts.username is not None else "guest",
            password=unquote(parts.password) if parts.password is not None else "guest",
            vhost=unquote(parts.path[1:]) or "/",
            is_tls=parts.scheme == "amqps",
            http=(http or f"{scheme}://{bracketed}:{port}").rstrip("/"),
        )

    @property
    def where(self) -> str:
        """Host and port, for people: nothing secret."""
        return f"{self.host}:{self.port}"

    def amqp(self, *, heartbeat: int, name: str, external: bool) -> str:
        """The URL for aio-pika."""
        scheme = "amqps" if self.is_tls else "amqp"
        host = f"[{self.host}]" if ":" in self.host else self.host
        login = f"{quote(self.user, safe='')}:{quote(self.password, safe='')}"
        auth = "&auth=external" if external else ""
        return (
            f"{scheme}://{login}@{host}:{self.port}/{quote(self.vhost, safe='')}"
            f"?heartbeat={heartbeat}&name={quote(name, safe='')}{auth}"
        )
