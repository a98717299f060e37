"""The image: its Dockerfile, what it is configured with, and what it is built from."""

import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest

from conftest import ROOT
from tools import Refused, Tool, tool

DOCKERFILE = "deploy/docker/Dockerfile"


def check(tree: Path, hadolint: Tool, overtake: Tool) -> None:
    """Everything that must hold of the image that this tree describes."""
    hadolint("--no-color", "--config", "/dev/null", tree / DOCKERFILE)
    text = (tree / DOCKERFILE).read_text()
    config = tree / "deploy/docker/overtake.toml"
    overtake("config", "check", "--no-files", "--config", config)
    versions(tree, text)
    assert 'ARG FEATURES="kafka"\n' in text, "it has no Kafka, and docs/docker.md says that it has"
    ports(text, tomllib.loads(config.read_text()))
    commands(text, overtake)


def versions(tree: Path, text: str) -> None:
    channel = tomllib.loads((tree / "rust-toolchain.toml").read_text())["toolchain"]["channel"]
    assert re.search(rf"^FROM \S+/rust:{re.escape(channel)}-", text, re.M), f"not built with Rust {channel}"
    version = tomllib.loads((tree / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    assert f"ARG VERSION={version}\n" in text, f"not version {version}"


def ports(text: str, config: dict) -> None:
    exposed = set(re.search(r"^EXPOSE (.*)$", text, re.M)[1].split())
    listen = [config[section]["listen"].rsplit(":", 1) for section in ("amqp", "http")]
    assert exposed == {port for _, port in listen}, "EXPOSE and overtake.toml differ"
    assert {address for address, _ in listen} == {"0.0.0.0"}, "nobody outside the container reaches it"


def commands(text: str, overtake: Tool) -> None:
    """What the image runs, asked for its help: words that the binary does not know are refused."""
    health = json.loads(re.search(r"^HEALTHCHECK .*CMD (\[.*\])$", text, re.M)[1])
    entry, words = (json.loads(re.search(rf"^{name} (\[.*\])$", text, re.M)[1]) for name in ("ENTRYPOINT", "CMD"))
    for first, *rest in (health, entry + words):
        assert first == "overtake"
        overtake(*rest, "--help")


def context(tree: Path) -> None:
    """What the binary is made of is not ignored: cargo found it out, and says it as make does, behind a colon."""
    kept = [line[1:] for line in (tree / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    _, files = tool("OVERTAKE_BINARY").with_suffix(".d").read_text().split(": ", 1)
    ours = [Path(file).relative_to(ROOT) for file in shlex.split(files) if Path(file).is_relative_to(ROOT)]
    assert len(ours) > 100
    missing = [str(file) for file in ours if not any(file.is_relative_to(path) for path in kept)]
    assert not missing


def test_the_dockerfile_and_what_it_says_are_right(tree, hadolint, overtake):
    check(tree, hadolint, overtake)


def test_what_the_compiler_reads_is_in_the_context(tree):
    context(tree)


def test_a_context_that_lacks_something_is_found(broken):
    with pytest.raises(AssertionError, match="crates/"):
        context(broken(".dockerignore", "!crates\n", ""))


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        (DOCKERFILE, "USER 10001:10001", "USER root"),
        (DOCKERFILE, "--no-install-recommends ", ""),
        (DOCKERFILE, "rust:1.", "rust:0."),
        (DOCKERFILE, 'FEATURES="kafka"', 'FEATURES=""'),
        (DOCKERFILE, "EXPOSE 5672 15672", "EXPOSE 5672"),
        (DOCKERFILE, '"--live"', '"--alive"'),
        (DOCKERFILE, 'CMD ["serve"]', 'CMD ["server"]'),
        ("deploy/docker/overtake.toml", "listen =", "listens ="),
        ("deploy/docker/overtake.toml", "0.0.0.0:5672", "127.0.0.1:5672"),
    ],
)
def test_what_is_broken_is_found(broken, hadolint, overtake, file, old, new):
    with pytest.raises((Refused, AssertionError)):
        check(broken(file, old, new), hadolint, overtake)
