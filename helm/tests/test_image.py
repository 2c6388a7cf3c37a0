"""The chart runs the image that integration/Dockerfile makes."""

from __future__ import annotations

import re

import chart
from cases import Case
from chart import ROOT

INSTRUCTION = re.compile(r"^([A-Z]+) (.*)$")


def final_stage() -> dict[str, list[str]]:
    """What the last stage of the Dockerfile says, by instruction."""
    found: dict[str, list[str]] = {}
    for line in (ROOT / "integration" / "Dockerfile").read_text().replace("\\\n", " ").splitlines():
        if said := INSTRUCTION.match(line):
            if said[1] == "FROM":
                found = {}
            found.setdefault(said[1], []).append(said[2])
    return found


def replica(case: Case) -> tuple[chart.Object, chart.Object]:
    pod = case.rendered().one("StatefulSet")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    return pod, container


def test_the_image_is_the_user_that_the_chart_makes_of_it() -> None:
    security = chart.loaded().values["security"]
    assert final_stage()["USER"] == [f"{security['runAsUser']}:{security['runAsGroup']}"]
    assert security["fsGroup"] == security["runAsGroup"]


def test_the_image_writes_only_where_the_chart_gives_it_a_volume(case: Case) -> None:
    pod, container = replica(case)
    stage = final_stage()
    (volume,) = stage["VOLUME"]
    # The root is read-only, and whatever is written to the working directory lies in the volume.
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert stage["WORKDIR"] == [volume]
    (mount,) = [mount for mount in container["volumeMounts"] if mount["mountPath"] == volume]
    assert not mount.get("readOnly")
    (source,) = [source for source in pod["volumes"] if source["name"] == mount["name"]]
    assert {"emptyDir", "ephemeral"} & source.keys()
    assert [copied for copied in stage["COPY"] if copied.startswith("--from=build --chown=65532:65532 ") and copied.endswith(f" {volume}")]


def test_the_images_entry_point_takes_the_charts_arguments(case: Case) -> None:
    _, container = replica(case)
    assert final_stage()["ENTRYPOINT"] == ['["/usr/local/bin/leasehold"]']
    assert "command" not in container
    assert container["args"][0] == "serve"


def test_the_image_is_asked_to_go_as_kubernetes_asks_and_exposes_the_charts_port() -> None:
    stage = final_stage()
    assert stage["STOPSIGNAL"] == ["SIGTERM"]
    assert stage["EXPOSE"] == [str(chart.loaded().values["service"]["port"])]
    # The environment goes before the configuration file: an image that set a key would win over the chart's.
    assert "ENV" not in stage
