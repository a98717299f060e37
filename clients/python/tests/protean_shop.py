"""An application of protean's, with its own outbox in SQLite and its own streams; also for its command line."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from protean import Domain, handle
from protean.fields import Identifier, String

#: Where its command line finds the database and the Redis.
DATABASE, REDIS = "SHOP_DATABASE", "SHOP_REDIS"


class Shop:
    """Customers, and what becomes of their events."""

    def __init__(self, database: Path, redis_url: str, handler: Callable[[str], None] | None = None) -> None:
        config = {
            "databases": {"default": {"provider": "sqlite", "database_uri": f"sqlite:///{database}"}},
            "brokers": {"default": {"provider": "redis", "URI": redis_url}},
            "enable_outbox": True,
            "event_processing": "async",
            "outbox": {"broker": "default", "tick_interval": 0},
            "server": {
                "default_subscription_type": "stream",
                "health": {"enabled": False},
                "priority_lanes": {"enabled": True},
                "stream_subscription": {"blocking_timeout_ms": 50, "max_retries": 2, "retry_delay_seconds": 0.01},
            },
        }
        domain: Any = Domain(name="Shop", config=config)

        @domain.aggregate
        class Customer:
            name = String()

            def upgrade(self, tier: str) -> None:
                event: Any = CustomerUpdated
                self.raise_(event(customer_id=self.id, tier=tier))  # type: ignore[attr-defined]

        @domain.event(part_of=Customer)
        class CustomerUpdated:
            customer_id = Identifier()
            tier = String()

        @domain.event_handler(part_of=Customer)
        class Mails:
            @handle(CustomerUpdated)
            def on_updated(self, event: Any) -> None:
                if handler is not None:
                    handler(event.tier)

        domain.init(traverse=False)
        self.domain = domain
        self.customer: Any = Customer
        self.group = f"{Mails.__module__}.{Mails.__qualname__}"

    def create(self) -> None:
        """Its tables."""
        with self.domain.domain_context():
            for provider in self.domain.providers.values():
                provider._create_database_artifacts()

    def write(self, *tiers: str) -> None:
        """Events into its outbox, each in a transaction of its own."""
        with self.domain.domain_context():
            for tier in tiers:
                customer = self.customer(name="Ada")
                customer.upgrade(tier)
                self.domain.repository_for(self.customer).add(customer)

    def run(self) -> None:
        """Its engine, until there is nothing more to do: publishes from the outbox, and handles what its subscriptions read."""
        from protean.server import Engine

        Engine(self.domain, test_mode=True).run()

    @property
    def broker(self) -> Any:
        return self.domain.brokers["default"]


if DATABASE in os.environ:
    domain = Shop(Path(os.environ[DATABASE]), os.environ[REDIS]).domain
