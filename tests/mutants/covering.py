"""A plugin of pytest that tells coverage which test runs, so that each line is known with its tests."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import coverage
import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    measuring = coverage.Coverage.current()
    if measuring is not None:
        measuring.switch_context(item.nodeid)
    return (yield)
