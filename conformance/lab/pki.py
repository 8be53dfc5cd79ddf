"""Make a small certificate authority and one server certificate, once, in the user's cache.

Keys are RSA-2048, serial numbers are fixed and dates have a fixed length, so that every handshake has the same size on
every machine (an ECDSA signature's length varies). There is an authority because some clients refuse self-signed
servers. The key protects nothing but the suite's own transfers inside guests.
"""

import fcntl
import pathlib
import shutil
import subprocess
import tempfile

from conformance.model.errors import UserError
from conformance.support import paths

HOSTNAME = "server.test"
_DAYS = "36500"
_FOLDER = "pki-3"
#: without it, Python refuses an authority from 3.13 on
_MAY_SIGN = ("-addext", "keyUsage=critical,keyCertSign,cRLSign")


def exists() -> bool:
    """Return whether the certificates have been made."""
    return paths.cached(_FOLDER).exists()


def ensure() -> pathlib.Path:
    """Return the folder with ca.crt, server.crt, server.key and other-ca.crt, whose authority signed nothing."""
    if exists():
        return paths.cached(_FOLDER)
    home = paths.cache(_FOLDER)
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        with open(home.parent / "pki.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not home.exists():
                # The files are made in another folder, which is moved into place as a whole.
                with tempfile.TemporaryDirectory(dir=home.parent) as temporary:
                    temporary_pki = pathlib.Path(temporary, "pki")
                    temporary_pki.mkdir()
                    temporary_pki.chmod(0o755)  # whatever the umask is: stacks run as the user nobody
                    _make(temporary_pki)
                    temporary_pki.rename(home)
    except OSError as error:
        raise UserError(
            f"cannot write certificates to {home}: {error.strerror}", "free space there, or make it writable"
        ) from None
    return home


def _make(folder: pathlib.Path) -> None:
    if not shutil.which("openssl"):
        raise UserError("openssl is needed to make certificates", "run `apt-get install openssl`")

    def openssl(*arguments: str) -> None:
        done = subprocess.run(["openssl", *arguments], cwd=folder, capture_output=True, text=True)
        if done.returncode != 0:
            raise UserError(f"openssl {arguments[0]}: {(done.stderr.strip().splitlines() or ['failed'])[-1]}")

    (folder / "san").write_text(f"subjectAltName=DNS:{HOSTNAME}\nbasicConstraints=CA:FALSE\n")
    new_key = ("-newkey", "rsa:2048", "-nodes", "-sha256")
    for name, title in (("ca", "test CA"), ("other-ca", "other CA")):
        openssl("req", "-x509", *new_key, "-keyout", f"{name}.key", "-out", f"{name}.crt", "-days", _DAYS,
                "-set_serial", "1", "-subj", f"/CN=cc-conformance {title}", *_MAY_SIGN)  # fmt: skip
    openssl("req", *new_key, "-keyout", "server.key", "-out", "server.csr", "-subj", f"/CN={HOSTNAME}")
    openssl("x509", "-req", "-sha256", "-in", "server.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-set_serial", "2",
            "-days", _DAYS, "-extfile", "san", "-out", "server.crt")  # fmt: skip
    for name in ("san", "server.csr", "ca.key", "other-ca.key"):
        (folder / name).unlink()
    for file in folder.iterdir():
        file.chmod(0o644)
