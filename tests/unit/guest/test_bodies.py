"""The files that servers serve."""

import types

from conformance.guest import stage


def test_bodies_of_an_earlier_trial_are_removed(tmp_path):
    """A server that maps a body fills it, and those of all cells are more than the guest's folder holds."""
    job = types.SimpleNamespace(work_dir=str(tmp_path))
    stage.remove_bodies(job)  # there is none yet
    for size in (3, 5):
        stage.make_body(job, size)
    stage.remove_bodies(job)
    stage.make_body(job, 7)
    assert [(path.name, path.stat().st_size) for path in (tmp_path / "www").iterdir()] == [("7", 7)]
