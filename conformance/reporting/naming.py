"""Name schemes, settings and numbers of trials as reports show them."""

from collections.abc import Iterable, Mapping

from conformance.model.groups import grouped
from conformance.model.judging.zone import Interval
from conformance.model.networks.setting import Setting
from conformance.model.trials.trial import SHORT_DIGEST, Scheme
from conformance.support.console import count

#: most places that are named with their margin
_MOST_PLACES = 4


def margins(permitted: Mapping[str, Interval], noun: str = "cell") -> list[str]:
    """Return each margin in words, with the places that have it, the margin of most places first."""
    places_of = grouped((interval.margin.words, place) for place, interval in permitted.items())
    return [
        f"{', '.join(places) if len(places) <= _MOST_PLACES else count(len(places), noun)}: {words}"
        for words, places in sorted(places_of.items(), key=lambda pair: -len(pair[1]))
    ]


def labels(schemes: Iterable[Scheme]) -> dict[Scheme, str]:
    """Return {scheme: its name in reports}: its id, with digests of what tells it from others with the same id.

    These are the digest of the stack if several builds have the same id, and that of the kernel if one build ran on
    several kernels of one release.
    """
    every = dict.fromkeys(schemes)
    builds = grouped((scheme.id, scheme.stack_digest) for scheme in every)
    kernels = grouped(((scheme.id, scheme.stack_digest), scheme.kernel_digest) for scheme in every)

    def label(scheme: Scheme) -> str:
        digests = [scheme.stack_digest[:SHORT_DIGEST]] if len({*builds[scheme.id]}) > 1 else []
        if len({*kernels[scheme.id, scheme.stack_digest]}) > 1:
            digests.append(f"kernel {scheme.kernel_digest[:SHORT_DIGEST]}")
        return f"{scheme.id} ({', '.join(digests)})" if digests else scheme.id

    return {scheme: label(scheme) for scheme in every}


def trials_words(each: Iterable[int]) -> str:
    """Return how many trials each result has: "5 trials", or "5 to 20 trials" if the numbers differ."""
    numbers = set(each)
    least, most = min(numbers, default=0), max(numbers, default=0)
    return f"{least} to {most} trials" if least != most else count(most, "trial")


def settings(setting: Setting) -> str:
    """Return a profile's name and its settings, parts of which options of `conformance run` may have replaced."""
    offload = "on" if setting.offload else "off"
    beside = f", competing with a {setting.rival} flow" if setting.rival else ""
    network = f"queue {setting.queue}, offload {offload}"
    return f"profile {setting.profile}: {network}, {setting.transfer_s:g} s transfers{beside}"
