"""Which version of BBR a kernel's "bbr" is, from what it exports and the gains that it was seen to use."""

import pytest

from conformance.guest import netlink
from conformance.model.emulation import congestion

V1_GAINS = {"pacing_gains": [0.34375, 0.75, 1.0, 1.25, 2.88671875], "cwnd_gains": [1.0, 2.0, 2.88671875]}
V3_GAINS = {"pacing_gains": [0.34375, 0.90625, 1.0, 1.25, 2.7734375], "cwnd_gains": [1.0, 2.0, 2.25]}


def found(name="bbr", version=None, info_bytes=20, **gains):
    return {"name": name, "bbr": {"info_bytes": info_bytes, "version": version, **(gains or V1_GAINS)}}


V1, V2 = found(), found("bbr2", 2, 52)
V3 = found(version=3, info_bytes=52, **V3_GAINS)
CUBIC = {"name": "cubic", "bbr": None}


def test_the_export_tells_the_version():
    assert [congestion.exported_generation(f) for f in (V1, V2, V3, CUBIC, None)] == [1, 2, 3, None, None]


def test_the_gains_seen_tell_version_3_from_the_others():
    assert [congestion.seen_generations(f) for f in (V1, V2, V3, CUBIC)] == [[1, 2], [1, 2], [3], None]
    cruising = found(pacing_gains=[1.0, 1.25], cwnd_gains=[2.0])
    assert congestion.seen_generations(cruising) == [1, 2, 3]
    mutant = found(pacing_gains=[1.0, 1.5], cwnd_gains=[2.0])
    assert congestion.seen_generations(mutant) == []


@pytest.mark.parametrize(
    ("algorithm", "seen", "words"),
    [
        ("bbrv1", V1, None),
        ("bbrv2", V2, None),
        ("bbrv3", V3, None),
        ("bbr", V3, None),
        ("cubic", CUBIC, None),
        ("bbrv3", None, None),  # of user-space stacks the kernel says nothing
        ("bbrv3", V1, "this kernel's bbr is BBR version 1"),
        ("bbrv1", V3, "this kernel's bbr is BBR version 3"),
        ("bbrv2", CUBIC, "cubic, not a BBR"),
    ],
)
def test_a_kernel_that_has_another_version_is_named(algorithm, seen, words):
    why_not = congestion.not_as_asked(algorithm, seen)
    assert why_not is None if words is None else words in why_not


def test_both_layouts_of_tcp_bbr_info_are_read():
    mainline = bytes(12) + (739).to_bytes(4, "little") + (512).to_bytes(4, "little")
    assert netlink.parse_bbr_info(mainline) == {
        "info_bytes": 20, "version": None, "pacing_gain": 739 / 256, "cwnd_gain": 2.0,
    }  # fmt: skip
    google = mainline + bytes(19) + b"\3" + bytes(12)
    assert netlink.parse_bbr_info(google)["version"] == 3


def test_a_result_keeps_both_kinds_of_evidence():
    about = congestion.describe(V3)
    assert about["bbr"]["exported_version"] == 3 and about["bbr"]["versions_with_the_gains_seen"] == [3]
    assert congestion.describe(CUBIC) == {"name": "cubic"} and congestion.describe(None) is None
