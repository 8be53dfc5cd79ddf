"""The wheels: what they hold, and that an install has all that the suite needs from the repository."""

import ast
import email
import json
import os
import pathlib
import re
import subprocess
import sys
import tomllib
import zipfile

import pytest
import wheels

import conformance
from conformance.kernel import build as recipe
from conformance.lab import adapter, building, load, manifest, proxy
from conformance.model import digest as digests

pytestmark = pytest.mark.slow

ROOT = wheels.ROOT
#: folders at the repository's top level that the wheel contains
DATA = ("adapters/", "clauses/", "reports/templates/", "scenarios/", "studies/", "topologies/", "zones/")
DIGEST = "0123456789abcdef"
#: a program that prints the contents of all own files that the suite reads
TELL = """
import json
from conformance.catalogue import documents
from conformance.kernel import build
from conformance.lab import adapter, load, manifest, proxy, version
from conformance.model import digest
from conformance.support import paths
print(json.dumps({
    "package": str(paths.PACKAGE),
    "adapters": {about.name: adapter.files_digest(about) for about in manifest.shipped()},
    "lab": version.source_digest(),
    "patches": {str(v): [p.name for p in build.own_patches(v)] for v in ((6, 1), (6, 12), (7, 2))},
    "programs": [program.brought() for program in (proxy.PROGRAM, load.PROGRAM, load.BOND_PROGRAM)],
    "schemas": sorted(p.name for p in (paths.PACKAGE / "schemas").iterdir()),
    "data": {
        str(path.relative_to(paths.data())): digest.of_bytes(path.read_bytes())
        for folder in ("clauses", "reports/templates", "scenarios", "studies", "topologies", "zones")
        for path in paths.data(folder).rglob("*") if path.is_file() and path.suffix != ".pyc"
    },
    "zones": len(documents.judging_files()),
}))
"""


def project(where="."):
    return tomllib.loads((ROOT / where / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def metadata(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return email.message_from_bytes(archive.read(name))


def names(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    said, wheel = wheels.build(tmp_path_factory.mktemp("suite"))
    assert wheel, said
    return wheel


def test_the_suites_wheel_holds_every_file_of_the_repository_that_it_needs_and_no_other(suite):
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    command = ["git", "-c", "safe.directory=*", "ls-files", "--cached", "--others", "--exclude-standard"]
    files = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    here = {file for file in files if (ROOT / file).exists()}
    wanted = {file for file in here if file.startswith("conformance/")}
    wanted |= {f"conformance/_data/{file}" for file in here if file.startswith(DATA)}
    assert names(suite) == wanted


def test_an_install_reads_the_same_of_its_files_as_the_checkout(suite, tmp_path):
    """This includes which files are executable, because manifests whose programs are not are refused."""
    installed = wheels.unpack(suite, tmp_path / "site")

    def tell(where):
        environment = {**os.environ, "PYTHONPATH": str(where)}
        done = subprocess.run(
            [sys.executable, "-c", TELL], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    there, here = tell(installed), tell(ROOT)
    assert there.pop("package") == str(installed / "conformance")
    assert here.pop("package") == str(ROOT / "conformance")
    assert len(there["adapters"]) > 15
    assert there == here


def test_metadata_of_the_suite(suite):
    about = metadata(suite)
    assert about["Version"] == conformance.__version__
    assert about["License-Expression"] == "Apache-2.0 AND GPL-2.0-only"
    assert {"LICENSE", "conformance/kernel/patches/COPYING"} == set(about.get_all("License-File"))
    assert {"figures", "parquet", "allure"} <= set(about.get_all("Provides-Extra"))
    with zipfile.ZipFile(suite) as archive:
        (points,) = [archive.read(name).decode() for name in archive.namelist() if name.endswith("entry_points.txt")]
    assert "conformance = conformance.__main__:main" in points
    assert "conformance = conformance.suite.plugin" in points


def test_what_is_heavy_is_not_pulled_by_a_plain_install():
    plain = {re.split(r"[>=<\[]", wanted)[0] for wanted in project()["dependencies"]}
    assert plain == {"click", "jinja2", "jsonschema", "msgspec", "numpy", "pytest", "rich", "scipy"}
    slim = (ROOT / "image" / "slim.in").read_text(encoding="utf-8").splitlines()
    assert plain | {"hatchling"} == {line for line in slim if line and not line.startswith("#")}


def test_whatever_is_imported_is_asked_for():
    """The plain install or an extra requires every imported package."""
    brought_by = {
        "_pytest": "pytest", "allure": "allure-pytest", "markupsafe": "jinja2", "referencing": "jsonschema",
        "vl_convert": "vl-convert-python",
    }  # fmt: skip
    extras = project()["optional-dependencies"]
    asked = [*project()["dependencies"], *extras["figures"], *extras["parquet"], *extras["allure"]]
    offered = {re.split(r"[>=<\[]", wanted)[0] for wanted in asked}
    for path in (ROOT / "conformance").rglob("*.py"):
        if {"guest", "scaffold"} & set(path.relative_to(ROOT).parts):
            continue
        for module in imported(ast.parse(path.read_text(encoding="utf-8"))):
            if module not in sys.stdlib_module_names and module != "conformance":
                assert brought_by.get(module, module) in offered, (path, module)


def imported(tree):
    """Yield the top-level packages of all imports of a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def test_there_is_one_version():
    assert (ROOT / "kernel-wheel" / "pyproject.toml").read_text().count('path = "../conformance/__init__.py"') == 1
    for where in (".", "kernel-wheel"):
        assert "version" in project(where)["dynamic"]
        assert "version" not in project(where)
    citation = pytest.importorskip("yaml").safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert "version" not in citation
    assert " AND ".join(citation["license"]) == project()["license"]


@pytest.fixture
def built(tmp_path):
    """Make a cache with a default kernel of our recipe and with builds of adapters, as if made on another machine."""
    cache = tmp_path / "cache"
    kernel = cache / "kernels" / DIGEST
    kernel.mkdir(parents=True)
    (kernel / "linux").write_bytes(b"\x7fELF\0GLIBC_2.3.4\0GLIBC_2.34\0")
    (kernel / "config").write_text("CONFIG_UML=y\n")
    folder = ROOT / "conformance" / "kernel"
    patches = [*recipe.own_patches((6, 12)), *recipe.faster_patches((6, 12))]
    inputs = {
        "config": digests.of_bytes((folder / "guest.config").read_bytes()),
        "patches": [digests.of_bytes(patch.read_bytes()) for patch in patches],
    }
    about = {"release": "6.12.9", "source": "linux-source-6.12.tar.xz", "patches": [], "inputs": inputs}
    (kernel / "kernel.json").write_text(json.dumps(about))
    (cache / "kernels" / "names").mkdir()
    (cache / "kernels" / "names" / "default").write_text(f"{DIGEST}\n")
    for folder, program in places().items():
        (cache / "adapters" / folder).mkdir(parents=True)
        (cache / "adapters" / folder / program).write_bytes(pathlib.Path("/bin/true").read_bytes())
        (cache / "adapters" / folder / program).chmod(0o755)
    return cache


def places():
    """Return {folder in a cache: the program in it} for the builds that the wheel brings."""
    stacks = {
        building.brought(name, adapter.files_digest(manifest.read(name))): "client"
        for name in ("linux-tcp", "h3-client")
    }
    return {
        **stacks,
        proxy.PROGRAM.brought(): "splitter",
        load.PROGRAM.brought(): "flows",
        load.BOND_PROGRAM.brought(): "bond",
    }


def build_kernel_wheel(cache, folder):
    return wheels.build(folder, "kernel-wheel", {**os.environ, "CC_CONFORMANCE_CACHE": str(cache)})


def test_the_kernels_wheel_holds_kernel_programs_and_source_and_licences_apart(built, tmp_path):
    said, wheel = build_kernel_wheel(built, tmp_path / "dist")
    assert wheel, said
    assert re.fullmatch(r"cc_conformance_kernel-.+-py3-none-manylinux_2_3[4-9]_x86_64\.whl", wheel.name)
    cache, source = "cc_conformance_kernel/cache", "cc_conformance_kernel/source"
    folder = ROOT / "conformance" / "kernel"
    patches = {str(path.relative_to(folder)) for path in (folder / "patches").rglob("*") if path.is_file()}
    assert names(wheel) == {
        "cc_conformance_kernel/__init__.py",
        f"{cache}/kernels/names/default",
        *(f"{cache}/kernels/{DIGEST}/{file}" for file in ("linux", "kernel.json", "config")),
        *(f"{cache}/adapters/{place}/{program}" for place, program in places().items()),
        f"{source}/guest.config",
        *(f"{source}/{patch}" for patch in patches),
    }
    about = metadata(wheel)
    assert about["Version"] == conformance.__version__
    assert about.get_all("Requires-Dist") == [f"cc-conformance=={conformance.__version__}"]
    assert about["License-Expression"] == (
        "GPL-2.0-only AND Apache-2.0 AND Apache-2.0 WITH LLVM-exception AND MIT AND ISC AND OpenSSL"
    )
    with zipfile.ZipFile(wheel) as archive:
        (licence,) = [name for name in archive.namelist() if name.endswith("licenses/COPYING")]
        assert b"GNU GENERAL PUBLIC LICENSE" in archive.read(licence)


def test_what_the_wheel_brings_is_found_behind_what_the_user_has(built, tmp_path):
    _, wheel = build_kernel_wheel(built, tmp_path / "dist")
    site = wheels.unpack(wheel, tmp_path / "site")
    program = (
        "from conformance.kernel import store\nfrom conformance.lab import adapter, manifest\n"
        "for name in ('linux-tcp', 'h3-client'): assert adapter.is_built(manifest.read(name)), name\n"
        "print(store.find().binary)"
    )

    def find(cache):
        environment = {
            **os.environ, "CC_CONFORMANCE_CACHE": str(cache), "PATH": "", "PYTHONPATH": f"{ROOT}{os.pathsep}{site}",
        }  # fmt: skip
        done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return pathlib.Path(done.stdout.strip())

    brought = site / "cc_conformance_kernel" / "cache" / "kernels" / DIGEST / "linux"
    assert find(tmp_path / "empty") == brought
    assert find(built) == built / "kernels" / DIGEST / "linux"


@pytest.mark.parametrize("change", ["config", "patches"])
def test_a_kernel_whose_source_would_not_be_in_the_wheel_is_refused(built, tmp_path, change):
    path = built / "kernels" / DIGEST / "kernel.json"
    about = json.loads(path.read_text())
    about["inputs"][change] = DIGEST if change == "config" else [DIGEST, *about["inputs"]["patches"]]
    path.write_text(json.dumps(about))
    said, wheel = build_kernel_wheel(built, tmp_path / "dist")
    assert wheel is None
    assert said.splitlines()[-1] == (
        "no wheel of the kernel: the kernel default is not of this recipe; run `conformance kernel build`"
    )
    assert "Traceback" not in said
