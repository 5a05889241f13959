"""Runs the Python that plugin authors wrote in this process: limited, its output caught, its mistakes named."""
