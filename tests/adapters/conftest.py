"""Hooks for the conformance suites of other frameworks."""

from __future__ import annotations

import asyncio
import os
from inspect import iscoroutinefunction

import pytest

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"  # else Haystack reports its use to its makers


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run their coroutines, which pytest alone does not."""
    if not iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True
