# SPDX-License-Identifier: GPL-2.0-only
"""Patches as they arrive: mails, mailboxes, bare diffs, diffs with prose around them.

What is kept of each is its diff alone, so that two mails with one diff are one patch.  No library
reads all of these: the standard one decodes mails, and what is a diff is read here.  (unidiff
takes decoded text without mail around it, and knows neither modes nor renames.)
"""

from __future__ import annotations

import email
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from email.message import Message
from pathlib import Path

from pytest_napi.errors import KernelUnusable
from pytest_napi.untrusted import printable

# As git-mailsplit has it: with a time and a year.  "From this it follows" in a mail is none.
_FROM_LINE = re.compile(rb"^(?=From \S.*\d{1,2}:\d\d.*\d{4}.*$)", re.MULTILINE)
_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_EXTENDED = re.compile(
    rb"(?:index|old mode|new mode|deleted file mode|new file mode|(?:dis)?similarity index"
    rb"|(?:copy|rename) (?:from|to)) "
)
_BINARY = re.compile(rb"GIT binary patch|Binary files .* differ")
_NO_FILE = b"/dev/null"


@dataclass(frozen=True)
class Hunk:
    """One hunk of a diff: the ``number``-th of the file ``path``, its header line as it stands.

    ``start`` is the line it starts at in the file before the patch.
    """

    path: str
    number: int
    start: int
    header: str

    def __str__(self) -> str:
        return f"hunk {self.number} of {self.path} ({self.header})"


@dataclass(frozen=True)
class Patch:
    """One patch: ``name`` is for messages, ``diff`` what git apply reads (LF, no prose)."""

    name: str
    diff: bytes
    hunks: tuple[Hunk, ...]


def read_patches(path: Path) -> list[Patch]:
    """Return the patches in a file, in order: several of a mailbox, else one.

    Raises KernelUnusable if there is none, and for one that was cut off or damaged on its way.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise KernelUnusable(f"{path}: cannot read this patch: {error.strerror}") from None
    mails = [mail for mail in _FROM_LINE.split(data) if mail.strip()]
    found = []
    for number, mail in enumerate(mails, 1):
        message = email.message_from_bytes(mail)
        name = str(path)
        if len(mails) > 1:
            subject = " ".join(str(message.get("Subject", "no subject")).split())
            name = f"{path}, mail {number} ({printable(subject)})"
        diff = _Diff(name)
        for text in _texts(message):
            diff.read(text)
        if diff.lines:
            found.append(Patch(name, b"\n".join(diff.lines) + b"\n", tuple(diff.hunks)))
    if not found:
        raise KernelUnusable(f"{path}: no diff in it; give a patch, a patch mail or a mailbox")
    return found


def read_all(paths: Sequence[Path]) -> list[Patch]:
    """Return the patches in several files, in order.

    Raises KernelUnusable as ``read_patches`` does, and for a patch that is there twice.
    """
    seen: dict[bytes, Patch] = {}
    for path in paths:
        for patch in read_patches(path):
            if patch.diff in seen:
                first = seen[patch.diff].name
                other = "" if first == patch.name else f", first as {first}"
                raise KernelUnusable(f"{patch.name}: was given twice{other}; drop one of them")
            seen[patch.diff] = patch
    return list(seen.values())


def _texts(message: Message) -> Iterator[bytes]:
    """Yield the texts of a mail, decoded, and its attached patches."""
    for part in message.walk():
        attached = str(part.get_filename() or "").endswith((".patch", ".diff"))
        if part.get_content_type() == "text/html":
            continue
        if attached or part.get_content_maintype() == "text":
            payload = part.get_payload(decode=True)
            if isinstance(payload, bytes):
                yield _as_utf8(payload, part.get_content_charset())


def _as_utf8(text: bytes, charset: str | None) -> bytes:
    if charset in (None, "us-ascii", "utf-8"):
        return text
    try:
        return text.decode(charset).encode()
    except (LookupError, UnicodeError):
        return text  # as it came: the label is wrong


class _Diff:
    """Collects the diff lines of a text, and the hunks among them."""

    def __init__(self, name: str) -> None:
        self.lines: list[bytes] = []
        self.hunks: list[Hunk] = []
        self._name = name

    def read(self, text: bytes) -> None:
        lines = text.removesuffix(b"\n").split(b"\n")
        # A mail's line ends, or a DOS editor's.  The few files of Linux with CRLF have theirs
        # inside a diff whose own lines end in LF.
        if all(line.endswith(b"\r") for line in lines if line.startswith((b"--- ", b"+++ "))):
            lines = [line.removesuffix(b"\r") for line in lines]
        at = 0
        while at < len(lines):
            if lines[at].startswith(b"diff --git "):
                at = self._git_header(lines, at)
            elif _starts_file(lines, at):
                at = self._file(lines, at)
            else:
                at += 1  # prose

    def _git_header(self, lines: Sequence[bytes], at: int) -> int:
        """Keep a "diff --git" line and what belongs to it; return where it ends."""
        start = at
        at += 1
        while at < len(lines) and _EXTENDED.match(lines[at]):
            at += 1
        if at < len(lines) and _BINARY.match(lines[at]):
            file = printable(lines[start].rpartition(b" b/")[2])
            raise KernelUnusable(f"{self._name}: changes the binary file {file}; leave that out")
        self.lines += lines[start:at]
        return at

    def _file(self, lines: Sequence[bytes], at: int) -> int:
        """Keep the two lines that name a file, and its hunks; return where they end."""
        path = _path(lines[at], lines[at + 1])
        self.lines += lines[at : at + 2]
        at += 2
        number = 0
        while at < len(lines) and (match := _HUNK.match(lines[at])):
            number += 1
            hunk = Hunk(path, number, int(match[1]), printable(lines[at]).strip())
            self.hunks.append(hunk)
            self.lines.append(lines[at])
            at = self._body(lines, at + 1, hunk, _count(match[2]), _count(match[3]))
        return at

    def _body(self, lines: Sequence[bytes], at: int, hunk: Hunk, old: int, new: int) -> int:
        """Keep the lines of one hunk, ``old`` and ``new`` of them; return where it ends."""
        while old > 0 or new > 0 or lines[at : at + 1][:1] == [b"\\ No newline at end of file"]:
            # Mail programs and editors strip the one space of an empty line of context.
            line = (lines[at] or b" ") if at < len(lines) else b"end"
            old -= line[:1] in (b" ", b"-")
            new -= line[:1] in (b" ", b"+")
            if line[:1] not in (b" ", b"-", b"+", b"\\") or old < 0 or new < 0:
                raise KernelUnusable(
                    f"{self._name}: {hunk} is damaged: it ends early or lines of it were wrapped; "
                    "fetch the patch again"
                )
            self.lines.append(line)
            at += 1
        return at


def _starts_file(lines: Sequence[bytes], at: int) -> bool:
    if at + 2 >= len(lines) or not _HUNK.match(lines[at + 2]):
        return False
    return lines[at].startswith(b"--- ") and lines[at + 1].startswith(b"+++ ")


def _path(old: bytes, new: bytes) -> str:
    """Return the path a file has in the source, of its "--- a/path" and "+++ b/path" lines."""
    names = [line[4:].partition(b"\t")[0].strip() for line in (old, new)]
    name = names[0] if names[0] != _NO_FILE else names[1]
    return printable(name.partition(b"/")[2])


def _count(number: bytes | None) -> int:
    return 1 if number is None else int(number)
