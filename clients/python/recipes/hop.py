"""Hands on what comes into one queue to another, in the scope of each message, until its standard input ends.

python -m recipes.hop amqp://HOST:PORT FROM TO
"""

from __future__ import annotations

import sys

from overtake import Client, Delivery


def main(url: str, source: str, target: str) -> None:
    """The example `hop` of the library for Rust does the same."""
    with Client(url, name="hop") as client:

        def hand_on(delivery: Delivery) -> None:
            client.publish(target, delivery.body)

        with client.handle(source, hand_on, concurrency=4):
            print("ready", flush=True)
            sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
