"""Lines are run for real, and judged by what changed, ran, leaked, connected or was left running."""
