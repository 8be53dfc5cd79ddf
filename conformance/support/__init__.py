"""Small helpers that every layer uses: where files are, whole writes, documents, words for people."""
