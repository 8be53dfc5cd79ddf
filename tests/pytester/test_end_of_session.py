"""What a session ends with: of BBRv3, what of the draft is not kept, in the order that a person reads."""


def test_the_list_of_failures_comes_before_what_a_person_reads_first(suite):
    lines = suite("-m", "bbrv3 and smoke", kind="bad").stdout.str().splitlines()
    (begin,) = (n for n, line in enumerate(lines) if "= bbrv3: what is not kept =" in line)
    assert any(line.startswith("FAILED") for line in lines[:begin])
    assert lines[begin + 1].startswith("draft-ietf-ccwg-bbr-06, ")
    assert not any(line.startswith("FAILED") or "= zones =" in line for line in lines[begin:])
    assert " failed" in lines[-1] and len(lines) - begin <= 40
