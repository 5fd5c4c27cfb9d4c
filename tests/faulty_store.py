"""A proxy on loopback before an S3 server that behaves as a store does on a bad day: 503, 409, delays, answers that get lost."""

from __future__ import annotations

import http.client
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit


class Fault(StrEnum):
    """What can happen to a request."""

    SLOW_DOWN = "503 before the store sees it"
    CONFLICT = "409 for a conditional put, which the store never sees"
    DELAY = "the answer takes a second"
    ANSWER_LOST = "the store does it, and the connection breaks before the answer"
    GONE = "the connection breaks before the store sees it"


# Conditional puts are few, and what happens to them matters most.
_RARE = 5


class Plan:
    """Draws which requests meet a fault: the kind that was rarest so far, but the first put that meets one loses its answer.

    ``happened`` counts them, ``lost_puts`` puts whose answer was lost.
    """

    def __init__(self, seed: int, share: float) -> None:
        self._chance, self.share = random.Random(seed), share
        self._lock = threading.Lock()
        self.happened: Counter[Fault] = Counter()
        self.lost_puts = 0
        # Until this time of the monotonic clock every connection breaks.
        self.gone_until = 0.0

    def next(self, method: str, *, conditional: bool) -> Fault | None:
        """The fault of this request, if any."""
        with self._lock:
            if time.monotonic() < self.gone_until:
                fault = Fault.GONE
            elif self._chance.random() >= self.share * (_RARE if conditional else 1):
                return None
            else:
                kinds = [fault for fault in Fault if conditional or fault is not Fault.CONFLICT]
                fault = min(kinds, key=lambda kind: (self.happened[kind], self._chance.random()))
                if method == "PUT" and not self.lost_puts:  # the worst of all, and few requests meet a fault
                    fault = Fault.ANSWER_LOST
            self.happened[fault] += 1
            self.lost_puts += fault is Fault.ANSWER_LOST and method == "PUT"
            return fault


@contextmanager
def faulty_store(upstream: str, plan: Plan) -> Iterator[str]:
    """Run the proxy inside the block; gives its address."""
    address = urlsplit(upstream)
    assert address.hostname is not None

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length) if length else b""
            conditional = "If-None-Match" in self.headers or "If-Match" in self.headers
            fault = plan.next(self.command, conditional=conditional and self.command == "PUT")
            if fault is Fault.GONE:
                self.break_off()
            elif fault is Fault.SLOW_DOWN:
                self.refuse(503, "SlowDown")
            elif fault is Fault.CONFLICT:
                self.refuse(409, "ConditionalRequestConflict")
            else:
                self.forward(body, fault)

        def forward(self, body: bytes, fault: Fault | None) -> None:
            store = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
            headers = {
                name: value
                for name, value in self.headers.items()
                if name.lower() not in ("connection", "expect")
            }
            store.request(self.command, self.path, body=body, headers=headers)
            answer = store.getresponse()
            content = answer.read()
            store.close()
            if fault is Fault.ANSWER_LOST:
                self.break_off()
                return
            if fault is Fault.DELAY:
                time.sleep(1)
            self.send_response_only(answer.status, answer.reason)
            for name, value in answer.getheaders():
                if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                    self.send_header(name, value)
            size = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(content))
            self.send_header("Content-Length", size or "0")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        def refuse(self, status: int, code: str) -> None:
            text = f'<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code><Message>a test</Message></Error>'
            content = b"" if self.command == "HEAD" else text.encode()
            self.send_response_only(status)
            self.send_header("Content-Type", "application/xml")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def break_off(self) -> None:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

        def log_message(self, *_: object) -> None: ...

        do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = answer  # noqa: N815 - the library's names

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
