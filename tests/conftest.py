"""What all tests share: the ``--bless`` flag that rewrites golden files instead of comparing with them, and Ctrl-C."""

import signal

import pytest


def pytest_configure() -> None:
    """Children must hear Ctrl-C: a shell starts what runs in the background with it ignored, and that is inherited."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--bless``."""
    parser.addoption("--bless", action="store_true", help="rewrite the golden files; review the diff like code")


@pytest.fixture
def bless(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be rewritten."""
    return bool(request.config.getoption("--bless"))
