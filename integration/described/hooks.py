"""What schemathesis does not know of this service: a body that is a file, and which failures are promised."""

import schemathesis

PROBLEM = "application/problem+json"


@schemathesis.serializer("application/vnd.sqlite3")
def a_file(_, value):
    """Whatever was made up, as bytes: no ledger, which has to be refused as such."""
    return value if isinstance(value, bytes) else str(value).encode()


@schemathesis.check
def answered(_, response, case):
    """A refusal is a problem with its own status; beyond 499 there are only those that pass by themselves, and they say when."""
    if response.status_code < 400:
        return
    kind = response.headers.get("content-type", [""])[0]
    assert kind == PROBLEM, f"{response.status_code} is {kind or 'nothing'} and no problem"
    if case.method.upper() == "HEAD":
        return
    problem = response.json()
    assert problem["status"] == response.status_code, problem
    if response.status_code >= 500:
        assert response.status_code in (503, 504), f"a defect: {problem}"
        assert response.headers.get("retry-after"), f"no Retry-After: {problem}"
