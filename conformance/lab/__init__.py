"""Run trials in rooms: one interface (room.Room), and two rooms here, virtual.py and host.py."""
