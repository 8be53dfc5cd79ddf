"""End a session in which the suite itself failed with pytest's status of an internal error, 3.

pytest would end with 1, as if a stack violated: it counts an unexpected exception in a test as a failure of this test,
and knows no status for one at a session's end.
"""

from collections.abc import Generator
from typing import Any

import pytest

from conformance.model.errors import UserError
from conformance.suite.items import JudgedItem, LabFault, OutsideZone
from conformance.support.console import mistake

#: how a test of ours may end; any other exception is a fault of the suite
_ENDINGS = (LabFault, OutsideZone, pytest.skip.Exception, pytest.fail.Exception)


class Faults:
    """Raises faults of the suite where pytest takes them for internal errors."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
        if isinstance(item, JudgedItem) and call.excinfo and not isinstance(call.excinfo.value, _ENDINGS):
            raise call.excinfo.value
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, Any, Any]:
        """Change the status only of a session without violations: those are certain, whatever else failed."""
        try:
            return (yield)
        except pytest.exit.Exception:
            raise
        except Exception as error:
            status = pytest.ExitCode.INTERNAL_ERROR
            if isinstance(error, UserError):
                session.config.get_terminal_writer().line(f"ERROR: {mistake(error)}", red=True)
                status = pytest.ExitCode.USAGE_ERROR
            else:
                session.config.notify_exception(pytest.ExceptionInfo.from_current(), session.config.option)
            if session.exitstatus != pytest.ExitCode.TESTS_FAILED:
                session.exitstatus = status
