"""``Memory`` against the plainest possible model, every read path after every step."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from sentinel_memory import Memory
from support.drawn import VALUES
from support.histories import CALLS, History, arguments_of, random_history

DATA = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text("ab é私\n", max_size=6),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("k1", max_size=2), inner),
    max_leaves=4,
)


def drawn(arguments: list[str]) -> dict[str, st.SearchStrategy[Any]]:
    """Each argument from its values; data from any that there are."""
    found = {name: st.sampled_from(VALUES[name]) for name in arguments}
    return {name: values | DATA if name == "data" else values for name, values in found.items()}


class MemoryAgainstModel(RuleBasedStateMachine):
    """Whatever is called in whatever order, the answers are those of the model."""

    @initialize(options=st.fixed_dictionaries(drawn(arguments_of(History.start))))
    def start(self, options: dict[str, Any]) -> None:
        self.history = History()
        self.history.start(**options)


def rule_of(name: str) -> Any:
    """A rule that makes one call of a history."""

    def make(machine: MemoryAgainstModel, **arguments: Any) -> None:
        machine.history.make(name, arguments)

    make.__name__ = name
    decorate: Any = rule
    return decorate(**drawn(arguments_of(CALLS[name])))(make)


for name in CALLS:
    setattr(MemoryAgainstModel, name, rule_of(name))

TestMemoryAgainstModel = MemoryAgainstModel.TestCase
TestMemoryAgainstModel.settings = settings(max_examples=80, stateful_step_count=40)


def test_random_histories_agree_with_the_model() -> None:
    """The beginnings of those that ``benchmarks/histories.py`` runs to their ends."""
    outcomes = [random_history(seed, most=12) for seed in range(200)]
    assert [one.difference for one in outcomes if one.difference] == []


def test_a_difference_is_found_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same, with a memory that takes what misled for what helped."""
    monkeypatch.setattr(Memory, "demote", Memory.reinforce)
    outcomes = [random_history(seed, most=12) for seed in range(10)]
    found = [one for one in outcomes if one.difference]
    assert found
    assert {one.last for one in found} <= {"demote", "batch", "transact"}
    assert all("the demoted entry: the memory has" in str(one.difference) for one in found)
