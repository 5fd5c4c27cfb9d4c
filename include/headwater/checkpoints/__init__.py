"""Checkpoints on disk: where they are, what they contain, who may write them."""
