"""The chart against the binary: the configuration that it renders, and the metrics that its alerts name."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tomllib
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest

import chart
import node
from cases import Case, accepted
from chart import ROOT

PODS = {"StatefulSet": "acme-leasehold-0", "Job": "acme-leasehold-migrate-x7k2p"}


def config_keys() -> list[str]:
    """Every key that the binary knows."""
    source = (ROOT / "crates/server/src/config/keys.rs").read_text()
    keys = re.findall(r'^    \("([a-z_.]+)", "', source, re.MULTILINE)
    assert "ttl" in keys and "log.filter" in keys
    return keys


def files_of(section: dict[str, Any]) -> list[str]:
    """The files that keys of a section name."""
    return [value for key, value in section.items() if key.endswith("_file")]


def settable() -> set[str]:
    """Every key that the values' schema lets somebody set."""
    found = set()
    for key, schema in chart.schema()["properties"]["config"]["properties"].items():
        assert schema.get("additionalProperties") is False or "properties" not in schema
        found |= {f"{key}.{inner}" for inner in schema["properties"]} if "properties" in schema else {key}
    return found


@pytest.mark.parametrize("kind", PODS)
def test_a_pods_configuration_is_accepted(case: Case, kind: str, tmp_path: Path) -> None:
    release = case.rendered()
    for workload in release.of_kind(kind):
        container = node.start(release, workload, tmp_path, PODS[kind])
        verb, flag, file = container.args
        assert (verb, flag) == ({"StatefulSet": "serve", "Job": "migrate"}[kind], "--config")
        checked = container.run("doctor", "--check-config-only", "--config", file)
        said = checked.stdout + checked.stderr
        assert checked.returncode == 0, said
        assert node.PLANTED not in said
        configured = tomllib.loads(Path(file).read_text())
        named = [configured["postgres"].get("sslrootcert")]
        named += [value for section in configured.values() if isinstance(section, dict) for value in files_of(section)]
        # The Job derives nothing, and is not given the key.
        named += files_of(configured) if kind == "StatefulSet" else []
        assert [path for path in named if path and not Path(path).read_text()] == []
        # What this test rests on: what is mounted is what is named, and a file that is missing is noticed.
        url = Path(configured["postgres"]["url_file"])
        url.unlink()
        checked = container.run("doctor", "--check-config-only", "--config", file)
        assert checked.returncode != 0
        assert "postgres.url_file" in checked.stdout + checked.stderr


def test_a_replica_is_told_its_name_and_where_it_is_reached(case: Case, tmp_path: Path) -> None:
    release = case.rendered()
    workload = release.one("StatefulSet")
    pod = f"{workload['metadata']['name']}-0"
    environment = node.start(release, workload, tmp_path, pod).environment
    port = workload["spec"]["template"]["spec"]["containers"][0]["ports"][-1]
    scheme = "https" if case.values.get("tls") else "http"
    assert environment["LEASEHOLD_REPLICA"] == pod
    assert re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}", pod), "it is a replica id"
    endpoint = f"{scheme}://{pod}.{workload['spec']['serviceName']}.{case.namespace}.svc."
    assert environment["LEASEHOLD_ENDPOINT"].startswith(endpoint)
    assert environment["LEASEHOLD_ENDPOINT"].endswith(f":{port['containerPort']}")


def test_every_key_is_set_by_the_values_or_by_the_chart() -> None:
    by_chart: set[str] = {"endpoint", "replica"}
    for case in accepted().values():
        for key, value in tomllib.loads(case.rendered().one("ConfigMap")["data"]["leasehold.toml"]).items():
            by_chart |= {f"{key}.{inner}" for inner in value} if isinstance(value, dict) else {key}
    by_platform = {"azure.tenant_id", "azure.token_file", "azure.authority"}
    secrets = {"postgres.url", "azure.connection_string", "azure.account_key", "azure.sas"}
    assert not settable() & (by_platform | secrets)
    assert settable() | by_chart | by_platform | secrets == set(config_keys())


def test_what_may_be_set_is_said_by_one_case_at_least() -> None:
    """So that each key's form has been looked at by the binary."""
    said = set()
    for case in accepted().values():
        for key, value in chart.merged(chart.loaded().values, case.values)["config"].items():
            said |= {f"{key}.{inner}" for inner in value} if isinstance(value, dict) else {key}
    assert said == settable()


@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory) -> Iterator[set[str]]:
    """The series of a replica that has just started, read from one."""
    directory = tmp_path_factory.mktemp("replica")
    serve = [os.environ["LEASEHOLD_BIN"], "--json", "serve", "--dev", "--listen", "127.0.0.1:0"]
    serve += ["--data-dir", str(directory)]
    # Our own variables begin as the configuration's do.
    with subprocess.Popen(serve, env={}, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = json.loads(process.stdout.readline())["address"]
            with urllib.request.urlopen(f"{address}/metrics", timeout=60) as answer:
                lines = answer.read().decode().splitlines()
        finally:
            process.terminate()
    yield {re.split(r"[ {]", line)[0] for line in lines if not line.startswith("#")}


def test_alerts_name_series_that_a_replica_has_from_its_start(case: Case, series: set[str]) -> None:
    release = case.rendered()
    headless = release.one("StatefulSet")["spec"]["serviceName"]
    for rules in release.of_kind("PrometheusRule"):
        for rule in rules["spec"]["groups"][0]["rules"]:
            named: list[str | None] = []

            def look(expression: promql_parser.Expr, named: list[str | None] = named) -> None:
                if isinstance(expression, promql_parser.VectorSelector):
                    matchers = {each.name: each.value for each in expression.matchers.matchers}
                    assert matchers["namespace"] == case.namespace and matchers["service"] == headless
                    named.append(expression.name)

            promql_parser.walk(promql_parser.parse(rule["expr"]), look)
            assert named and set(named) <= series, rule
