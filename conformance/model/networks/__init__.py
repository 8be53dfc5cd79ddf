"""Networks: links, flows and what changes; scenarios at points, and the settings that they are."""
