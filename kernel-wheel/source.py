"""Copy the source that the default kernel was built from into a folder: whoever gives its wheel away offers it.

python kernel-wheel/source.py FOLDER
"""

import json
import shutil
import sys

from conformance.kernel import source, store

kernel = store.find()
about = json.loads((store.folder(kernel.digest) / "kernel.json").read_text())
tarball = source.locate(about["source"].split(".tar.")[0])
if not tarball.is_file() or source.digest(tarball) != about["inputs"]["source"]:
    sys.exit(f"{tarball} is not the source that the kernel {kernel.digest} was built from")
print(shutil.copy(tarball, sys.argv[1]))
