"""The files in which other clients keep their servers, read as they are."""
