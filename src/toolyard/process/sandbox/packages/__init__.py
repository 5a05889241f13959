"""What package managers need inside: caches of the workspace's own, hosts by group, mirrors without credentials."""
