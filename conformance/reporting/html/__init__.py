"""Build the site: pages that open from disk."""
