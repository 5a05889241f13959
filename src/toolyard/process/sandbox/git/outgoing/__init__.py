"""What of a git folder inside is for git outside, and how it is written there: from values that were checked."""
