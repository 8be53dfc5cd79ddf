"""Search for networks and applications in which a stack does worst: change them at random, score, and shrink them."""
