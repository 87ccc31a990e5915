"""What all tests share: the ``--bless`` flag that rewrites golden files instead of comparing with them."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--bless``."""
    parser.addoption("--bless", action="store_true", help="rewrite the golden files; review the diff like code")


@pytest.fixture
def bless(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be rewritten."""
    return bool(request.config.getoption("--bless"))
