"""Test whether the congestion control of a TCP or QUIC stack conforms: which algorithm does the stack really run?

Scripts, notebooks and other test suites can rely on these names; everything else may change without notice:

- `find_bench(Choice(stack="quinn"))`: find the stack, guest kernel and room to measure with
- `load_zone("cubic/heatmap")`: load a zone that ships, by its id, or one from a file
- `cell_questions(zone, cells)`: ask a zone about some of its cells
- `plan(questions, trials=5, most_trials=20)`: plan what is measured, how often it is looked at, and how strictly judged
- `execute(plan, bench, Store("results.jsonl"))`: measure what the store lacks, and yield answers with verdicts
- `read_results(*paths)`, `judge(zone, measurements)`: judge earlier measurements
- `UserError`: the exception that all of these raise for a user's mistake; its one line says how to fix it

examples/judge_a_stack.py uses all of these. Guests import this file with the system's own Python, which has none of the
suite's dependencies, so the names above are imported only when they are first used.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from conformance.catalogue.questions import cell_questions as cell_questions
    from conformance.engine.api import judge as judge, load_zone as load_zone
    from conformance.engine.benches import Choice as Choice, find as find_bench
    from conformance.engine.execute import execute as execute
    from conformance.model.errors import UserError as UserError
    from conformance.model.judging.session import plan as plan
    from conformance.results.store import Store as Store, read as read_results

#: name -> where it is defined
_EXPORTS = {
    "Choice": "conformance.engine.benches:Choice",
    "Store": "conformance.results.store:Store",
    "UserError": "conformance.model.errors:UserError",
    "cell_questions": "conformance.catalogue.questions:cell_questions",
    "execute": "conformance.engine.execute:execute",
    "find_bench": "conformance.engine.benches:find",
    "judge": "conformance.engine.api:judge",
    "load_zone": "conformance.engine.api:load_zone",
    "plan": "conformance.model.judging.session:plan",
    "read_results": "conformance.results.store:read",
}
__all__ = [
    "Choice",
    "Store",
    "UserError",
    "__version__",
    "cell_questions",
    "execute",
    "find_bench",
    "judge",
    "load_zone",
    "plan",
    "read_results",
]


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'conformance' has no attribute {name!r}")
    import importlib

    module, _, attribute = _EXPORTS[name].partition(":")
    exported = getattr(importlib.import_module(module), attribute)
    globals()[name] = exported
    return exported


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
