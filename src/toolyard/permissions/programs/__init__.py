"""What we know of programs: which options and words run others, write files or lead elsewhere."""
