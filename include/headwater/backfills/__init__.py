"""Filling a part of a table again from its definition, beside the live stream."""
