"""What the topologies of settings say about their networks, looked up by name."""

import helpers
import pytest

from conformance.catalogue import documents
from conformance.lab import topology
from conformance.model.errors import UserError
from conformance.model.networks.setting import Setting

SETTING = helpers.measurement().trial.setting


def test_a_setting_has_the_network_that_it_names():
    assert topology.of(SETTING.cell_form).router is None
    split = topology.of(documents.path("atc25", (helpers.CELL, helpers.CELL)).cell_form)
    assert split.addresses == {"client": "10.0.0.1", "server": "10.0.1.3"}


@pytest.mark.parametrize("name", ["nosuch", "", "../topologies/one_segment", "one_segment.py"])
def test_a_name_that_is_no_topology_is_an_error_and_leads_nowhere(name):
    with pytest.raises(UserError, match=r"topology .* does not go with rival None"):
        Setting.from_json({**SETTING.to_json(), "topology": name})
