"""A sweep on Dask distributed (docs/scale-out.md): `conformance run cubic --executor dask_sweep:executor --workers 8`.

Run it in this folder, or with this folder in PYTHONPATH, where `distributed` is installed next to the suite.
"""

import os

import distributed


def executor():
    """On the cluster whose scheduler DASK_SCHEDULER names; on two processes of this machine where it names none."""
    address = os.environ.get("DASK_SCHEDULER")
    if address is None:
        # Addresses of this machine only: whoever reaches a scheduler may run code on its workers.
        address = distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
        )  # fmt: skip
    # Trials are functions of their fields, so the answer to the same batch may be remembered or not: it is the same.
    return distributed.Client(address).get_executor(pure=False)
