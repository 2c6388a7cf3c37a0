"""Kubernetes' own schemas, in which a field that is none is an error."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

# The oldest that the chart says it takes, and the newest that there are schemas of.
VERSIONS = ("1.30", "1.37")

# Kinds that an operator brings: theirs are no schemas of Kubernetes.
OF_OPERATORS = ("monitoring.coreos.com/v1",)


def _read(version: str, name: str) -> Any:
    schemas = files("kubernetes_validate").joinpath("kubernetes-json-schema", f"v{version}.0-local-strict")
    return json.loads(schemas.joinpath(f"{name}.json").read_text())


@cache
def _definitions(version: str) -> Registry[Any]:
    return Resource.from_contents(_read(version, "_definitions")) @ Registry()


@cache
def _validator(version: str, kind: str, api: str) -> Draft202012Validator:
    short = re.sub(r"^([^./]*)(?:\.[^/]*)?/", r"\1-", api)
    schema = _read(version, f"{kind.lower()}-{short}")
    return Draft202012Validator(schema, registry=_definitions(version))


def breaches(found: dict[str, Any], version: str) -> list[str]:
    """What that version of Kubernetes would not accept of an object."""
    validator = _validator(version, found["kind"], found["apiVersion"])
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(found)]
