"""Plan trials, make them with the chosen stack and kernel, and judge them: plans, benches, runs, workers."""
