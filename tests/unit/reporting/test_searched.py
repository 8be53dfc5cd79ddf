"""What `conformance dev search` prints."""

import io

from conformance.commands.search import Searched, Sought
from conformance.engine.benches import Choice
from conformance.model.search.goals import GOALS
from conformance.reporting.text import dev
from conformance.support.console import Console


def test_a_scenario_whose_repeats_say_nothing_is_told_in_words():
    console = Console(file=io.StringIO(), width=200)
    sought = Sought(goal=GOALS["loss"], document={}, compared=None, repeated=False, messages=[])
    searched = Searched(
        scheme="reno/fake/1", against="reno/linux-tcp/7", seed=1, tries=3, best={}, sought=(sought,), results="",
        algorithm="reno", choice=Choice(),
    )  # fmt: skip
    dev.show_searched(searched, console)
    assert console.file.getvalue().startswith(
        "most packets dropped by the queue: its repeats show nothing\n3 scenarios"
    )
