# SPDX-License-Identifier: GPL-2.0-only
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from pytest_napi.untrusted import printable


def test_control_characters_are_shown():
    assert printable(b"a\x1b[31mred\x00\ttab\r\nnext\x85") == "a\\x1b[31mred\\x00\ttab\nnext\\x85"


def test_what_is_printable_stays():
    assert printable("grüße, 你好\n") == "grüße, 你好\n"


@given(st.binary())
def test_any_bytes_may_stand_in_xml_and_on_a_terminal(raw):
    text = printable(raw)
    element = ElementTree.Element("log")
    element.text = text
    assert ElementTree.fromstring(ElementTree.tostring(element)).text in (text, None)
    assert not set(text) & set(map(chr, [*range(9), *range(11, 32), *range(127, 160)]))
