"""System calls from patched sites (conformance/kernel/patches/7.2/faster/call-sites.patch) differ in wall time alone.

Two C programs say what a program must not notice: call_sites.c, and a large one that has memory where the table of
patched sites would be.
"""

import dataclasses
import pathlib
import subprocess
import time

import pytest

from conformance.engine import benches
from conformance.lab import adapter, cores, virtual
from conformance.model.errors import UserError
from conformance.support import scratch as scratch_place

pytestmark = pytest.mark.guest

_SOURCE = pathlib.Path(__file__).with_name("call_sites.c")
#: 100 MB from 0x400000 on, so that the table has no room
_LARGE = """
#include <stdio.h>
#include <unistd.h>
char large[100 << 20];
int main(void)
{
    int parent = getppid(), bad = 0;
    large[0x050f0000 - 0x400000] = 1;
    for (int i = 0; i < 100; i++)
        bad += getppid() != parent;
    printf("large: bad %d\\n", bad);
}
"""
#: 150 MB below the program break, past the table
_BREAK = """
#include <stdio.h>
#include <unistd.h>
int main(void)
{
    int parent = getppid(), bad = 0;
    for (int i = 0; i < 150; i++) {
        char *p = sbrk(1 << 20);
        bad += p == (char *)-1 || getppid() != parent;
        if (p != (char *)-1)
            p[1 << 19] = 1;
    }
    printf("break: bad %d\\n", bad);
}
"""
_PROGRAM = """
import subprocess
for words in (["call_sites", "check"], ["large"], ["break"]):
    done = subprocess.run(["/run/scratch/" + words[0], *words[1:]], capture_output=True, text=True)
    print(done.stdout, done.stderr, f"{words[0]}: status {done.returncode}", sep="", flush=True)
"""

#: what processes have patched before and after a start of nothing, and after one of the client
_STARTS = """
import subprocess
def patched():
    with open("/sys/module/call_sites/parameters/patched") as file:
        print("patched", file.read(), end="", flush=True)
def start(program):
    try:
        print(subprocess.run([program], env={{}}, capture_output=True, text=True).stderr, end="")
    except OSError as error:
        print(error)
start("/nothing")
patched()
start("/nothing")
patched()
start("{client}")
patched()
"""


@pytest.fixture(scope="module")
def kernel():
    found = benches.find().place("cubic").kernel
    if not found.seccomp:
        pytest.skip("guests of this kernel run programs under ptrace, whose calls are not patched")
    return found


def console(kernel, program=_PROGRAM, **parameters):
    """Return what the programs say on a kernel with these parameters of call_sites."""
    given = tuple((f"call_sites.{name}", str(value)) for name, value in parameters.items())
    with cores.one_core() as core, scratch_place.folder() as scratch:
        compile_into(scratch / "call_sites", _SOURCE, "-O1", "-pthread")
        for name, text in (("large", _LARGE), ("break", _BREAK)):
            source = scratch / f"{name}.c"
            source.write_text(text)
            compile_into(scratch / name, source, "-no-pie", "-fno-pie")
        (scratch / "program.py").write_text(program)
        guest = virtual.boot(
            dataclasses.replace(kernel, parameters=given), scratch, core, run="/run/scratch/program.py"
        )
        try:
            deadline = time.monotonic() + 120
            while guest.exit_status is None and time.monotonic() < deadline:
                time.sleep(0.05)
        finally:
            guest.end()
        return (scratch / "console.log").read_text(errors="replace")


def compile_into(program, source, *options):
    subprocess.run(["gcc", *options, "-o", str(program), str(source)], check=True)


def test_a_program_does_not_notice(kernel):
    """Registers, threads, signals, children, debuggers and mappings are as without, and so is the virtual time."""
    without, some, all_sites = (console(kernel, after=after) for after in (0, 16, 1))
    assert "patched 0" in without
    assert "patched 1" in some and "patched 1" in all_sites
    for said in (without, some, all_sites):
        assert "call_sites: status 0" in said, said
        assert "large: bad 0" in said and "break: bad 0" in said, said
    times = {said.split("virtual time ")[1].split()[0] for said in (without, some, all_sites)}
    assert len(times) == 1


def test_sites_of_the_static_client_are_patched(kernel):
    """Its C library is musl. Starting a program that is not there patches what starting one does, and no more."""
    try:
        client = adapter.load("h3-client", adapter.OWN).build / "client"
    except UserError as error:
        pytest.skip(str(error))
    said = console(kernel, _STARTS.format(client=client), after=1)
    counts = [int(text.split()[1]) for text in said.splitlines() if text.startswith("patched ")]
    assert len(counts) == 3 and 0 < counts[0] == counts[1] < counts[2], said
