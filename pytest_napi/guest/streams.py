# SPDX-License-Identifier: GPL-2.0-only
"""A guest program's stdin, stdout and stderr as Python file objects."""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

# A program whose output nobody reads is held when this much lies here, and goes on when it shrank
# to a quarter: little memory for the host, plenty of work for a channel of some 10 MB/s.
_HOLD_BYTES: Final = 4 * 1024 * 1024
_RELEASE_BYTES: Final = _HOLD_BYTES // 4


class Inbox:
    """What has come of one output stream and was not read yet.

    Not locked: its owner has the lock, but for ``closed``, which a finaliser may set.
    """

    def __init__(self) -> None:
        self.ended = False
        """The program has closed the stream."""
        self.closed = False
        """The reader has: what comes is thrown away."""
        self.unlimited = False
        """Never hold the program: all its output is wanted at its end."""
        self._chunks: deque[bytes] = deque()
        self._size = 0
        self._hold_at = _HOLD_BYTES

    @property
    def readable(self) -> bool:
        """Would a read return at once?"""
        return bool(self._chunks) or self.ended or self.closed

    def add(self, data: bytes) -> bool:
        """Take output, b"" for its end; True: the program has to be held."""
        if not data:
            self.ended = True
            return False
        if self.closed:
            return False
        self._chunks.append(data)
        self._size += len(data)
        if self.unlimited or self._size < self._hold_at:
            return False
        # Should more come nevertheless, a release has crossed the hold: try again later.
        self._hold_at += _HOLD_BYTES
        return True

    def take(self, limit: int) -> tuple[bytes, bool]:
        """Return up to ``limit`` bytes, and whether a held program may go on."""
        if not self._chunks:
            return b"", False
        data = self._chunks.popleft()
        if len(data) > limit:
            self._chunks.appendleft(data[limit:])
            data = data[:limit]
        self._size -= len(data)
        return data, self._may_release()

    def peek(self) -> bytes:
        """Return all there is and keep it."""
        return b"".join(self._chunks)

    def want_all(self) -> bool:
        """Never hold the program again; True if it is held now."""
        self.unlimited = True
        return self._hold_at > _HOLD_BYTES

    def _may_release(self) -> bool:
        if self._hold_at == _HOLD_BYTES or self._size > _RELEASE_BYTES:
            return False
        self._hold_at = _HOLD_BYTES
        return True


class OutputReader(io.RawIOBase):
    """The raw stream under ``stdout`` and ``stderr``: its three functions are its owner's.

    ``read(limit)`` blocks until there is something, b"" at the end; ``read_all()`` until the end.
    """

    def __init__(
        self,
        read: Callable[[int], bytes],
        read_all: Callable[[], bytes],
        close: Callable[[], None],
    ) -> None:
        self._read = read
        self._read_all = read_all
        self._close = close

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Read what there is, one byte at least; 0 at the end."""
        view = memoryview(buffer).cast("B")
        data = self._read(len(view))
        view[: len(data)] = data
        return len(data)

    def readall(self) -> bytes:
        """Read until the end."""
        return self._read_all()

    def close(self) -> None:
        """Give up the stream: the program gets SIGPIPE when it writes on."""
        if not self.closed:
            self._close()
            super().close()


class InputWriter(io.RawIOBase):
    """A program's stdin.  Unbuffered: what was written is on its way, and ``flush`` does nothing.

    ``write`` blocks while the program does not read, once 64 KiB are underway.
    """

    def __init__(self, write: Callable[[bytes], None], close: Callable[[], None]) -> None:
        self._write = write
        self._close = close

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: ReadableBuffer) -> int:
        """Write all of it; BrokenPipeError if the program has ended."""
        if self.closed:
            raise ValueError("write to closed file")
        content = bytes(data)
        self._write(content)
        return len(content)

    def close(self) -> None:
        """Send the end of file."""
        if not self.closed:
            self._close()
            super().close()


def reader(raw: OutputReader, encoding: str | None, errors: str | None) -> IO[Any]:
    """Wrap a raw stream as subprocess does: buffered bytes, or text if there is an encoding."""
    buffered = io.BufferedReader(raw)
    return io.TextIOWrapper(buffered, encoding, errors) if encoding else buffered


def writer(raw: InputWriter, encoding: str | None, errors: str | None) -> IO[Any]:
    """Return the stream itself, or a text stream that passes all on at once."""
    if encoding:
        # Only write() is called, and it writes all: no BufferedWriter is needed in between.
        return io.TextIOWrapper(cast("IO[bytes]", raw), encoding, errors, write_through=True)
    return cast("IO[bytes]", raw)
