"""A small process that owns every child: it starts them, gets back what they leave behind, and outlives none."""
