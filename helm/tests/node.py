"""What a node makes of a pod: the files and the environment that its container sees."""

from __future__ import annotations

import base64
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import chart

# What a Secret's values contain, so that a search finds them wherever they have got to.
PLANTED = "hunter2"
_KEY = base64.b64encode(PLANTED.encode()).decode()

# What the existing Secrets and ConfigMaps hold, by the key under which the cases look for it.
HELD = {
    "url": f"postgres://leasehold_app:{PLANTED}@db.internal:5432/main",
    "owner-url": f"postgres://leasehold_owner:{PLANTED}@db.internal:5432/main",
    "derivation-key": "0123456789abcdef" * 4,
    "peer-secret": f"{PLANTED}-{PLANTED}-{PLANTED}",
    "connection-string": f"DefaultEndpointsProtocol=https;AccountName=acmeledgers;AccountKey={_KEY}",
    "account-key": _KEY,
    "sas": f"sv=2022-11-02&sig={PLANTED}",
    "ca.crt": (Path(__file__).parent / "root.pem").read_text(),
    # Whether they go together is looked at by a replica, and not by who looks at the configuration alone.
    "tls.crt": (Path(__file__).parent / "root.pem").read_text(),
    "tls.key": "-----BEGIN PRIVATE KEY-----",
    "jwks.json": '{"keys":[]}',
    "shared": PLANTED * 8,
}


@dataclass(frozen=True)
class Container:
    """A container, run where its files are below `root` and not at `/`."""

    root: Path
    args: list[str]
    environment: dict[str, str]

    def place(self, path: str) -> Path:
        return self.root / path.lstrip("/")

    def read(self, path: str) -> str:
        return self.place(path).read_text()

    def run(self, *args: str) -> subprocess.CompletedProcess[str]:
        """Runs the binary under test in the container's environment."""
        return subprocess.run(
            [os.environ["LEASEHOLD_BIN"], *args],
            env=self.environment,
            cwd=self.root,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )


def start(release: chart.Release, workload: chart.Object, root: Path, pod: str) -> Container:
    """Makes the only container of a workload's pod."""
    template = workload["spec"]["template"]
    spec = template["spec"]
    (container,) = spec["containers"]
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    for mount in container["volumeMounts"]:
        directory = root / mount["mountPath"].lstrip("/")
        directory.mkdir(parents=True)
        for source in volumes[mount["name"]].get("projected", {}).get("sources", []):
            for name, text in _project(release, source).items():
                assert not (directory / name).exists(), f"{name} comes from two sources"
                # The binary is not told that its root is another one, so its files are not either.
                (directory / name).parent.mkdir(exist_ok=True)
                (directory / name).write_text(_moved(text, root))
    environment: dict[str, str] = {}
    for variable in container.get("env", []):
        text = pod if "valueFrom" in variable else variable["value"]
        if "valueFrom" in variable:
            assert variable["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.name"}}
        environment[variable["name"]] = re.sub(r"\$\((\w+)\)", lambda found: environment[found[1]], text)
    environment |= _identity(release, template, root)
    return Container(root, [_moved(arg, root) for arg in container["args"]], environment)


def _moved(text: str, root: Path) -> str:
    return re.sub(r"(?<=\")/(etc|var/lib)/leasehold|^/(etc|var/lib)/leasehold", lambda found: f"{root}{found[0]}", text)


def _project(release: chart.Release, source: dict[str, Any]) -> dict[str, str]:
    ((kind, reference),) = source.items()
    own = [each for each in release.of_kind("ConfigMap") if each["metadata"]["name"] == reference["name"]]
    held = own[0]["data"] if kind == "configMap" and own else HELD
    return {item["path"]: held[item["key"]] for item in reference["items"]}


def _identity(release: chart.Release, template: chart.Object, root: Path) -> dict[str, str]:
    """What AKS puts into a pod that is labelled for it and whose service account is annotated."""
    if template["metadata"]["labels"].get("azure.workload.identity/use") != "true":
        return {}
    name = template["spec"]["serviceAccountName"]
    accounts = [each for each in release.of_kind("ServiceAccount") if each["metadata"]["name"] == name]
    # One that the chart does not make is annotated by whoever did.
    annotations = chart.annotations_of(accounts[0]) if accounts else {"azure.workload.identity/client-id": "theirs"}
    token = root / "token"
    token.write_text("eyJ")
    return {
        "AZURE_CLIENT_ID": annotations["azure.workload.identity/client-id"],
        "AZURE_TENANT_ID": annotations.get("azure.workload.identity/tenant-id", "the-clusters"),
        "AZURE_FEDERATED_TOKEN_FILE": str(token),
        "AZURE_AUTHORITY_HOST": "https://login.microsoftonline.com/",
    }
