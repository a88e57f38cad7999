"""Known tables with their schemas."""
