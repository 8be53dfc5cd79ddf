"""Run tc(8) commands by one tc process for each node, which lives as long as the guest.

Every trial needs tc at least twice, and starting a process costs a guest as much as a thousand packets. `tc -batch`
carries out a line as soon as it gets it. Its answer to a `show` is one line of JSON, which also says that all earlier
lines have been carried out.
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

#: with -force, tc prints its error message and this after a line that fails, and goes on with the next line
_FAILED = "Command failed"
#: ms to wait for an answer, far more than tc ever takes; in virtual time waiting costs nothing
_PATIENCE_MS = 10_000
#: what tc writes into the JSON instead of the options of a queueing discipline that it does not know
_UNKNOWN = re.compile(rb"\[Unknown qdisc, optlen=\d+\] ?")
#: begins a line that is an rtnetlink message for the kernel (model/emulation/dualpi2.py) and not a tc command
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
        # Like the rest of the harness, it runs when it is due, however much it ran before, and is not killed when
        # memory runs out.
        os.sched_setscheduler(self.pid, os.SCHED_FIFO, os.sched_param(1))
        set_oom_score(self.pid, -1000)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def __call__(self, lines: Sequence[str]) -> list[dict[str, object]]:
        """Carry out `lines`. Return what `qdisc show` then shows. Raises RuntimeError with tc's error message."""
        text = "".join(f"{line}\n" for line in (*lines, "qdisc show"))
        with contextlib.suppress(BrokenPipeError):
            self._in.write(text.encode())
            self._in.flush()
        poll = select.poll()
        poll.register(self._out, select.POLLIN)
        answer = self._out.readline() if poll.poll(_PATIENCE_MS) else b""
        words = (self._err.read() or b"").decode("utf-8", "replace").strip()
        if not answer.endswith(b"\n"):
            # A line that tc cannot parse ends it, in spite of -force; one that cannot be answered leaves it waiting.
            self._end()
            raise RuntimeError(f"tc: {words or 'it ended without a message'}")
        if _FAILED in words:
            raise RuntimeError(f"tc: {words}")
        answers: list[dict[str, object]] = json.loads(_UNKNOWN.sub(b"", answer))
        return answers

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
    """Return the process ids of the running tc processes, which outlive a trial."""
    return {tc.pid for tc in _RUNNING.values() if not tc.ended}


def run(node: Node, lines: Sequence[str]) -> None:
    """Run tc commands (without the leading `tc`) in `node`'s namespace. Raises RuntimeError with tc's error message."""
    _of(node)([line for line in lines if not line.startswith(_MESSAGE)])
    # The qdiscs that these messages add come last in their interface's chain.
    for line in lines:
        if line.startswith(_MESSAGE):
            rtnetlink.send(node, *line.removeprefix(_MESSAGE).split())


def read_qdiscs(node: Node, interfaces: Collection[str]) -> list[dict[str, object]]:
    """Return `tc -s -j qdisc show` of these interfaces: options as the kernel holds them, and counters."""
    return [_whole(node, q) for q in _of(node)(()) if q.get("dev") in interfaces]


def read_chain(node: Node, interface: str) -> list[dict[str, object]]:
    """Return read_qdiscs() of an interface. An htb has the rate of its class, too, in bytes per second."""
    return [
        {**shown, "class_bytes_per_s": rtnetlink.class_rate(node, interface)} if shown.get("kind") == "htb" else shown
        for shown in read_qdiscs(node, [interface])
    ]


def _whole(node: Node, shown: dict[str, object]) -> dict[str, object]:
    """Return what tc shows of a queue, completed by rtnetlink if tc does not know its kind."""
    if shown.get("kind") != "dualpi2":
        return shown
    handle = int(str(shown["handle"]).removesuffix(":"), 16) << 16
    return {**shown, **rtnetlink.dualpi2(node, str(shown["dev"]), handle)}
