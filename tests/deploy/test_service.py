"""The unit, by systemd; and what the package brings besides the binary."""

import re
import tomllib
from pathlib import Path

import pytest

from tools import Refused, Tool

UNIT = "packaging/systemd/overtake.service"
DEBIAN = "packaging/debian"

# Of 100; what `systemd-analyze security` calls OK begins at 20, and a unit that says nothing has 96.
EXPOSURE_MAX = "12"


def unit(tree: Path, overtake: Tool, dir: Path) -> None:
    """What must hold of the unit. The binary is where it was built, so that systemd finds it."""
    text = (tree / UNIT).read_text()
    command = re.search(r"^ExecStart=/usr/bin/overtake (.*)$", text, re.M)
    assert command, "ExecStart does not start /usr/bin/overtake"
    overtake(*command[1].split(), "--help")
    copy = dir / "overtake.service"
    copy.write_text(text.replace("ExecStart=/usr/bin/overtake", f"ExecStart={overtake.path}"))
    said = Tool("systemd-analyze")("verify", "--recursive-errors=one", copy)
    assert said == ""
    Tool("systemd-analyze")("security", "--offline=true", f"--threshold={EXPOSURE_MAX}", copy)
    patient(text)


def patient(text: str) -> None:
    """It is not killed while it does what it does at its end."""
    wait = int(re.search(r"^TimeoutStopSec=(\d+)$", text, re.M)[1])
    assert wait >= 10 + 30, "less than server.drain_timeout_ms and half a minute"
    assert re.search(r"^Type=notify$", text, re.M), "systemd is not told when it is ready"


def package(tree: Path, overtake: Tool) -> None:
    """What must hold of the package's own files, before there is a package."""
    overtake("config", "check", "--no-files", "--config", tree / DEBIAN / "overtake.toml")
    Tool("sh")("-n", tree / DEBIAN / "postrm")
    manifest = tomllib.loads((tree / "crates/cli/Cargo.toml").read_text())["package"]["metadata"]["deb"]
    sources = [source for source, *_ in manifest["assets"]] + [manifest["changelog"], manifest["maintainer-scripts"]]
    for source in sources:
        made = source.startswith("target/release/")
        assert made or (tree / "crates/cli" / source).exists(), f"there is no {source}"
    first = (tree / manifest_path(manifest["changelog"])).read_text().splitlines()[0]
    version = tomllib.loads((tree / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    assert first.startswith(f"overtake ({version}-"), f"the changelog begins with {first}"


def manifest_path(source: str) -> str:
    """From the root, what is said from crates/cli."""
    return source.removeprefix("../../")


def test_the_unit_is_right(tree, overtake, tmp_path):
    unit(tree, overtake, tmp_path)


def test_the_package_is_described_as_it_is(tree, overtake):
    package(tree, overtake)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("overtake serve", "overtake server"),
        ("[Service]", "[Servce]"),
        ("ProtectSystem=strict", "ProtectSystem=strictly"),
        ("RestartSec=1", "RestartSecs=1"),
        ("ExecReload=/bin/kill", "ExecReload=/bin/kil"),
        ("DynamicUser=yes\nUser=overtake", "User=root"),
        ("SystemCallFilter=@system-service\nSystemCallFilter=~@privileged @resources", ""),
        ("TimeoutStopSec=60", "TimeoutStopSec=5"),
    ],
)
def test_a_unit_that_is_broken_is_found(broken, overtake, tmp_path, old, new):
    with pytest.raises((Refused, AssertionError)):
        unit(broken(UNIT, old, new), overtake, tmp_path)


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        (f"{DEBIAN}/overtake.toml", "[store]", "[store]\nmemory = 1"),
        (f"{DEBIAN}/postrm", "fi\n", ""),
        (f"{DEBIAN}/changelog", "0.1.0-1", "0.0.9-1"),
        ("crates/cli/Cargo.toml", "debian/overtake.toml", "debian/overtaken.toml"),
    ],
)
def test_a_package_that_is_broken_is_found(broken, overtake, file, old, new):
    with pytest.raises((Refused, AssertionError)):
        package(broken(file, old, new), overtake)
