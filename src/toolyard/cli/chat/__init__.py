"""`toolyard chat` and `toolyard sessions`: a person, or a script, and an agent."""
