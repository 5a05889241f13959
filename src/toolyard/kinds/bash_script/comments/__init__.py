"""A script that declares itself in comments such as `# @option` is a tool too: read, described and run without argc."""
