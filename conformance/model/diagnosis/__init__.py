"""Pure functions from captured packets to flows, features and suspects."""
