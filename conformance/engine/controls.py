"""Try another stack where the one under test failed: does it get through the same networks, with the same seeds?

For TCP that is the kernel's, for QUIC the first of QUIC that is built. The same client fetches from it, unless that is
one of the stack's own programs. It has the same algorithm if it offers that.
"""

import dataclasses
import threading
from collections.abc import Callable, Collection, Iterable, Mapping

from conformance.engine import benches
from conformance.engine.benches import Bench, Choice
from conformance.lab import adapter as adapters
from conformance.lab import manifest
from conformance.model.clauses.seen import never_came
from conformance.model.errors import UserError
from conformance.model.networks.setting import Setting
from conformance.model.trials.trial import KERNEL_STACK, Control, Measurement, Outcome, Trial, family_of, is_in_kernel

#: what `setup.sh quic` and the README build comes first
QUIC = ("quinn", "aioquic", "ngtcp2-1.11", "quic-go")
#: the algorithms to fall back to
_USUAL = ("cubic", "reno")
#: outcomes that say what became of a control: of others, the emulator or the adapter is the reason
_TELLING = (Outcome.OK, Outcome.TIMEOUT, Outcome.FAILED)


def beside(bench: Bench) -> Bench | None:
    """Return the bench of the stack to try where this bench's fails; None if there is none on this machine."""
    adapter = bench.adapter
    if is_in_kernel(adapter.name):
        return None
    is_tcp = adapter.manifest.transport == "tcp"
    client = adapters.COMMON if adapter.client is None else str(adapter.client.manifest.path)
    for stack in (KERNEL_STACK,) if is_tcp else QUIC:
        try:
            if family_of(stack) == family_of(adapter.name) or not (is_tcp or adapters.is_built(manifest.read(stack))):
                continue
            return benches.find(Choice(stack=stack, client=client, kernel=bench.choice.kernel))
        except UserError:
            continue
    return None


class Controls:
    """Tries the stack beside a bench's, which it looks up when it is first needed. `elsewhere`: see Run's executor."""

    def __init__(self, bench: Bench, elsewhere: Callable[[Bench], Bench] = lambda bench: bench) -> None:
        self._bench, self._elsewhere = bench, elsewhere
        self._beside: Bench | None = None
        self._looked = False
        self._lock = threading.Lock()

    def tried(
        self, failed: Measurement, seeds: Iterable[int], known: Iterable[Measurement], cancelled: threading.Event
    ) -> Measurement:
        """Return a failed trial's measurement with what becomes of the control with these seeds in the same setting.

        `known`: measurements in the same setting, whose controls need not be tried again.
        """
        bench, trial = self._found(), failed.trial
        if bench is None or (algorithm := _algorithm(bench, trial.scheme.algorithm)) is None:
            return failed
        scheme = bench.scheme(algorithm).id
        outcomes: dict[int, Outcome] = {}
        for earlier in known:
            if earlier.control is not None and earlier.control.scheme == scheme:
                outcomes |= earlier.control.trials
        missing = [seed for seed in dict.fromkeys((trial.seed, *seeds)) if seed not in outcomes]
        outcomes |= self._outcomes(bench, algorithm, trial.setting, missing, cancelled)
        if trial.seed not in outcomes:
            return failed
        return dataclasses.replace(failed, control=Control(scheme=scheme, trials=dict(sorted(outcomes.items()))))

    def _found(self) -> Bench | None:
        with self._lock:
            if not self._looked:
                other = beside(self._bench)
                self._beside, self._looked = other and self._elsewhere(other), True
            return self._beside

    def _outcomes(
        self, bench: Bench, algorithm: str, setting: Setting, seeds: Collection[int], cancelled: threading.Event
    ) -> Mapping[int, Outcome]:
        room = bench.place(algorithm).room
        if not seeds or room is None:
            return {}
        # Packets need not be kept; a trial is the same without.
        trials: list[Trial] = bench.trials(algorithm, dataclasses.replace(setting, packets=False), seeds)
        measurements = room.run(bench.adapter, [trials], cancelled)
        ended = {m.trial.seed: Outcome.OK if never_came(m) else m.outcome for m in measurements}
        return {seed: outcome for seed, outcome in ended.items() if outcome in _TELLING}


def _algorithm(bench: Bench, wanted: str) -> str | None:
    """Return the algorithm that a control uses; None if it can use none."""
    return next(
        (
            name
            for name in (wanted, *_USUAL)
            if name in bench.adapter.manifest.offered()
            and not (bench.adapter.why_not(name) or bench.place(name).why_not)
        ),
        None,
    )
