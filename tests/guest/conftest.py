"""Stacks that a machine may lack."""

import pytest

from conformance.engine import benches
from conformance.model.errors import UserError


@pytest.fixture(scope="session")
def bench_of():
    """Return a function: a stack's name -> its bench. The test is skipped, with the cause, where it is not built."""

    def find(stack):
        try:
            return benches.find(benches.Choice(stack=stack))
        except UserError as error:
            pytest.skip(str(error))

    return find
