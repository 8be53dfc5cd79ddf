"""Group measurements by scheme, and refuse those that must not be mixed, naming what differs."""

import collections
from collections.abc import Iterable

from conformance.model.errors import UserError
from conformance.model.networks.place import Cell
from conformance.model.trials.trial import Measurement, Trial


def by_scheme(measurements: Iterable[Measurement]) -> dict[str, dict[Cell, list[Measurement]]]:
    """Return {scheme's id: {cell: measurements}} of results of one transfer length, each scheme measured in one way.

    Raises UserError that names the two that differ: if any transfers have different lengths (an algorithm that backs
    off over time looks worse the longer it is watched), or if one scheme was measured with two kernels, stacks,
    profiles, rooms or lab versions.
    """
    _one_length(measurements)
    firsts: dict[str, Trial] = {}
    by_scheme_id: dict[str, dict[Cell, list[Measurement]]] = collections.defaultdict(
        lambda: collections.defaultdict(list)
    )
    for m in measurements:
        scheme_id = m.scheme.id
        difference = _difference(firsts.setdefault(scheme_id, m.trial), m.trial)
        if difference:
            what, first, other, mend = difference
            raise UserError(f"results of {scheme_id} are mixed: {what} {first} and {other}", mend)
        by_scheme_id[scheme_id][m.setting.cell].append(m)
    return {scheme_id: dict(cells) for scheme_id, cells in by_scheme_id.items()}


def _one_length(measurements: Iterable[Measurement]) -> None:
    lengths: dict[float, str] = {}
    for m in measurements:
        setting = m.setting
        lengths.setdefault(setting.transfer_s, setting.profile)
        if len(lengths) > 1:
            (length_s, its), (other, others) = lengths.items()
            raise UserError(
                f"results are from transfers of {length_s:g} s (profile {its}) and of {other:g} s (profile {others})",
                "the rate may change with time: choose a length with --transfer-s",
            )


def _difference(trial: Trial, another: Trial) -> tuple[str, str, str, str] | None:
    """Return (what, one's, other's, how to remedy it) for the first thing that differs, or None."""
    a, b = trial.setting, another.setting
    if a.profile != b.profile:
        return "profiles", a.profile, b.profile, "choose one with --profile"
    if trial.scheme.kernel_digest != another.scheme.kernel_digest:
        mine, theirs = (f"{t.scheme.kernel} (digest {t.scheme.kernel_digest})" for t in (trial, another))
        return "kernels", mine, theirs, "choose one by name or digest with --kernel"
    if trial.scheme.stack_digest != another.scheme.stack_digest:
        mine, theirs = (f"{t.scheme.stack_version} (digest {t.scheme.stack_digest})" for t in (trial, another))
        return "stacks", mine, theirs, "give results of one of them"
    ours, other_says = a.to_json(), b.to_json()
    for name in (name for name in ours | other_says if name != "cell"):
        if ours.get(name) != other_says.get(name):
            mine, theirs = repr(ours.get(name)), repr(other_says.get(name))
            return f"profile {a.profile} with {name}", mine, theirs, "give results of one of them"
    for name in ("room", "lab_digest"):
        if getattr(trial, name) != getattr(another, name):
            return (
                name.replace("_", " ") + "s",
                getattr(trial, name),
                getattr(another, name),
                "give results of one of them",
            )
    return None
