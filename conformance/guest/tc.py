"""tc(8): one process of it for each node, as long as the guest lives.

Every trial needs it at least twice, and in a guest a process start costs as much as a thousand packets. It runs as
`tc -batch`, which carries out a line as soon as it gets it; the answer to a `show` is one line of JSON, and so says
that what came before has been done.
"""

import contextlib
import json
import os
import select
import subprocess

from conformance.guest.netns import inside
from conformance.guest.process import set_oom_score

#: what -force makes of a line that fails: tc's own words, this, and on with the next line
_FAILED = "Command failed"
#: far more than it ever takes; in virtual time waiting costs nothing
_PATIENCE_MS = 10_000
_RUNNING = {}


class _Tc:
    def __init__(self, node):
        with inside(node):
            self._process = subprocess.Popen(
                ["tc", "-statistics", "-json", "-force", "-batch", "-"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
            )  # fmt: skip
        os.set_blocking(self._process.stderr.fileno(), False)
        # Like the rest of the harness it runs when it is due, whatever it ran before, and is not what memory ends.
        os.sched_setscheduler(self.pid, os.SCHED_FIFO, os.sched_param(1))
        set_oom_score(self.pid, -1000)

    @property
    def pid(self):
        return self._process.pid

    @property
    def ended(self):
        return self._process.poll() is not None

    def __call__(self, lines):
        """Carry out `lines`; returns what `qdisc show` then shows. Raises RuntimeError with tc's words."""
        text = "".join(f"{line}\n" for line in (*lines, "qdisc show"))
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(text.encode())
            self._process.stdin.flush()
        poll = select.poll()
        poll.register(self._process.stdout, select.POLLIN)
        answer = self._process.stdout.readline() if poll.poll(_PATIENCE_MS) else b""
        words = (self._process.stderr.read() or b"").decode("utf-8", "replace").strip()
        if not answer.endswith(b"\n"):
            # A line that it cannot parse ends it, in spite of -force; one that cannot be answered leaves it waiting.
            self._end()
            raise RuntimeError(f"tc: {words or 'it ended without a word'}")
        if _FAILED in words:
            raise RuntimeError(f"tc: {words}")
        return json.loads(answer)

    def _end(self):
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


def _of(node):
    if node not in _RUNNING or _RUNNING[node].ended:
        _RUNNING[node] = _Tc(node)
    return _RUNNING[node]


def pids():
    """Of those that run: they outlive a trial."""
    return {tc.pid for tc in _RUNNING.values() if not tc.ended}


def run(node, lines):
    """Run tc commands (without the leading `tc`) in `node`'s namespace; raises RuntimeError with tc's words."""
    _of(node)(lines)


def read_qdiscs(node, interfaces):
    """`tc -s -j qdisc show` of these interfaces: options as the kernel holds them, and counters."""
    return [q for q in _of(node)(()) if q.get("dev") in interfaces]
