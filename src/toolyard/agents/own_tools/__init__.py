"""The application's own tools: they change nothing by themselves, but lead to calls that do."""
