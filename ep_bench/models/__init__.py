"""Models that several methods share. Their functions take and return arrays."""
