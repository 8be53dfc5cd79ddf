"""Adapters of made-up stacks: the kernel's TCP under a program of a few lines."""

import json
import shutil
import textwrap

from conformance.support import paths

_PROGRAM = """\
#!/usr/bin/python3 -ISB
import json, os, select, socket, struct, sys, time
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import good

{body}
if sys.argv[1] == "describe":
    print(json.dumps({{"version": "1.0"}}))
elif sys.argv[1] == "server":
    good.serve(body=body)
else:
    good.good()
"""


def adapter(folder, body, algorithm="cubic", **about):
    """Make an adapter in a folder that is not there yet; return the path of its adapter.json.

    `body`: the source of body(connection, size), which sends the body of an answer. `about`: further fields.
    """
    folder.mkdir()
    shutil.copy(paths.PACKAGE.parent / "tests" / "faults" / "good.py", folder)
    program = folder / "serve"
    program.write_text(_PROGRAM.format(body=textwrap.dedent(body)))
    program.chmod(0o755)
    about = {
        "contract": 1, "name": folder.name, "title": folder.name, "program": "serve", "transport": "tcp",
        "kernel_algorithms": {algorithm: algorithm}, **about,
    }  # fmt: skip
    (folder / "adapter.json").write_text(json.dumps(about))
    return folder / "adapter.json"
