"""The reliability diagram: its numbers."""
