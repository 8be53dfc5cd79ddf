"""Benches of stacks that a machine may lack."""

import pytest

from conformance.engine import benches
from conformance.model.errors import UserError


@pytest.fixture(scope="session")
def bench_of():
    """Return a function that gives a stack's bench by name; if it is not built, it skips the test and says why."""

    def find(stack):
        try:
            return benches.find(benches.Choice(stack=stack))
        except UserError as error:
            pytest.skip(str(error))

    return find
