"""A headless Chromium, driven over its own protocol: no package of its own is needed."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx
import websockets

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    *(
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-sync",
    ),
    *("--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"),
    "--remote-debugging-port=0",
)


def find_browser() -> str | None:
    """The program: of HEADWATER_BROWSER, else one on PATH; None where there is none."""
    chosen = os.environ.get("HEADWATER_BROWSER")
    return chosen or next((path for name in _NAMES if (path := shutil.which(name))), None)


class Browser:
    """One tab, with a cookie of Airflow's."""

    def __init__(self, program: str, folder: Path, address: str, token: str) -> None:
        self.address, self._token = address, token
        self._process = subprocess.Popen(
            [program, *_FLAGS, f"--user-data-dir={folder}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        port_file, ends = folder / "DevToolsActivePort", time.monotonic() + 60
        while not (port_file.exists() and port_file.read_text().count("\n")):
            assert time.monotonic() < ends, "the browser did not start within a minute"
            time.sleep(0.1)
        port = port_file.read_text().split()[0]
        self._tab = httpx.get(f"http://127.0.0.1:{port}/json/list").json()[0]["webSocketDebuggerUrl"]

    def close(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait(20)

    def visit(
        self, path: str, *until: str, dark: bool = False, seconds: float = 40, user: str | None = None
    ) -> dict[str, Any]:
        """Open an address, wait until an expression is true in it, and tell what the page and its console say.

        Args:
            until: one after another, each until it is true; an expression may do something, such as press a button.
            user: the token of another user than the browser's.

        Returns ``text``, ``errors`` (of the console, and of the policy of the page), and what the last of ``until`` came to.
        """
        return asyncio.run(self._visit(path, until, dark, seconds, user or self._token))

    async def _visit(
        self, path: str, until: tuple[str, ...], dark: bool, seconds: float, token: str
    ) -> dict[str, Any]:
        errors: list[str] = []
        async with websockets.connect(self._tab, max_size=None) as socket:
            number = 0

            async def call(method: str, **values: Any) -> Any:
                nonlocal number
                number += 1
                await socket.send(json.dumps({"id": number, "method": method, "params": values}))
                while True:
                    answer = json.loads(await socket.recv())
                    if (
                        answer.get("method") == "Log.entryAdded"
                        and answer["params"]["entry"]["level"] == "error"
                    ):
                        errors.append(answer["params"]["entry"]["text"])
                    if answer.get("method") == "Runtime.exceptionThrown":
                        errors.append(str(answer["params"]["exceptionDetails"].get("text")))
                    if answer.get("id") == number:
                        return answer.get("result", answer)

            async def value(expression: str) -> Any:
                result = await call("Runtime.evaluate", expression=expression, returnByValue=True)
                return result.get("result", {}).get("value")

            for domain in ("Network", "Page", "Log", "Runtime"):
                await call(f"{domain}.enable")
            await call("Network.setCookie", name="_token", value=token, url=self.address)
            scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
            await call("Emulation.setEmulatedMedia", features=[scheme])
            await call("Page.navigate", url=self.address + path)
            answer = None
            for condition in until:
                ends = time.monotonic() + seconds
                while not (answer := await value(condition)):
                    shown = await value("document.body.innerText") if time.monotonic() >= ends else ""
                    assert time.monotonic() < ends, (
                        f"{condition} was not true within {seconds} seconds: {shown}"
                    )
                    await asyncio.sleep(0.2)
            colour = await value("getComputedStyle(document.body).backgroundColor")
            text = await value("document.body.innerText")
            return {"text": text, "errors": errors, "until": answer, "background": colour}
