"""What other programs read: exports, badges, JUnit."""
