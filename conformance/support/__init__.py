"""Small helpers that every layer uses: paths, whole writes of files, JSON documents, console output, progress."""
