"""Holds a bill of materials to the schema that it names: `valid.py BILL`."""

import json
import pathlib
import sys

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator


def main(path):
    text = pathlib.Path(path).read_text(encoding="utf-8")
    version = SchemaVersion.from_version(json.loads(text)["specVersion"])
    # Strict: what the schema does not know is wrong too.
    fault = JsonStrictValidator(version).validate_str(text)
    if fault is not None:
        sys.exit(f"{path} is no CycloneDX {version.to_version()}: {fault}")


if __name__ == "__main__":
    main(sys.argv[1])
