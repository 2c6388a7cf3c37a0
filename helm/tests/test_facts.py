"""What holds of every values file that is accepted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import helm_python
import pytest

import api
import chart
from cases import Case
from node import PLANTED


def milliseconds(duration: str) -> int:
    units = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}
    return sum(int(number) * units[unit] for number, unit in re.findall(r"(\d+)(ms|s|m|h)", duration))


def values_of(case: Case) -> dict[str, Any]:
    return chart.merged(chart.loaded().values, case.values)


def pod_templates(release: chart.Release) -> Iterator[chart.Object]:
    for found in release.objects:
        if found["kind"] in ("StatefulSet", "Job"):
            yield found["spec"]["template"]


def selects(selector: dict[str, str], labels: dict[str, str]) -> bool:
    return selector.items() <= labels.items()


def texts(found: Any) -> Iterator[str]:
    if isinstance(found, dict):
        for value in found.values():
            yield from texts(value)
    elif isinstance(found, list):
        for value in found:
            yield from texts(value)
    else:
        yield str(found)


def test_the_chart_lints(case: Case) -> None:
    report = helm_python.lint(chart.PATH, case.values, strict=True, namespace=case.namespace, kube_version="v1.30.0")
    # The icon is asked for by a catalogue, and there is none.
    assert [each for each in report["messages"] if "icon" not in each["error"]] == []
    assert report["errors"] == []


@pytest.mark.parametrize("version", api.VERSIONS)
def test_kubernetes_accepts_every_object(case: Case, version: str) -> None:
    for found in case.rendered().objects:
        if found["apiVersion"] not in api.OF_OPERATORS:
            assert api.breaches(found, version) == [], chart.name_of(found)


def test_a_field_that_is_none_would_be_noticed() -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"ports": []}}
    assert api.breaches(service, "1.37") == []
    assert api.breaches(service | {"spec": {"portz": []}}, "1.37")


def test_every_object_is_of_the_release_and_its_namespace(case: Case) -> None:
    for found in case.rendered().objects:
        metadata = found["metadata"]
        assert metadata["namespace"] == case.namespace
        assert metadata["labels"]["app.kubernetes.io/instance"] == case.release
        assert len(metadata["name"]) <= 63


def test_pods_keep_the_restricted_standard(case: Case) -> None:
    templates = list(pod_templates(case.rendered()))
    assert templates
    for template in templates:
        pod = template["spec"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert min(pod["securityContext"][key] for key in ("runAsUser", "runAsGroup", "fsGroup")) > 0
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is False
        assert pod["enableServiceLinks"] is False
        assert not {"hostNetwork", "hostPID", "hostIPC", "initContainers"} & pod.keys()
        assert {kind for volume in pod["volumes"] for kind in volume} <= {"name", "projected", "emptyDir", "ephemeral"}
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "runAsNonRoot": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert "memory" in container["resources"]["limits"]
            assert {"cpu", "memory"} <= container["resources"]["requests"].keys()


def test_nothing_is_kept_in_the_cluster_and_no_secret_is_made(case: Case) -> None:
    release = case.rendered()
    kinds = {found["kind"] for found in release.objects}
    assert not kinds & {"Secret", "PersistentVolumeClaim", "PersistentVolume"}
    assert "volumeClaimTemplates" not in release.one("StatefulSet")["spec"]
    assert not [text for text in texts(list(release.objects)) if PLANTED in text]
    for template in pod_templates(release):
        for volume in template["spec"]["volumes"]:
            if "projected" in volume:
                assert volume["projected"]["defaultMode"] == 0o440
        for container in template["spec"]["containers"]:
            # A secret in the environment would be in every crash report.
            assert all("secretKeyRef" not in str(variable) for variable in container.get("env", []))


def test_probes_ask_what_they_should(case: Case) -> None:
    (container,) = case.rendered().one("StatefulSet")["spec"]["template"]["spec"]["containers"]
    asked = {kind: container[f"{kind}Probe"]["httpGet"]["path"] for kind in ("startup", "liveness", "readiness")}
    assert asked == {"startup": "/healthz", "liveness": "/healthz", "readiness": "/readyz"}
    startup = container["startupProbe"]
    # Ten minutes, and twice the ttl that an id may have to be silent for.
    seconds = startup["periodSeconds"] * startup["failureThreshold"]
    assert seconds * 1_000 >= 600_000 + 2 * milliseconds(values_of(case)["config"]["ttl"])


def beyond_grace_seconds() -> int:
    """What the process may take beyond its grace period, by its own sources; one statement comes on top."""
    sources = ("crates/server/src/service/run.rs", "crates/leasehold/src/run.rs")
    text = "".join((chart.ROOT / source).read_text() for source in sources)
    constant = r"const (\w+)_MAX: Duration = Duration::from_secs\((\d+)\);"
    found = {name: int(seconds) for name, seconds in re.findall(constant, text)}
    return sum(found[name] for name in ("ABANDON", "CONNECTIONS_END", "LEFT_BEHIND"))


def test_a_pod_has_the_time_to_go(case: Case) -> None:
    config = values_of(case)["config"]
    pod = case.rendered().one("StatefulSet")["spec"]["template"]["spec"]
    sleep = pod["containers"][0].get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0)
    assert sleep == values_of(case)["preStopSleepSeconds"]
    needed = milliseconds(config["grace_period"]) + milliseconds(config["postgres"]["statement_timeout"])
    needed += 1_000 * (beyond_grace_seconds() + sleep)
    assert needed < 1_000 * pod["terminationGracePeriodSeconds"] <= needed + 6_000


def test_services_pods_and_policies_agree_on_the_port(case: Case) -> None:
    release = case.rendered()
    template = release.one("StatefulSet")["spec"]["template"]
    labels = template["metadata"]["labels"]
    port, *own_ports = template["spec"]["containers"][0]["ports"]
    peer_port = own_ports[0] if own_ports else port
    services = release.of_kind("Service")
    assert len(services) == 2
    for service in services:
        exposed = [(each["port"], each["targetPort"]) for each in service["spec"]["ports"]]
        seen = [port, *own_ports] if service["spec"].get("clusterIP") == "None" else [port]
        assert exposed == [(each["containerPort"], each["name"]) for each in seen], "no client sees the replicas' own"
        assert service["spec"]["type"] == "ClusterIP"
        assert selects(service["spec"]["selector"], labels)
    (headless,) = [each for each in services if each["spec"].get("clusterIP") == "None"]
    assert headless["metadata"]["name"] == release.one("StatefulSet")["spec"]["serviceName"]
    assert headless["spec"]["publishNotReadyAddresses"] is True
    if not values_of(case)["networkPolicy"]["enabled"]:
        assert not release.of_kind("NetworkPolicy")
        return
    policy = release.one("NetworkPolicy")["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert selects(policy["podSelector"]["matchLabels"], labels)
    ingress, *of_replicas = policy["ingress"]
    assert [each["port"] for each in ingress["ports"]] == [port["containerPort"]]
    own = {"podSelector": policy["podSelector"]}
    assert all(ingress["from"]), "no peer is everybody"
    to_replicas = [{"port": peer_port["containerPort"], "protocol": "TCP"}]
    if own_ports:
        assert of_replicas == [{"ports": to_replicas, "from": [own]}] and own not in ingress["from"]
    else:
        assert own in ingress["from"] and not of_replicas
    assert policy["egress"][0] == {"ports": to_replicas, "to": [own]}
    reached = {each["port"] for rule in policy["egress"] for each in rule["ports"]}
    assert {53, *values_of(case)["networkPolicy"]["postgres"]["ports"]} < reached


def test_an_eviction_leaves_somebody(case: Case) -> None:
    release = case.rendered()
    if not values_of(case)["podDisruptionBudget"]["enabled"]:
        assert not release.of_kind("PodDisruptionBudget")
        return
    scalers = release.of_kind("HorizontalPodAutoscaler")
    workload = release.one("StatefulSet")["spec"]
    replicas = scalers[0]["spec"]["minReplicas"] if scalers else workload["replicas"]
    budget = release.one("PodDisruptionBudget")["spec"]
    assert budget["maxUnavailable"] < max(replicas, 2)
    # Without its database every replica is unready and holds what it acknowledged.
    assert budget["unhealthyPodEvictionPolicy"] == "IfHealthyBudget"
    assert selects(budget["selector"]["matchLabels"], workload["template"]["metadata"]["labels"])


def test_an_upgrade_of_the_chart_alone_rolls_nobody(case: Case) -> None:
    template = case.rendered().one("StatefulSet")["spec"]["template"]
    assert not {"helm.sh/chart", "app.kubernetes.io/version"} & template["metadata"]["labels"].keys()
    assert "checksum/config" in template["metadata"]["annotations"]


def test_what_an_operator_reads_has_its_form(case: Case) -> None:
    release = case.rendered()
    for monitor in release.of_kind("ServiceMonitor"):
        selector = monitor["spec"]["selector"]["matchLabels"]
        watched = [each for each in release.of_kind("Service") if selects(selector, each["metadata"]["labels"])]
        assert [each["spec"].get("clusterIP") for each in watched] == ["None"], "each replica is read once"
        (endpoint,) = monitor["spec"]["endpoints"]
        assert endpoint["port"] in [port["name"] for port in watched[0]["spec"]["ports"]]
        assert endpoint["path"] == "/metrics"
        assert milliseconds(endpoint["scrapeTimeout"]) <= milliseconds(endpoint["interval"])
        assert monitor["spec"]["namespaceSelector"] == {"matchNames": [case.namespace]}
    for rules in release.of_kind("PrometheusRule"):
        (group,) = rules["spec"]["groups"]
        assert len({rule["alert"] for rule in group["rules"]}) == len(group["rules"]) >= 8
        for rule in group["rules"]:
            assert rule.keys() - {"for"} == {"alert", "expr", "labels", "annotations"}
            assert rule["labels"]["severity"] in ("warning", "critical")
            assert {"summary", "description"} == rule["annotations"].keys()


def test_the_migration_comes_before_the_release(case: Case) -> None:
    release = case.rendered()
    jobs = release.of_kind("Job")
    assert bool(jobs) == (values_of(case)["migration"]["by"] == "job")
    for job in jobs:
        pod = job["spec"]["template"]["spec"]
        needed = [found for found in release.objects if found["metadata"]["name"] == job["metadata"]["name"]]
        assert {"ServiceAccount", "ConfigMap", "Job"} <= {found["kind"] for found in needed}
        for found in needed:
            hook = chart.annotations_of(found)
            assert hook["helm.sh/hook"] == "pre-install,pre-upgrade"
            assert int(hook["helm.sh/hook-weight"]) < 0 or found is job
        assert pod["serviceAccountName"] == job["metadata"]["name"]
        sources = pod["volumes"][0]["projected"]["sources"]
        read = {item["path"] for source in sources for kind in source.values() for item in kind["items"]}
        assert not {"derivation-key", "peer-secret", "tls.key"} & read, "it derives, forwards and serves nothing"
        assert "leasehold.toml" in read
        serving = release.one("StatefulSet")["spec"]["selector"]["matchLabels"]
        assert not selects(serving, job["spec"]["template"]["metadata"]["labels"]), "no service leads to it"
