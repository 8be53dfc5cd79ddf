"""Write adapters whose client is the common QUIC client, with variables of the contract set, or in a wrapper."""

import json


def adapter(folder, script):
    """Write an adapter into a new folder and return its manifest's path; `script` is what its verb `client` runs."""
    folder.mkdir(parents=True)
    about = {
        "contract": 3, "name": folder.name, "title": "The common client", "program": "run", "transport": "udp",
        "algorithms": {}, "build": {"program": "build", "takes": ["h3-client"]},
    }  # fmt: skip
    (folder / "adapter.json").write_text(json.dumps(about))
    programs = {
        "build": 'cp "$CC_BUILD_H3_CLIENT/client" "$CC_BUILD"',
        "run": f"""[ "$1" != describe ] || {{ echo '{{"version": "1"}}'; exit; }}\n{script}""",
    }
    for name, text in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    return str(folder / "adapter.json")


def with_variables(folder, **variables):
    """Write an adapter whose client is the common one with these variables set; return its manifest's path."""
    lines = [f'export {name}="{text}"' for name, text in variables.items()]
    return adapter(folder, "\n".join([*lines, 'exec "$CC_BUILD/client"']))
