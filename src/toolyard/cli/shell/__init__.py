"""`toolyard shell`: a person, or a script, at the session that a model has with the tool `bash`."""
