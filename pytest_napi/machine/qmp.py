# SPDX-License-Identifier: GPL-2.0-only
"""QMP for callers that are not asynchronous: qemu.qmp's client on an event loop in a thread."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

from qemu.qmp import EventListener, Message, QMPClient, QMPError

from pytest_napi.machine.control import ControlError

T = TypeVar("T")

COMMAND_SECONDS = 30.0
"""QEMU answers in milliseconds; a host with more to do than cores may need seconds."""

_CLOSE_SECONDS = 5.0


class Qmp:
    """The control channel of one QEMU."""

    def __init__(self, sock: socket.socket) -> None:
        self._events: list[Message] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="napi-qmp", daemon=True)
        self._thread.start()
        # It logs the end of every QEMU as an error; whoever asks QEMU something is told anyway.
        self._client = QMPClient("napi")
        self._client.logger.setLevel(logging.CRITICAL + 1)
        self._listener = EventListener()
        self._client.register_listener(self._listener)
        self._connected = asyncio.run_coroutine_threadsafe(self._connect(sock), self._loop)

    async def _connect(self, sock: socket.socket) -> None:
        await self._client.connect(sock)

    def _wait(self, coroutine: Coroutine[Any, Any, T], timeout: float = COMMAND_SECONDS) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(timeout)

    def execute(self, command: str, arguments: Mapping[str, object] | None = None) -> object:
        """Run one QMP command and return its result.  Raises ControlError."""
        try:
            self._connected.result(COMMAND_SECONDS)
            return self._wait(self._client.execute(command, dict(arguments or {})))
        except (QMPError, TimeoutError, OSError, EOFError) as error:
            said = str(error) or type(error).__name__
            raise ControlError(f"QEMU did not carry out {command}: {said}") from None

    def events(self) -> list[Message]:
        """Return every event QEMU has sent so far, oldest first."""

        async def collect() -> None:
            self._events.extend(self._listener.clear())

        self._wait(collect())
        return list(self._events)

    def vcpu_threads(self) -> list[int]:
        """Return the host's thread ids of the vCPUs, by vCPU number."""
        answer = self.execute("query-cpus-fast")
        if not isinstance(answer, list):
            raise ControlError(f"QEMU's answer to query-cpus-fast is no list: {answer!r}")
        rows = sorted(answer, key=lambda row: int(row["cpu-index"]))
        return [int(row["thread-id"]) for row in rows]

    def close(self) -> None:
        """Disconnect and end the thread.  To be called when QEMU has ended."""
        # Whatever was under way fails now, and whatever fails now is of no interest.
        with contextlib.suppress(QMPError, OSError, EOFError, TimeoutError):
            self._connected.result(_CLOSE_SECONDS)
            self._wait(self._client.disconnect(), _CLOSE_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_CLOSE_SECONDS)
        if not self._thread.is_alive():
            self._loop.close()
