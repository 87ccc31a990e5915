"""The page of a report: one HTML file that needs nothing else.

In: the data of ``report_data``. Out: HTML text, the same for the same data. Not done here: the data.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any


def report_page(data: Mapping[str, Any]) -> str:
    """Return the page. The data are compressed in it: names of users never stand as text in the
    HTML, so that they cannot be taken for markup."""
    content = zlib.compress(json.dumps(data, separators=(",", ":")).encode(), 9)
    page = _part("report.html")
    page = page.replace("@STYLE@", _part("report.css")).replace("@SCRIPT@", _part("report.js"))
    return page.replace("@DATA@", base64.b64encode(content).decode())


def _part(name: str) -> str:
    return (files("ingot_build_rules.tools.view") / "page" / name).read_text(encoding="utf-8")
