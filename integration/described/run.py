"""Holds a replica of its own to openapi.json: `run.py BINARY PLACE`. The requests are the same in every run."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
CHECKS = "answered,status_code_conformance,content_type_conformance,response_schema_conformance"
# How long a replica may take until it is ready, in seconds: it is one process with nothing in it.
READY_MAX = 60
# How long all of it may take.
RUN_MAX = 600


def until_ready(endpoint):
    until = time.monotonic() + READY_MAX
    while time.monotonic() < until:
        try:
            with urllib.request.urlopen(f"{endpoint}/readyz", timeout=5):
                return
        except urllib.error.URLError:
            time.sleep(0.05)
    sys.exit(f"{endpoint} was not ready within {READY_MAX} s")


def main(binary, place):
    place = pathlib.Path(place)
    place.mkdir(parents=True, exist_ok=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LEASEHOLD_")}
    # What is asked of a tenant that an operator holds still, or that moves, is refused soon.
    environment["LEASEHOLD_LIMITS__TIMEOUT_MAX"] = "1s"
    data_dir = place / f"data-{os.getpid()}"
    serve = [binary, "serve", "--dev", "--listen", "127.0.0.1:0", "--data-dir", data_dir, "--json"]
    replica = subprocess.Popen(serve, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        endpoint = json.loads(replica.stdout.readline())["address"]
        until_ready(endpoint)
        schemathesis = pathlib.Path(sys.executable).with_name("schemathesis")
        # A drained replica has nothing more to be asked.
        run = [
            *[schemathesis, "run", f"{endpoint}/openapi.json", "--checks", CHECKS, "--exclude-path", "/v1/drain"],
            *["--phases", "examples,coverage,fuzzing", "--max-examples", "20", "--seed", "1", "--request-timeout", "30"],
            *["--generation-database", "none", "--no-color"],
        ]
        known = {**environment, "PYTHONPATH": str(HERE), "SCHEMATHESIS_HOOKS": "hooks", "PYTHONDONTWRITEBYTECODE": "1"}
        ended = subprocess.run(run, env=known, cwd=place, timeout=RUN_MAX).returncode
        with urllib.request.urlopen(f"{endpoint}/metrics", timeout=10) as metrics:
            panics = [line for line in metrics.read().decode().splitlines() if line.startswith("leasehold_panics_total ")]
    finally:
        replica.terminate()
        replica.wait(RUN_MAX)
        shutil.rmtree(data_dir, ignore_errors=True)
    if panics != ["leasehold_panics_total 0"]:
        sys.exit(f"it met a defect of its own: {panics}")
    sys.exit(ended)


if __name__ == "__main__":
    main(*sys.argv[1:])
