"""`make attest`: replay the golden trials, and attest the present sources if all results equal those on record.

For that, all goldens of the default kernel must be compared. Other kernels need not be built.

python tests/golden/attest.py              replay; attest, or name the first trial and field that differ (status 1)
python tests/golden/attest.py --rebuilt stack
                                           compare all but the digests of stacks (or of the kernel); if all are equal,
                                           record them as those of the present builds, and attest
python tests/golden/attest.py --raise      replay and record: the present sources get a lab version of their own
python tests/golden/attest.py --record     replay and record under the present version: for new goldens, and for
                                           kernels or stacks that were rebuilt; the sources must be attested
"""

import argparse
import sys
import time

import trials

from conformance.kernel.store import DEFAULT_NAME
from conformance.lab import version


def main(arguments=None):
    """Return the exit status: 0 if attested or recorded, 1 if a golden differs, 2 if it cannot be done here."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--raise", dest="raised", action="store_true", help="record under a new lab version")
    how.add_argument("--rebuilt", choices=trials.BUILT, action="append", help="leave the digests of these builds out")
    how.add_argument("--record", action="store_true", help="record under the present lab version")
    options = parser.parse_args(arguments)
    if options.record and not trials.attested():
        print("attest: the present sources are not attested: run `make attest` first, or give --raise")
        return 2
    began, replays, recorded, different, left_out = time.monotonic(), [], trials.recorded(), None, []
    for replayed in trials.replay():
        replays.append(replayed)
        name, before = replayed.golden.name, recorded.get(replayed.golden.name)
        if options.rebuilt and before is not None and replayed.line:
            before = trials.as_built(replayed.line, before, options.rebuilt)
        why_not = replayed.why_not or ("not recorded yet" if before is None else trials.obstacle(replayed.line, before))
        difference = None if why_not else trials.first_difference(before, replayed.line)
        if why_not:
            left_out.append((name, replayed.golden.kernel))
        different = different or (difference and (name, *difference))
        print(f"{name:24} {why_not or ('differs' if difference else 'equal')}", flush=True)
    print(f"{len(replays)} goldens, {len(replays) - len(left_out)} compared, {time.monotonic() - began:.0f} s")
    if options.raised or options.record:
        trials.record(replays)
        version.attest(version.source_digest() if options.raised else version.current_version())
        print(f"recorded; lab version {version.current_version()}")
        return 0
    if different:
        name, pointer, was, now = different
        print(f"attest: {name} differs at {pointer}: recorded {was!r:.200}, now {now!r:.200}")
        print("attest: mend the sources; or, where results are meant to change, raise the version: make attest-raise")
        return 1
    lacking = {
        kernel: [name for name, of in left_out if of == kernel] for kernel in dict.fromkeys(k for _, k in left_out)
    }
    if names := lacking.pop(DEFAULT_NAME, []):
        print(f"attest: not compared: {', '.join(names)}; build what they name above, or record them with --record")
        return 2
    if options.rebuilt:
        trials.record(replays)
    version.attest(version.current_version())
    print(f"the present sources make the results of lab version {version.current_version()}{_but(lacking)}")
    return 0


def _but(lacking):
    """Name the goldens of other kernels that were not compared."""
    of_kernels = [f"{', '.join(names)} (kernel {kernel})" for kernel, names in lacking.items()]
    return f"; not compared: {'; '.join(of_kernels)}" if of_kernels else ""


if __name__ == "__main__":
    sys.exit(main())
