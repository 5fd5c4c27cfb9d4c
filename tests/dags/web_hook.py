"""A web hook on loopback that keeps what it is sent."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Self

# The path of the hook: whoever knows it may post.
SECRET = "services/canary-of-the-hook"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((self.path, json.loads(body)))
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


class WebHook(HTTPServer):
    """Answers with ``status``; a context manager. ``connection`` is Airflow's, as JSON."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[tuple[str, dict]] = []
        self.status = 200

    @property
    def connection(self) -> str:
        return json.dumps(
            {
                "conn_type": "http",
                "host": "127.0.0.1",
                "port": self.server_port,
                "schema": "http",
                "password": SECRET,
            }
        )

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()
