"""The chart, rendered by Helm's own engine."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import helm_python
import yaml

ROOT = Path(__file__).resolve().parents[2]
PATH = ROOT / "helm" / "leasehold"

Object = dict[str, Any]


class UniqueKeys(yaml.SafeLoader):
    """YAML in which a key that stands twice is an error, as it is to a cluster."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = {key for key in keys if keys.count(key) > 1}
        if twice:
            raise yaml.constructor.ConstructorError(None, None, f"{sorted(twice)} stand twice", node.start_mark)
        return super().construct_mapping(node, deep)


def read_yaml(text: str) -> list[Any]:
    return list(yaml.load_all(text, UniqueKeys))


@dataclass(frozen=True)
class Release:
    """What an install would send, and what it would say."""

    namespace: str
    objects: tuple[Object, ...]
    notes: str

    def names(self) -> list[str]:
        return sorted(name_of(found) for found in self.objects)

    def get(self, name: str) -> Object:
        """The object that is called `Kind/name`."""
        found = [each for each in self.objects if name_of(each) == name]
        assert len(found) == 1, f"{name} is there {len(found)} times: {self.names()}"
        return found[0]

    def of_kind(self, kind: str) -> list[Object]:
        return [found for found in self.objects if found["kind"] == kind]

    def one(self, kind: str) -> Object:
        """The release's own object of a kind; those of the migration Job come before it and are not counted."""
        found = [each for each in self.of_kind(kind) if "helm.sh/hook" not in annotations_of(each)]
        assert len(found) == 1, f"{kind} is there {len(found)} times: {self.names()}"
        return found[0]


def name_of(found: Object) -> str:
    return f"{found['kind']}/{found['metadata']['name']}"


def annotations_of(found: Object) -> dict[str, str]:
    return found["metadata"].get("annotations") or {}


@cache
def loaded() -> helm_python.Chart:
    return helm_python.Chart.load(PATH)


def schema() -> dict[str, Any]:
    """What the values may be."""
    found = loaded().schema
    assert found is not None
    return found


def render(values: dict[str, Any], name: str = "acme", namespace: str = "prod") -> Release:
    """Renders as `helm install` does: first the schema, then the templates. Raises `HelmError` with the refusal."""
    chart = loaded()
    chart.validate_schema(values)
    rendered = chart.render(values, name=name, namespace=namespace, is_install=True)
    notes = rendered.pop("leasehold/templates/NOTES.txt")
    objects = [found for text in rendered.values() for found in read_yaml(text) if found]
    return Release(namespace, tuple(objects), notes)


def merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """`base` with `over` laid over it, as Helm lays one values file over another."""
    result = dict(base)
    for key, value in over.items():
        below = result.get(key)
        result[key] = merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return result
