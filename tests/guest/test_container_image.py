"""The container images, run as people run containers: few rights, little memory, nothing writable.

These tests need podman and an image of this suite: CC_TEST_IMAGE, or else the one that `make image` builds; for the
full image CC_TEST_IMAGE_FULL, or else that of `make image-full`. Without an image tests are skipped, but they fail if
a variable names it.
"""

import os
import re
import shutil
import subprocess

import pytest

from conformance.support import paths

pytestmark = pytest.mark.guest

_IMAGE = os.environ.get("CC_TEST_IMAGE", "localhost/cc-conformance")
_FULL = os.environ.get("CC_TEST_IMAGE_FULL", f"{_IMAGE}:full")
_MOST_BYTES = 400 * 10**6
_STRICT = ("--cap-drop", "all", "--security-opt", "no-new-privileges", "--user", "12345:12345", "--read-only")


def there(image, target, variable):
    """Return the image's name. Without podman or the image, skip the test, or fail if the variable names the image."""
    missing = pytest.fail if variable in os.environ else pytest.skip
    if not shutil.which("podman"):
        missing("podman is not installed")
    if subprocess.run(["podman", "image", "exists", image], capture_output=True).returncode != 0:
        missing(f"there is no image {image}; run `make {target}`")
    tried = subprocess.run(
        ["podman", "run", "--rm", "--network", "none", image, "true"], capture_output=True, text=True, timeout=120
    )
    if tried.returncode != 0:  # docs/containers.md lists the reasons seen so far
        missing(f"podman starts no container here: {tried.stderr.strip().splitlines()[-1]}")
    return image


@pytest.fixture(scope="module")
def image():
    return there(_IMAGE, "image", "CC_TEST_IMAGE")


@pytest.fixture(scope="module")
def full():
    return there(_FULL, "image-full", "CC_TEST_IMAGE_FULL")


def run(image, *command, options=()):
    """Return (exit status, output) of a command in a container without a network."""
    done = subprocess.run(
        ["podman", "run", "--rm", "--network", "none", *options, image, *command],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600,
    )  # fmt: skip
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    "options", [(), (*_STRICT, "--memory", "256m", "--cpus", "1", "--pids-limit", "64")], ids=["usual", "strict"]
)
def test_doctor_misses_nothing(image, options):
    status, said = run(image, "conformance", "doctor", options=options)
    assert "a guest boots" in said
    assert (status, "BAD" in said) == (0, False), said


def test_the_smoke_tier_conforms_with_few_rights(image):
    status, said = run(image, "pytest", "-m", "cubic and smoke", options=(*_STRICT, "--memory", "256m"))
    assert status == 0, said
    assert "12 passed" in said


def test_too_few_processes_are_a_message(image):
    command = ("pytest", "-q", "-m", "cubic and heatmap", "--grid", "10mbps-40ms-4pct")
    status, said = run(image, *command, options=("--pids-limit", "12"))
    assert status == 1, said
    assert "this container allows 12 at once; allow 64 or more, with --pids-limit" in " ".join(said.split())


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        (("--read-only", "--read-only-tmpfs=false", "--workdir", "/usr"), "no folder for temporary files"),
        (("--user", "1000", "--workdir", "/usr"), "cannot write results to results/results.jsonl"),
    ],
)
@pytest.mark.parametrize("command", [("pytest", "-m", "cubic and smoke"), ("conformance", "gate", "--grid", "smoke")])
def test_what_cannot_be_written_to_is_one_line(image, options, cause, command):
    status, said = run(image, *command, options=options)
    assert status in {2, 4}, said
    assert cause in said
    assert "Traceback" not in said


def test_the_slim_image_is_small(image):
    size = subprocess.run(
        ["podman", "image", "inspect", "--format", "{{.Size}}", image], capture_output=True, text=True, check=True
    )
    assert int(size.stdout) <= _MOST_BYTES


def test_the_quic_client_is_that_of_every_system_and_has_its_licences(image):
    built = "/opt/cache/adapters/h3-client-*"
    status, said = run(image, "sh", "-c", f"sha256sum <$(echo {built}/client) && grep -c '^==== ' {built}/LICENSES")
    digest = (paths.data("adapters", "h3-client") / "client.sha256").read_text().strip()
    assert (status, said.split()) == (0, [digest, "-", "6"])


def test_git_tells_what_belongs_to_a_working_tree(image, tmp_path):
    """Of git's package, the image has only the program."""
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    for name in ("kept.rs", "left-out.log"):
        (tmp_path / name).touch(mode=0o644)
    (tmp_path / ".gitignore").write_text("*.log\n")
    tmp_path.chmod(0o755)
    listed = ("ls-files", "--cached", "--others", "--exclude-standard")
    status, said = run(
        image, "git", "-c", "safe.directory=*", "-C", "/tree", *listed, options=("-v", f"{tmp_path}:/tree:ro")
    )
    assert (status, said.split()) == (0, [".gitignore", "kept.rs"])


def test_a_stack_of_the_full_image_is_judged_with_few_rights(full):
    command = ("conformance", "gate", "cubic", "--grid", "smoke", "--stack", "quinn")
    status, said = run(full, *command, options=(*_STRICT, "--memory", "512m"))
    assert status in {0, 1}, said
    assert re.search(
        r"^zone cubic/heatmap-packets, cubic/quinn/\S+: .*\d (conforms|compatible|violat)", said, re.MULTILINE
    )
    assert " error" not in said.lower(), said


@pytest.mark.parametrize("memory", ["256m", "512m"])
def test_traces_of_two_guests_fit_into_little_memory(full, memory):
    """Each guest keeps its captures in memory; if both do not fit, one guest waits for the other."""
    command = ("conformance", "why", "cubic", "--stack", "quinn", "--trials", "1")
    status, said = run(full, *command, options=(*_STRICT, "--memory", memory))
    assert status in {0, 1}, said
    assert "against the reference cubic/linux-tcp" in said
    assert "memory was short" not in said and "SIGKILL" not in said, said
