"""setup.sh asks for rights where it can, and otherwise says which command to run; it runs with stand-ins here."""

import pty
import shutil
import subprocess

import pytest
from helpers import program

from conformance.support import paths

ROOT = paths.PACKAGE.parent


@pytest.fixture
def setup(tmp_path):
    """Return a function that runs setup.sh where packages are missing, for a user who is not root.

    `sudo`: the script of a sudo that asks for a password. `terminal`: whether its input is one. It returns (status,
    stderr, what was run as root).
    """
    if not (ROOT / "setup.sh").exists():
        pytest.skip("not a checkout")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("dirname", "env", "ls"):
        (programs / name).symlink_to(shutil.which(name))

    def stand_in(name, script):
        program(programs / name, script)

    def run(sudo=None, terminal=False):
        shutil.copy(ROOT / "setup.sh", tmp_path)
        stand_in("id", "echo 1000")
        stand_in("apt-get", f'echo "$1" >> {tmp_path}/installed; [ "$1" = update ]')
        if sudo:
            stand_in("sudo", sudo)
        ours, theirs = pty.openpty()
        with open(ours, "rb"), open(theirs, "rb") as typed:
            done = subprocess.run(
                [tmp_path / "setup.sh"], env={"PATH": str(programs)}, capture_output=True, text=True,
                stdin=typed if terminal else subprocess.DEVNULL,
            )  # fmt: skip
        called = tmp_path / "installed"
        return done.returncode, done.stderr, called.read_text().split() if called.exists() else []

    return run


ASKS = 'case $1 in -n) exit 1 ;; -v) exit 0 ;; *) exec "$@" ;; esac'
REFUSES = "exit 1"


def test_sudo_that_asks_for_a_password_is_called_on_a_terminal(setup):
    assert setup(ASKS, terminal=True)[2] == ["update", "install"]


@pytest.mark.parametrize(("sudo", "terminal"), [(None, True), (REFUSES, True), (ASKS, False)])
def test_without_rights_the_whole_command_is_named(setup, sudo, terminal):
    status, said, called = setup(sudo, terminal)
    assert (status, called) == (2, [])
    command = said.splitlines()[-1]
    assert command.startswith("apt-get update && apt-get install ") and " gcc " in command
