"""The fast path of AUTO CDC: small batches of plain values, looked up, settled and written from the driver."""
