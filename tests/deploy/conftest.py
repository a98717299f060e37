"""What the checks share: a tree to look at, the tools that read it, and copies in which something is broken."""

import shutil
import sys
from pathlib import Path

import pytest

from tools import Tool, tool

ROOT = Path(__file__).resolve().parents[2]

# What is checked, and what it is compared with.
LOOKED_AT = ["Cargo.toml", "rust-toolchain.toml", ".dockerignore", "crates/cli/Cargo.toml", "deploy", "packaging"]


@pytest.fixture(scope="session")
def overtake() -> Tool:
    return Tool(tool("OVERTAKE_BINARY"))


@pytest.fixture(scope="session")
def helm(tmp_path_factory) -> Tool:
    home = tmp_path_factory.mktemp("helm")
    return Tool(
        tool("OVERTAKE_DEPLOY_TOOLS") / "helm",
        HELM_CACHE_HOME=str(home),
        HELM_CONFIG_HOME=str(home),
        HELM_DATA_HOME=str(home),
    )


@pytest.fixture(scope="session")
def kubectl() -> Tool:
    return Tool(tool("OVERTAKE_DEPLOY_TOOLS") / "kubectl", KUBECONFIG="/dev/null")


@pytest.fixture(scope="session")
def hadolint() -> Tool:
    return Tool(Path(sys.executable).with_name("hadolint"))


@pytest.fixture
def tree() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture
def broken(tmp_path):
    """A copy of the repository in which one text of a file is another; `None` stands for the end of the file."""

    def copy(file: str, old: str | None, new: str) -> Path:
        for path in LOOKED_AT:
            source, target = ROOT / path, tmp_path / path
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(source, target) if source.is_dir() else shutil.copy2(source, target)
        text = (tmp_path / file).read_text()
        assert old is None or old in text, f"{file} does not say {old!r} any more"
        (tmp_path / file).write_text(text + new if old is None else text.replace(old, new, 1))
        return tmp_path

    return copy
