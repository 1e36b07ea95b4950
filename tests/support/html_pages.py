"""Pages as trees, and what they say."""

import xml.etree.ElementTree as xml


def parsed(text):
    """The page as a tree; a page that is not well-formed raises."""
    assert text.startswith("<!doctype html>\n")
    return xml.fromstring(text.removeprefix("<!doctype html>\n"))


def words(element):
    return " ".join("".join(element.itertext()).split())
