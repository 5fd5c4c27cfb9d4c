"""Checkpoints as they lie on disk: where they are, what they say, who may write them."""
