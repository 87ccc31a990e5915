"""``examples/web`` in a real browser, served on loopback.

Needs ``chromium`` (`pytest -m browser`).
"""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.unit.cli.test_report_browser import CHROMIUM
from tests.unit.end_to_end.test_microcontroller import make_person, person_bits
from tests.wasm_model import export

pytestmark = pytest.mark.browser
ROOT = Path(__file__).parents[3]


class Quiet(SimpleHTTPRequestHandler):
    """Gives out files, and says nothing."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Nothing."""


def test_page(tmp_path: Path) -> None:
    """The page shows the scores that machine code gives, bit for bit."""
    model = make_person(tmp_path)
    folder = export(model, tmp_path / "web").parent
    shutil.copy(ROOT / "examples" / "web" / "index.html", folder)
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        flags = ("--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=60000")
        address = f"http://127.0.0.1:{server.server_port}/index.html"
        line = [CHROMIUM, *flags, "--dump-dom", address]
        document = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    found = re.search('data-bits="([0-9a-f ]*)"', document)
    assert found, document
    assert found[1].split() == person_bits(model, tmp_path, "x86-64-v2")
