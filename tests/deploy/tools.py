"""Programs that read files."""

import os
import subprocess
from pathlib import Path

import pytest


class Tool:
    """A program that reads files: what it says, and whether it is content."""

    def __init__(self, path: Path | str, **environment: str):
        self.path = str(path)
        # Nothing of the machine's own settings.
        clean = {
            name: value for name, value in os.environ.items() if not name.startswith(("OVERTAKE", "HELM_", "KUBE"))
        }
        self.environment = clean | environment

    def __call__(self, *words: str | Path, **options) -> str:
        done = subprocess.run(
            [self.path, *map(str, words)], env=self.environment, capture_output=True, text=True, **options
        )
        if done.returncode != 0:
            raise Refused(f"{Path(self.path).name} {' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
        return done.stdout


class Refused(AssertionError):
    """A tool is not content."""


def tool(variable: str) -> Path:
    where = os.environ.get(variable)
    if not where:
        pytest.exit(f"{variable} is not set: cargo xtask test deploy", returncode=2)
    return Path(where)
