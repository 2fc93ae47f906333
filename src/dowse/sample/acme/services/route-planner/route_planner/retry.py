"""The planner's half of ADR 0006: a budget for repeated calls, and delays that do not march in step."""

import random
import time


class RetryBudget:
    """Tokens: a success earns `ratio`, a retry spends one, and `min_per_second` trickles in.

    Mirrors services/booking-api/src/retryBudget.ts; the numbers are chosen per dependency.
    """

    def __init__(self, ratio: float, min_per_second: float, window_seconds: float = 10.0) -> None:
        self._ratio = ratio
        self._trickle = min_per_second
        self._ceiling = min_per_second * window_seconds + 1000 * ratio
        self._balance = min_per_second * window_seconds
        self._at = time.monotonic()

    def deposit(self) -> None:
        self._balance = min(self._balance + self._ratio, self._ceiling)

    def try_withdraw(self) -> bool:
        now = time.monotonic()
        self._balance = min(self._balance + (now - self._at) * self._trickle, self._ceiling)
        self._at = now
        if self._balance < 1:
            return False
        self._balance -= 1
        return True


def backoff_seconds(attempt: int, first: float = 0.25, limit: float = 20.0) -> float:
    """Full jitter: anything between nothing and the exponential step."""
    return random.uniform(0, min(limit, first * 2 ** (attempt - 1)))
