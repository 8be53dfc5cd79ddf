"""Captures: packets that trials keep, when their bytes arrived, and states of a sender that they show."""
