"""What a session of pytest measures: in the background, ahead of the tests, and more where a test cannot tell."""

import collections

from conformance.catalogue import expectations
from conformance.engine import benches, runs
from conformance.model import expectation
from conformance.model.errors import UserError
from conformance.model.verdict import last_look, looks, refuse_blind
from conformance.results import store
from conformance.suite.items import CellItem, chosen


def seeds(option):
    """(seeds up to the budget, numbers of them at which a cell is judged)."""
    runs.seeds(option.trials)
    most = last_look(option.trials, option.max_trials)
    return runs.seeds(most), looks(option.trials, most)


class Campaign:
    """The session's bench and store, and the run that measures ahead of the tests."""

    def __init__(self, config, items):
        option = config.option
        if option.workers is not None and option.workers < 1:
            raise UserError(f"--workers {option.workers}", "it must be 1 or more")
        self._bench = benches.find(chosen(option))
        self._store = store.Store(option.results)
        self._seeds, numbers = seeds(option)
        # Of pytest-xdist's workers each makes its own trials, and they are as many as they were asked to be.
        self._workers = option.workers or (1 if hasattr(config, "workerinput") else None)
        self._looks = runs.Looks.until_clear(numbers, self._verdicts)
        self.numbers = numbers
        self._judging, self._found = collections.defaultdict(list), {}
        families = collections.defaultdict(set)
        known = () if option.baseline else expectations.of(self._bench)
        for item in items:
            families[item.zone.id].update(item.settings)
        # Of pytest-xdist's workers each would say so by itself, with a traceback: there the plugin does.
        if not hasattr(config, "workerinput"):
            for zone in {item.zone.id: item.zone for item in items if isinstance(item, CellItem)}.values():
                refuse_blind(zone, len(families[zone.id]), numbers[-1])
        for item in items:
            item.family = len(families[item.zone.id])
            item.expected = expectation.find(known, item.zone.id, item.place)
            for setting in item.settings:
                self._judging[item.zone.algorithm, setting].append(item)
        self._run = None if hasattr(config, "workerinput") else self._start(self._judging, self._looks)

    def _start(self, keys, when):
        return runs.Run(self._bench, self._store, keys, self._seeds, self._workers, looks=when)

    def _verdicts(self, key, measurements):
        """Those of all tests that are about this cell alone."""
        return (item.judge({key[1]: measurements}) for item in self._alone(key))

    def _alone(self, key):
        return [item for item in self._judging[key] if isinstance(item, CellItem)]

    def measure(self, algorithm, settings, number):
        """{setting: measurements}, in order of seed. Raises UserError.

        At least `number` of each, but of cells that have tests of their own as many as these needed: else a stack whose
        shares of paths are unclear would have every cell measured four times as often.
        """
        keys = [(algorithm, setting) for setting in settings]
        if self._run is not None:
            self._found.update((key, self._run.result(*key)) for key in keys if key not in self._found)
        else:
            self._measure([key for key in keys if key not in self._found], self._looks)
        # What rests on several settings is known to be unclear only when all of them are there.
        if few := [key for key in keys if len(self._found[key]) < number and not self._alone(key)]:
            if self._run is not None:
                self._run.wait()  # in real time, trials would disturb each other
            self._measure(few, runs.Looks(numbers=(number,)))
        return {key[1]: self._found[key] for key in keys}

    def _measure(self, keys, when):
        if not keys:
            return
        with self._start(keys, when) as run:
            self._found.update((key, run.result(*key)) for key in keys)

    def close(self):
        if self._run is not None:
            self._run.close()
