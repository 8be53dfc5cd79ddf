"""Benches of stacks that a machine may lack."""

import pytest

from conformance.engine import benches
from conformance.model.errors import UserError


@pytest.fixture(scope="module")
def bench():
    """Return the bench of the guest kernel's own TCP."""
    return benches.find()


@pytest.fixture(scope="session")
def bench_of():
    """Return a function that gives a stack's bench by name; if it is not built, it skips the test and says why."""

    def find(stack):
        try:
            return benches.find(benches.Choice(stack=stack))
        except UserError as error:
            pytest.skip(str(error))

    return find


@pytest.fixture(scope="session")
def quic_bench():
    """Return the bench of the system's ngtcp2 if that is 0.12, or else of ngtcp2-1.11 (`./setup.sh quic` has both)."""
    obstacles = []
    for stack in ("ngtcp2", "ngtcp2-1.11"):
        try:
            return benches.find(benches.Choice(stack=stack))
        except UserError as error:
            obstacles.append(str(error))
    pytest.skip("; ".join(obstacles))


@pytest.fixture(params=["usual", pytest.param("quinn", marks=pytest.mark.thorough)])
def server(request, quic_bench, bench_of):
    """Two servers that share no code: an ngtcp2 and quinn."""
    return quic_bench if request.param == "usual" else bench_of("quinn")
