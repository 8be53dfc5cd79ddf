"""From a choice of stack and kernel to measurements: benches, runs, workers."""
