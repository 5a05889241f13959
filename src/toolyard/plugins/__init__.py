"""What all kinds of tools share: from an entry of the configuration to the tools of an agent."""
