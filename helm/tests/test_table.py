"""The table's own facts: what each values file renders, and what each refusal says."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import helm_python
import pytest

import chart
from cases import Case, Refusal, smallest


def at(found: Any, pointer: str) -> Any:
    """What stands at a JSON pointer; `None` where nothing does."""
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list):
            found = dict(enumerate(found)).get(int(key))
        else:
            found = found.get(key)
        if found is None:
            return None
    return found


def toml_of(release: chart.Release) -> dict[str, Any]:
    return tomllib.loads(release.one("ConfigMap")["data"]["leasehold.toml"])


def test_the_objects_are_those_and_no_others(case: Case) -> None:
    assert case.rendered().names() == sorted(case.objects)


def test_the_facts_hold(case: Case) -> None:
    release = case.rendered()
    for name, facts in case.facts.items():
        found = release.get(name)
        assert {pointer: at(found, pointer) for pointer in facts} == facts, name


def test_the_configuration_file_says_what_was_asked_for(case: Case) -> None:
    configured = toml_of(case.rendered())
    for key, value in case.config.items():
        assert at(configured, f"/{key.replace('.', '/')}") == value, key

    def leaves(values: dict[str, Any], before: str = "") -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in values.items():
            found |= leaves(value, f"{before}{key}.") if isinstance(value, dict) else {before + key: value}
        return found

    # Of the values' own `config`, everything stands there, a count as a count; an empty one is none.
    asked = leaves(chart.merged(chart.loaded().values, case.values)["config"])
    there = leaves(configured)
    for key, value in asked.items():
        if value == "":
            continue
        # A list of tables stands there as JSON.
        said = json.loads(there[key]) if isinstance(value, list) else there[key]
        assert repr(plain(said)) == repr(plain(value)), key


def plain(value: Any) -> Any:
    """The same whatever the order of an object's names."""
    if isinstance(value, dict):
        return {name: plain(value[name]) for name in sorted(value)}
    return [plain(one) for one in value] if isinstance(value, list) else value


def test_the_notes_say_it(case: Case) -> None:
    notes = case.rendered().notes
    for words in case.notes:
        assert words in " ".join(notes.split()), notes


def test_what_cannot_fit_is_refused_by_its_name(refusal: Refusal) -> None:
    with pytest.raises(helm_python.HelmError) as error:
        chart.render(chart.merged(smallest(), refusal.values), refusal.release)
    for words in refusal.says:
        assert words in str(error.value)
