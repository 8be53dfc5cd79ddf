"""The site: pages that open from disk."""
