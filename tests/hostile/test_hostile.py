"""Every named case, and a short deterministic fuzz: one sentence, nothing left, nothing touched."""

import pytest

from tests.hostile import cases
from tests.hostile.scratch import Scratch
from tests.hostile.server import Plan, Server
from tests.hostile.verdict import BAD

SEED = 20
INPUTS = 40  # of all kinds together


@pytest.fixture(scope="module")
def server():
    scratch = Scratch.make()
    server = Server(scratch, Plan("test"))
    yield server
    server.close()
    scratch.remove()


def failures(server, names):
    results = [server.run(name) for name in names]
    return [
        f"{result.case}: {result.problems[0]}\n{result.err[-500:]}"
        for result in results
        if result.outcome in BAD
    ]


@pytest.mark.timeout(900)  # a machine may be busy; inputs that hang are stopped much sooner
@pytest.mark.parametrize("kind", cases.KINDS)
def test_hostile_input_ends_in_one_sentence(server, kind):
    drawn = [name for name in cases.generated(SEED, INPUTS) if name.startswith(f"{kind}/")]
    failed = failures(server, [*cases.corpus(kind), *drawn])
    assert not failed, "\n\n".join([*failed, "Run one again: python -m tests.hostile --case NAME"])
