# SPDX-License-Identifier: GPL-2.0-only
"""Context managers that end with ``close``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self


class Closing(ABC):
    """What is closed when a ``with`` block is left, however it is left."""

    @abstractmethod
    def close(self) -> None:
        """End it; a second call does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


@contextmanager
def closed_on_error(what: Closing) -> Iterator[None]:
    """Close ``what`` if the ``with`` block raises; else it is somebody else's to close."""
    try:
        yield
    except BaseException:
        what.close()
        raise
