"""Where trials are run: one interface (room.Room), two rooms: virtual.py and host.py."""
