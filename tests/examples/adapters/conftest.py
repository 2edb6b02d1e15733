"""These tests need the real frameworks, the extra ``examples``; without it none is collected."""

from __future__ import annotations

from importlib.util import find_spec

NEEDS = {
    "test_openai_agents.py": "agents",
    "test_langchain_history.py": "langchain_core",
    "test_fastapi_app.py": "fastapi",
}
collect_ignore = [name for name, package in NEEDS.items() if find_spec(package) is None]
