"""What schemathesis does not know of this service: a body that is a file, and which failures are promised."""

import os

import schemathesis

# Who asks, as run.py says, and by which token.
CALLER, TOKEN = os.environ["DESCRIBED_CALLER"], os.environ.get("DESCRIBED_TOKEN")
# The scopes of those that are known by a token.
SCOPES = {"a service": {"read", "append", "sql", "operate", "forget", "admin"}, "a reader": {"read"}}

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


def refusal_of(security, is_shown):
    """What the caller has to be refused by, for what an operation says that it asks for; None: it is let in."""
    if not security:
        return None
    if not is_shown:
        return 401, "unauthenticated"
    asked = {name: set(scopes) for way in security for name, scopes in way.items()}
    if CALLER == "a person":
        return None if "person" in asked else (403, "forbidden")
    return None if asked.get("apiToken", {"no scope"}) <= SCOPES[CALLER] else (403, "forbidden")


@schemathesis.check
def judged(_, response, case):
    """Who may not call is refused by what the description says, whatever else is wrong with the request; who may is not."""
    if CALLER == "anybody":
        return
    # A method that the path does not have is no operation, and is judged as the path.
    if case.method.upper() != case.operation.method.upper():
        return
    # Some requests are sent without the token, or with another one, on purpose.
    shown = response.request.headers.get("Authorization")
    refusal = refusal_of(case.operation.definition.raw.get("security"), TOKEN is not None and shown == f"Bearer {TOKEN}")
    if refusal is None:
        assert response.status_code not in (401, 403), f"{CALLER} is refused: {response.json()}"
        return
    status, code = refusal
    assert response.status_code == status, f"{CALLER} is answered {response.status_code}, not {status}"
    assert case.method.upper() == "HEAD" or response.json()["code"] == code, response.json()
    assert response.headers.get("www-authenticate"), "it does not say how to be known"
