"""From captured packets to what looks wrong: pure."""
