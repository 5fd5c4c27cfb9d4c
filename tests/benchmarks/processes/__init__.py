"""Programs whose memory is measured: each prints what it has seen of itself as one line of JSON."""
