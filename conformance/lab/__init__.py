"""Run trials in rooms: one interface (room.Room), and the room of guests here (virtual.py)."""
