"""Lanes as configurations say them, without a server. The cases are those of the broker, the relay and the command line."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from overtake.streams import Lanes

CASES = tomllib.loads((Path(__file__).parents[3] / "tests/lanes.toml").read_text())["case"]


@pytest.mark.parametrize("case", [case for case in CASES if "environment" not in case], ids=lambda case: case["about"])
def test_the_table_and_the_variables_mean_what_they_mean_to_the_broker(case: dict[str, dict[str, object]]) -> None:
    variables = {name: str(value) for name, value in case.get("variables", {}).items()}
    lanes = Lanes.read(case.get("table"), variables)
    said = {"enabled": lanes.enabled, "threshold": lanes.threshold, "backfill_suffix": lanes.suffix}
    assert said == case["lanes"]


def test_a_key_or_a_variable_that_cannot_be_is_named() -> None:
    wrong: list[tuple[dict[str, object], str]] = [
        ({"enable": True}, "no key `enable`: they have enabled, threshold, backfill_suffix"),
        ({"threshold": "low"}, "threshold must be a whole number, and is 'low'"),
        ({"enabled": 1}, "enabled must be true or false, and is 1"),
        ({"backfill_suffix": "a:b"}, "no colon"),
    ]
    for table, why in wrong:
        with pytest.raises(ValueError, match=why):
            Lanes.read(table, {})
    name = "OVERTAKE__SERVER__PRIORITY_LANES__ENABLED"
    with pytest.raises(ValueError, match=f"{name} must be true or false, and is 'yes'"):
        Lanes.read(None, {name: "yes"})


@pytest.mark.parametrize("name", ["PRIORITY_LANES__ENABELD", "PRIORITY_LANES", "PRIORITY_LANE__ENABLED"])
def test_a_variable_that_is_misspelled_is_named(name: str) -> None:
    name = f"OVERTAKE__SERVER__{name}"
    with pytest.raises(ValueError, match=f"there is no variable {name}; there are OVERTAKE__SERVER__PRIORITY_LANES__"):
        Lanes.read(None, {name: "true"})
    assert not Lanes.read(None, {"OVERTAKE__SERVER__PORTS_FILE": "ports"}).enabled
