"""Play the document's stack, and keep its packets and the states that it says in tests/unit/model/states.json.gz.

    python tests/record_states.py [--program FILE]

The program is the built adapter's, or --program. What conformance/model/captures/states.py finds in these packets is
compared with what the sender says.
"""

import gzip
import json
import pathlib
import subprocess

import click
import numpy

from conformance.commands import document_play
from conformance.model.diagnosis import flow as flows

RECORD = pathlib.Path(__file__).parent / "unit" / "model" / "states.json.gz"
#: {name: (Mbit/s, ms, queue in BDP, seconds)}: 8, 17, 33 and 33 packets a round trip; all but one until ProbeRTT
PATHS = {"10 ms": (10, 10, 4, 6), "20 ms": (10, 20, 4, 1), "40 ms": (10, 40, 4, 6), "80 ms": (5, 80, 4, 6.5)}
REQUEST_BYTES = 200


def play(program, rate_mbps, rtt_ms, queue_bdp, seconds, *more):
    """Return (packets, states): rows of µs since the one before, bytes, µs to the way's end or -1; [seconds, state]."""
    words = [f"rate_mbps={rate_mbps}", f"rtt_ms={rtt_ms}", f"queue=bdp:{queue_bdp}", f"seconds={seconds}", "packets=1"]
    lines = subprocess.run(
        [program, "play", "write=0:1e9", *words, *more], capture_output=True, text=True, check=True
    ).stdout.splitlines()  # fmt: skip
    captured, outcome = (json.loads(line) for line in lines)
    sent_s, sizes, out_s, _ = numpy.array(captured["packets"]).T
    sent_us = numpy.round(sent_s * 1e6)
    travel_us = numpy.where(out_s < 0, -1, numpy.round(out_s * 1e6) - sent_us)
    rows = numpy.column_stack([numpy.diff(sent_us, prepend=0), sizes, travel_us]).astype(int).tolist()
    return rows, outcome["states"]


def flow_of(rows, rate_mbps, rtt_ms):
    """Return the Flow of what play() returned, and when its first packet was sent."""
    after_us, sizes, travel_us = numpy.array(rows).T
    sent_s, rtt_s = numpy.cumsum(after_us) / 1e6, rtt_ms / 1e3
    out_s = numpy.where(travel_us < 0, numpy.nan, sent_s + travel_us / 1e6)
    request = numpy.array([1.5 * rtt_s]), numpy.array([REQUEST_BYTES])
    path = {"forward_s": rtt_s / 2, "back_s": rtt_s / 2, "bytes_per_s": rate_mbps * 1e6 / 8}
    flow = flows.of_arrays(sent_s, sizes, out_s, *request, **path)
    return flow, float(sent_s[0])


def recorded():
    """Return {name: (Flow, [(when, state)])}, with times since the first packet."""
    plays = json.loads(gzip.decompress(RECORD.read_bytes()))
    shown = {}
    for name, (rows, states) in plays.items():
        flow, began_s = flow_of(rows, *PATHS[name][:2])
        shown[name] = flow, [(at_s - began_s, state) for at_s, state in states]
    return shown


@click.command(help=__doc__)
@click.option("--program")
def main(program):
    plays = {name: play(program or str(document_play.program()), *of) for name, of in PATHS.items()}
    RECORD.write_bytes(gzip.compress(json.dumps(plays, separators=(",", ":")).encode(), mtime=0))


if __name__ == "__main__":
    main()
