"""What is written down beside the chart is so."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any

import yaml

import chart
from chart import ROOT

README = ROOT / "helm" / "README.md"


def leaves(values: dict[str, Any], before: str = "") -> Iterator[str]:
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{before}{key}.")
        else:
            yield before + key


def test_the_chart_installs_this_build() -> None:
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
    assert chart.loaded().metadata["appVersion"] == workspace["version"]


def defaults() -> dict[str, Any]:
    """Every default of the binary, as the example states it; a test of the binary holds that to what it does."""
    found: dict[str, Any] = {}
    section = ""
    for line in (ROOT / "leasehold.example.toml").read_text().splitlines():
        if named := re.fullmatch(r"#?\[(\w+)\]", line):
            section = f"{named[1]}."
        elif (setting := re.fullmatch(r"#(\w+ = .*)", line)) and "# no default" not in line:
            ((key, value),) = tomllib.loads(setting[1]).items()
            found[section + key] = value
    return found


def test_the_values_begin_with_the_binarys_defaults() -> None:
    known = defaults()
    assert {"ttl", "postgres.pool_max"} <= known.keys()
    for key in leaves(chart.loaded().values["config"]):
        section, _, name = key.rpartition(".")
        config = chart.loaded().values["config"]
        value = config[section][name] if section else config[name]
        # Logs in a cluster are read by programs; what is empty is asked for.
        assert value in (known.get(key), "") or key == "log.format", key


def test_the_table_names_every_value() -> None:
    _, table = README.read_text().split("\n## Values\n")
    named = set(re.findall(r"^\| `([A-Za-z_.]+)`", table, re.MULTILINE))
    known = set(leaves(chart.loaded().values))
    assert named == {name for name in known if not name.startswith("config.")} | {"config"}


def test_the_schema_knows_every_default_and_every_section_is_closed() -> None:
    def look(schema: dict[str, Any], values: dict[str, Any], path: str) -> None:
        assert schema["additionalProperties"] is False, path
        for key, value in values.items():
            below = schema["properties"][key]
            if isinstance(value, dict) and "properties" in below:
                look(below, value, f"{path}.{key}")

    look(chart.schema(), chart.loaded().values, "")


def test_the_values_of_the_readme_install() -> None:
    blocks = re.findall(r"^```yaml\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 2
    first, *others = [yaml.safe_load(block) for block in blocks]
    chart.render(first)
    for other in others:
        chart.render(chart.merged(first, other))
