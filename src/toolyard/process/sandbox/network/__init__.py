"""Connections of those inside: which hosts may be reached, and the proxy by which they are."""
