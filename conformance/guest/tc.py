"""tc(8): one process of it for each node, as long as the guest lives.

Every trial needs it at least twice, and in a guest a process start costs as much as a thousand packets. It runs as
`tc -batch`, which carries out a line as soon as it gets it; the answer to a `show` is one line of JSON, and so says
that what came before has been done.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import subprocess

from conformance.guest import rtnetlink
from conformance.guest.netns import inside
from conformance.guest.process import set_oom_score

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import IO

    from conformance.guest.netns import Node

#: what -force makes of a line that fails: tc's own words, this, and on with the next line
_FAILED = "Command failed"
#: far more than it ever takes; in virtual time waiting costs nothing
_PATIENCE_MS = 10_000
#: what stands in the JSON of a discipline that tc does not know, in place of its options
_UNKNOWN = re.compile(rb"\[Unknown qdisc, optlen=\d+\] ?")
#: begins a line that is a message for the kernel (model/emulation/dualpi2.py), and no command of tc's
_MESSAGE = "rtnetlink "
_RUNNING: dict[Node, _Tc] = {}


class _Tc:
    def __init__(self, node: Node) -> None:
        with inside(node):
            self._process = subprocess.Popen(
                ["tc", "-statistics", "-json", "-force", "-batch", "-"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
            )  # fmt: skip
        self._in, self._out, self._err = _pipes(self._process)
        os.set_blocking(self._err.fileno(), False)
        # Like the rest of the harness it runs when it is due, whatever it ran before, and is not what memory ends.
        os.sched_setscheduler(self.pid, os.SCHED_FIFO, os.sched_param(1))
        set_oom_score(self.pid, -1000)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def __call__(self, lines: Sequence[str]) -> list[dict[str, object]]:
        """Carry out `lines`. Return what `qdisc show` then shows. Raises RuntimeError with tc's words."""
        text = "".join(f"{line}\n" for line in (*lines, "qdisc show"))
        with contextlib.suppress(BrokenPipeError):
            self._in.write(text.encode())
            self._in.flush()
        poll = select.poll()
        poll.register(self._out, select.POLLIN)
        answer = self._out.readline() if poll.poll(_PATIENCE_MS) else b""
        words = (self._err.read() or b"").decode("utf-8", "replace").strip()
        if not answer.endswith(b"\n"):
            # A line that it cannot parse ends it, in spite of -force; one that cannot be answered leaves it waiting.
            self._end()
            raise RuntimeError(f"tc: {words or 'it ended without a word'}")
        if _FAILED in words:
            raise RuntimeError(f"tc: {words}")
        found: list[dict[str, object]] = json.loads(_UNKNOWN.sub(b"", answer))
        return found

    def _end(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._in, self._out, self._err):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


def _pipes(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
    """Return the pipes of a process that was started with all three."""
    if process.stdin is None or process.stdout is None or process.stderr is None:
        raise ValueError("a process without pipes")
    return process.stdin, process.stdout, process.stderr


def _of(node: Node) -> _Tc:
    if node not in _RUNNING or _RUNNING[node].ended:
        _RUNNING[node] = _Tc(node)
    return _RUNNING[node]


def pids() -> set[int]:
    """Return the process ids of those that run: they outlive a trial."""
    return {tc.pid for tc in _RUNNING.values() if not tc.ended}


def run(node: Node, lines: Sequence[str]) -> None:
    """Run tc commands (without the leading `tc`) in `node`'s namespace; raises RuntimeError with tc's words."""
    _of(node)([line for line in lines if not line.startswith(_MESSAGE)])
    # They come last in their interface's chain.
    for line in lines:
        if line.startswith(_MESSAGE):
            rtnetlink.send(node, *line.removeprefix(_MESSAGE).split())


def read_qdiscs(node: Node, interfaces: Collection[str]) -> list[dict[str, object]]:
    """Return `tc -s -j qdisc show` of these interfaces: options as the kernel holds them, and counters."""
    return [_whole(node, q) for q in _of(node)(()) if q.get("dev") in interfaces]


def _whole(node: Node, shown: dict[str, object]) -> dict[str, object]:
    """Return what is shown of a queue, with what tc leaves out where it does not know it."""
    if shown.get("kind") != "dualpi2":
        return shown
    handle = int(str(shown["handle"]).removesuffix(":"), 16) << 16
    return {**shown, **rtnetlink.dualpi2(node, str(shown["dev"]), handle)}
