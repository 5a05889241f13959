"""Values that every other room speaks of; they touch nothing."""
