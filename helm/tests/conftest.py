"""A test that takes a `case` runs for every file of that table; one that takes a `refusal`, for every entry."""

from __future__ import annotations

import pytest

import cases


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for name, table in (("case", cases.accepted()), ("refusal", cases.refusals())):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, table.values(), ids=table.keys())
