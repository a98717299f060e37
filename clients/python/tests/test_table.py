"""Every cell of the table in docs/clients.md has a test, and every test a cell."""

from __future__ import annotations

import importlib
from pathlib import Path

from .rows import TESTS, table

#: What stands in a cell that has nothing.
NOTHING = "\N{EN DASH}"


def test_every_cell_has_a_test_and_every_test_a_cell() -> None:
    for module in Path(__file__).parent.glob("test_*.py"):
        importlib.import_module(f"{__package__}.{module.stem}")
    cells = {
        (feature, language)
        for feature, languages in table().items()
        for language, words in languages.items()
        if words != NOTHING
    }
    assert len(cells) > 30, "the table is read"
    assert sorted(cells - set(TESTS)) == [], "these cells have no test"
    assert sorted(set(TESTS) - cells) == [], "these tests have no cell"
