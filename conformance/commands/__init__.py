"""The computations of the commands, one module for each command, which is imported when it is first named."""

# ruff: noqa: F401
from typing import TYPE_CHECKING

from conformance.support import lazy

if TYPE_CHECKING:  # what the command line names
    # isort: off
    from conformance.commands import adapter_check, adapter_new, bench, bugs, clause, compare, compare_places
    from conformance.commands import (
        compare_sides,
        cross,
        doctor,
        document_check,
        document_play,
        expect,
        export,
        false_alarms,
        fidelity,
    )
    from conformance.commands import gate, gate_budget, identify, inventory, matrix, merge, mutants, proxy_check
    from conformance.commands import record, run, scenario, search, split_accuracy, split_analyze, split_measure
    from conformance.commands import study, trace, tracing, why, zones
else:
    __getattr__ = lazy.modules_of(__name__)
