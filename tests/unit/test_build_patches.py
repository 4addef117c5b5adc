# SPDX-License-Identifier: GPL-2.0-only
"""Patches as they arrive, and what git apply makes of them."""

import base64
import quopri

import pytest

from pytest_napi.errors import KernelUnusable
from pytest_napi.kernel.build.apply import apply, paths_of
from pytest_napi.kernel.build.patches import read_all, read_patches

DIFF = """\
diff --git a/net/dev.c b/net/dev.c
index 1111111..2222222 100644
--- a/net/dev.c
+++ b/net/dev.c
@@ -1,4 +1,4 @@ napi_poll
 one
\x20
-two
+TWO = 2
 three
"""
CREATE = """\
diff --git a/net/new.c b/net/new.c
new file mode 100644
--- /dev/null
+++ b/net/new.c
@@ -0,0 +1 @@
+From here on
\\ No newline at end of file
"""
MAIL = """\
From: A Developer <a@example.org>
Subject: [PATCH net] net: yield
 on every exit
{headers}
Why this is done.

From this point on it is prose, as is this:
--- a/x
---
 net/dev.c | 2 +-

{diff}--\x20
2.39.5

_______________________________________________
a list's footer
"""
FROM = "From 0123456789 Mon Sep 17 00:00:00 2001\n"


def mail(diff=DIFF, headers=""):
    return MAIL.format(diff=diff, headers=headers)


def encoded(encoding, encode):
    head, _, body = mail().partition("\n\n")
    return f"{head}\nContent-Transfer-Encoding: {encoding}\n\n".encode() + encode(body.encode())


WAYS = {
    "bare": DIFF.encode(),
    "mail": mail().encode(),
    "one mail of a mailbox": (FROM + mail()).encode(),
    "prose without headers": f"Hello,\n\nthis helps:\n\n{DIFF}\nBye\n".encode(),
    "CRLF": mail().replace("\n", "\r\n").encode(),
    "base64": encoded("base64", base64.encodebytes),
    "quoted-printable": encoded("quoted-printable", quopri.encodestring),
    "empty context stripped": DIFF.replace("\n \n", "\n\n").encode(),
    "attachment": (
        'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="B"\n\n'
        "--B\nContent-Type: text/plain\n\nattached\n--B\n"
        "Content-Type: application/octet-stream\nContent-Disposition: attachment; "
        'filename="x.patch"'
        f"\n\n{DIFF}\n--B--\n"
    ).encode(),
}


@pytest.fixture
def file(tmp_path):
    def write(content, name="a.patch"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def tree(tmp_path):
    folder = tmp_path / "tree"
    (folder / "net").mkdir(parents=True)
    (folder / "net/dev.c").write_text("one\n\ntwo\nthree\n")
    return folder


@pytest.mark.parametrize("content", WAYS.values(), ids=WAYS)
def test_every_way_a_patch_arrives_gives_the_same_diff(file, content):
    (patch,) = read_patches(file(content))
    assert patch.diff == DIFF.encode()
    assert [str(hunk) for hunk in patch.hunks] == [
        "hunk 1 of net/dev.c (@@ -1,4 +1,4 @@ napi_poll)"
    ]


def test_a_mailbox_holds_several_patches_in_order_and_a_cover_letter(file):
    cover = FROM + "Subject: [PATCH 0/2] cover\n\nno diff\n"
    box = cover + FROM + mail() + FROM + mail(CREATE)
    first, second = read_patches(file(box, "s.mbox"))
    assert first.name.endswith("s.mbox, mail 2 ([PATCH net] net: yield on every exit)")
    assert (first.diff, second.diff) == (DIFF.encode(), CREATE.encode())


@pytest.mark.parametrize("content", ["", "prose\n", "--- a\n+++ b\n", mail("")])
def test_a_file_without_a_diff_says_so(file, content):
    with pytest.raises(KernelUnusable, match=r"a\.patch: no diff in it"):
        read_patches(file(content))


def test_a_missing_file_says_so(tmp_path):
    with pytest.raises(KernelUnusable, match=r"gone: cannot read this patch: No such file"):
        read_patches(tmp_path / "gone")


@pytest.mark.parametrize("damage", [DIFF[:-7], DIFF.replace("+TWO = 2", "+TWO =\n2")])
def test_a_cut_or_wrapped_hunk_is_named(file, damage):
    with pytest.raises(KernelUnusable, match=r"hunk 1 of net/dev.c \(@@ -1,4 .*\) is damaged"):
        read_patches(file(damage))


def test_a_binary_patch_is_refused(file):
    binary = "diff --git a/x.bin b/x.bin\nindex 1..2 100644\nGIT binary patch\nliteral 1\nIcmZ\n"
    with pytest.raises(KernelUnusable, match=r"changes the binary file x\.bin"):
        read_patches(file(binary))


def test_the_same_diff_twice_is_refused_whatever_is_around_it(file):
    with pytest.raises(KernelUnusable, match=r"b: was given twice, first as .*a; drop one"):
        read_all([file(DIFF, "a"), file(mail(), "b")])


def test_patches_are_applied_in_order_with_offsets(file, tree):
    (tree / "net/dev.c").write_text("zero\none\n\ntwo\nthree\n")
    moved = DIFF.replace("@@ -1,4 +1,4", "@@ -7,4 +7,4")
    later = moved.replace("two", "TWO = 2", 1).replace("+TWO = 2", "+2").replace("-two", "-TWO = 2")
    apply(read_all([file(moved, "1"), file(later, "2"), file(CREATE, "3")]), tree)
    assert (tree / "net/dev.c").read_text() == "zero\none\n\n2\nthree\n"
    assert (tree / "net/new.c").read_text() == "From here on"


def test_a_failing_hunk_is_named(file, tree):
    two = DIFF + "@@ -11,2 +11,2 @@ other\n eleven\n-twelve\n+12\n"
    with pytest.raises(
        KernelUnusable, match=r"a\.patch: hunk 2 of net/dev.c \(@@ -11,2 \+11,2 @@ other\) does not"
    ):
        apply(read_patches(file(two)), tree)
    assert (tree / "net/dev.c").read_text() == "one\n\ntwo\nthree\n"


def test_no_fuzz(file, tree):
    (tree / "net/dev.c").write_text("ONE\n\ntwo\nthree\n")
    with pytest.raises(KernelUnusable, match="does not apply"):
        apply(read_patches(file(DIFF)), tree)


@pytest.mark.parametrize(
    ("diff", "message"),
    [
        (DIFF.replace("dev.c", "gone.c"), r"the source has no net/gone\.c"),
        (CREATE.replace("new.c", "dev.c"), r"creates net/dev\.c, which the source has already"),
    ],
)
def test_what_a_patch_expects_of_files_is_named(file, tree, diff, message):
    with pytest.raises(KernelUnusable, match=message):
        apply(read_patches(file(diff)), tree)


def test_an_applied_patch_is_recognised(file, tree):
    patches = read_patches(file(DIFF))
    apply(patches, tree)
    with pytest.raises(KernelUnusable, match=r"a\.patch: is already in the source"):
        apply(patches, tree)


def test_a_repository_around_the_folder_and_the_environment_change_nothing(
    file, tree, tmp_path, monkeypatch
):
    (tmp_path / ".git").mkdir()
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    apply(read_patches(file(DIFF)), tree)
    assert "TWO" in (tree / "net/dev.c").read_text()


def test_both_names_of_a_rename_are_listed(file, tree):
    rename = "diff --git a/net/dev.c b/net/b.c\nsimilarity index 100%\n"
    rename += "rename from net/dev.c\nrename to net/b.c\n"
    (patch,) = read_patches(file(rename))
    assert paths_of(patch, tree) == {"net/dev.c", "net/b.c"}
    apply([patch], tree)
    assert not (tree / "net/dev.c").exists()


@pytest.mark.parametrize("path", ["../escape", ".git/hooks/post-checkout", "net/../../x"])
def test_a_path_outside_of_the_source_is_refused(file, tree, path):
    (patch,) = read_patches(file(CREATE.replace("net/new.c", path)))
    with pytest.raises(KernelUnusable, match="refused"):
        paths_of(patch, tree)
    with pytest.raises(KernelUnusable, match="refuses"):  # git itself, too
        apply([patch], tree)


def test_git_refuses_to_write_behind_a_link_the_patch_makes(file, tree, tmp_path):
    link = CREATE.replace("100644", "120000").replace("net/new.c", "net/link")
    link = link.replace("From here on", str(tmp_path))
    patches = read_all([file(link, "1"), file(CREATE.replace("net/new.c", "net/link/out"), "2")])
    with pytest.raises(KernelUnusable, match=r"refuses.*symbolic link"):
        apply(patches, tree)
    assert not (tmp_path / "out").exists()
