"""`toolyard doctor`: whether everything is there that tools need."""
