"""tc(8): one process of it for each node, as long as the guest lives.

Every trial needs it at least twice, and in a guest a process start costs as much as a thousand packets. It runs as
`tc -batch`, which carries out a line as soon as it gets it; the answer to a `show` is one line of JSON, and so says
that what came before has been done.
"""

import contextlib
import json
import os
import subprocess

from conformance.guest.netns import inside

#: what -force makes of a line that fails: tc's own words, this, and on with the next line
_FAILED = "Command failed"


class _Tc:
    def __init__(self, node):
        with inside(node):
            self._process = subprocess.Popen(
                ["tc", "-statistics", "-json", "-force", "-batch", "-"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
            )  # fmt: skip
        os.set_blocking(self._process.stderr.fileno(), False)
        # Where memory runs out it is the stack that goes. In the host room nobody may need to say so.
        with contextlib.suppress(PermissionError), open(f"/proc/{self.pid}/oom_score_adj", "w") as f:
            f.write("-1000")

    @property
    def pid(self):
        return self._process.pid

    def __call__(self, lines):
        """Carry out `lines`; returns what `qdisc show` then shows. Raises RuntimeError with tc's words."""
        text = "".join(f"{line}\n" for line in (*lines, "qdisc show"))
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(text.encode())
            self._process.stdin.flush()
        answer = self._process.stdout.readline()
        words = (self._process.stderr.read() or b"").decode("utf-8", "replace").strip()
        if _FAILED in words or not answer:
            raise RuntimeError(f"tc: {words or 'it ended'}")
        return json.loads(answer)


_RUNNING = {}


def _of(node):
    if node not in _RUNNING:
        _RUNNING[node] = _Tc(node)
    return _RUNNING[node]


def pids():
    """Of those that run: they outlive a trial."""
    return {tc.pid for tc in _RUNNING.values()}


def run(node, lines):
    """Run tc commands (without the leading `tc`) in `node`'s namespace; raises RuntimeError with tc's words."""
    _of(node)(lines)


def read_qdiscs(node, interfaces):
    """`tc -s -j qdisc show` of these interfaces: options as the kernel holds them, and counters."""
    return [q for q in _of(node)(()) if q.get("dev") in interfaces]
