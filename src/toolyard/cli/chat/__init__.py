"""`toolyard chat`: a person, or a script, and an agent."""
