"""Holds replicas of its own to openapi.json: `run.py BINARY PLACE`. The requests are the same in every run.

First one that asks nobody who they are, then one that asks everybody: a service that may do all, one that may only read, a person, and
whoever shows nothing."""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request

import person

HERE = pathlib.Path(__file__).resolve().parent
CHECKS = "answered,judged,status_code_conformance,content_type_conformance,response_schema_conformance"
# How long a replica may take until it is ready, in seconds: it is one process with nothing in it.
READY_MAX = 60
# How long one caller's requests may take.
RUN_MAX = 600
CONFIGURATION = """
listen = "127.0.0.1:0"
replica = "described"
data_dir = "{data_dir}"
[limits]
# Nobody is asked for more in a second than one address may fail.
rate_failures_per_peer = 1000000
[auth]
mode = "required"
issuers = [{{ issuer = "{issuer}", audience = "{audience}", keys_file = "{keys}", organization = "acme" }}]
"""


def environment():
    own = {name: value for name, value in os.environ.items() if not name.startswith("LEASEHOLD_")}
    # What is asked of a tenant that an operator holds still, or that moves, is refused soon.
    return {**own, "LEASEHOLD_LIMITS__TIMEOUT_MAX": "1s"}


@contextlib.contextmanager
def replica(serve):
    process = subprocess.Popen(serve, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        endpoint = json.loads(process.stdout.readline())["address"]
        until_ready(endpoint)
        yield endpoint
    finally:
        process.terminate()
        process.wait(RUN_MAX)


def until_ready(endpoint):
    until = time.monotonic() + READY_MAX
    while time.monotonic() < until:
        try:
            with urllib.request.urlopen(f"{endpoint}/readyz", timeout=5):
                return
        except urllib.error.URLError:
            time.sleep(0.05)
    sys.exit(f"{endpoint} was not ready within {READY_MAX} s")


def ask(place, endpoint, caller, examples, token=None):
    """Asks as a caller; hooks.py knows what each of them has to be answered."""
    print(f"\n--- {caller}", flush=True)
    schemathesis = pathlib.Path(sys.executable).with_name("schemathesis")
    # A drained replica has nothing more to be asked.
    run = [
        *[schemathesis, "run", f"{endpoint}/openapi.json", "--checks", CHECKS, "--exclude-path", "/v1/drain"],
        *["--phases", "examples,coverage,fuzzing", "--max-examples", str(examples), "--seed", "1", "--request-timeout", "30"],
        *["--generation-database", "none", "--no-color"],
        *(["--header", f"Authorization: Bearer {token}"] if token else []),
    ]
    python = {"PYTHONPATH": str(HERE), "SCHEMATHESIS_HOOKS": "hooks", "PYTHONDONTWRITEBYTECODE": "1"}
    known = {**environment(), **python, "DESCRIBED_CALLER": caller, **({"DESCRIBED_TOKEN": token} if token else {})}
    ended = subprocess.run(run, env=known, cwd=place, timeout=RUN_MAX).returncode
    if ended:
        sys.exit(f"what {caller} is answered is not what is described")


def no_defects(endpoint, token=None):
    request = urllib.request.Request(f"{endpoint}/metrics", headers={"Authorization": f"Bearer {token}"} if token else {})
    with urllib.request.urlopen(request, timeout=10) as metrics:
        panics = [line for line in metrics.read().decode().splitlines() if line.startswith("leasehold_panics_total ")]
    if panics != ["leasehold_panics_total 0"]:
        sys.exit(f"it met a defect of its own: {panics}")


def nobody_is_asked(binary, place):
    serve = [binary, "serve", "--dev", "--listen", "127.0.0.1:0", "--data-dir", place / "data", "--json"]
    with replica(serve) as endpoint:
        ask(place, endpoint, "anybody", 20)
        no_defects(endpoint)


def everybody_is_asked(binary, place):
    issuer = person.Issuer()
    keys, configuration = place / "keys.json", place / "leasehold.toml"
    keys.write_text(json.dumps(issuer.key_set()))
    named = {"data_dir": place / "data", "keys": keys, "issuer": person.ISSUER, "audience": person.AUDIENCE}
    configuration.write_text(CONFIGURATION.format(**named))

    def made(name, scopes):
        create = [binary, "token", "create", name, "--orgs", "*", "--scopes", scopes, "--config", configuration]
        return subprocess.run(create, env=environment(), check=True, stdout=subprocess.PIPE, text=True).stdout.strip()

    service, reader = made("service", "read,append,sql,operate,forget,admin"), made("reader", "read")
    with replica([binary, "serve", "--config", configuration, "--json"]) as endpoint:
        ask(place, endpoint, "a service", 10, service)
        ask(place, endpoint, "a reader", 5, reader)
        ask(place, endpoint, "a person", 10, issuer.token("ada"))
        ask(place, endpoint, "nobody", 5)
        no_defects(endpoint, service)


def main(binary, place):
    for asked in (nobody_is_asked, everybody_is_asked):
        own = pathlib.Path(place) / f"{asked.__name__}-{os.getpid()}"
        own.mkdir(parents=True)
        try:
            asked(binary, own)
        finally:
            shutil.rmtree(own, ignore_errors=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
