"""What all tests share: a clock that moves only when told."""

from __future__ import annotations

import pytest

from support.clocks import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()
