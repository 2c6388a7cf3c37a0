"""The table: values that are accepted, each with its facts, and values that are refused, each with what is said."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import chart

CASES = Path(__file__).parent / "cases"


@dataclass(frozen=True)
class Case:
    """One file of `cases/`."""

    # Why the case is there.
    about: str
    values: dict[str, Any]
    # Every object that is rendered, as `Kind/name`, and nothing else is.
    objects: list[str]
    # For an object, what stands at a JSON pointer in it; `null`: nothing does.
    facts: dict[str, dict[str, Any]]
    # For a key of the configuration file, its value; `null`: it does not stand there.
    config: dict[str, Any]
    # What the notes say, among other things.
    notes: list[str] = field(default_factory=list)
    release: str = "acme"
    namespace: str = "prod"

    def rendered(self) -> chart.Release:
        return chart.render(self.values, self.release, self.namespace)


@dataclass(frozen=True)
class Refusal:
    """One entry of `refusals.yaml`."""

    # Laid over the smallest install.
    values: dict[str, Any]
    # Words of the message: the value that it is about, and why.
    says: list[str]
    release: str = "acme"


def _load(path: Path) -> Any:
    (document,) = chart.read_yaml(path.read_text())
    return document


@cache
def accepted() -> dict[str, Case]:
    found = {path.stem: Case(**_load(path)) for path in sorted(CASES.glob("*.yaml"))}
    assert "minimal" in found
    return found


@cache
def refusals() -> dict[str, Refusal]:
    return {name: Refusal(**entry) for name, entry in _load(CASES.parent / "refusals.yaml").items()}


def smallest() -> dict[str, Any]:
    return accepted()["minimal"].values
