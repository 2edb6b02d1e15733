"""What all tests share: a clock that moves only when told."""

from __future__ import annotations

import pytest
from hypothesis import settings

from support.clocks import FakeClock

# No test depends on how fast the machine is that runs it.
settings.register_profile("without a deadline", deadline=None)
settings.load_profile("without a deadline")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()
