"""Travel times from the map provider, with a cache and a limit on what is asked at once."""

import logging
import time

import httpx

from route_planner.batches import Stop
from route_planner.retry import RetryBudget, backoff_seconds

log = logging.getLogger(__name__)

MAX_POINTS = 400  # the provider's limit per matrix request
TIMEOUT_SECONDS = 10.0


class MatrixTooLarge(Exception):
    """More stops than the provider computes in one request."""


class CartographUnavailable(Exception):
    """The provider failed and the retry budget is spent."""


class CartographClient:
    def __init__(self, url: str, token: str, client: httpx.Client | None = None) -> None:
        self._url = url
        self._client = client or httpx.Client(timeout=TIMEOUT_SECONDS, headers={"authorization": f"Bearer {token}"})
        self._budget = RetryBudget(ratio=0.1, min_per_second=0.5)

    def travel_minutes(self, depot: str, stops: tuple[Stop, ...]) -> list[list[float]]:
        """A square matrix whose row 0 is the depot. Driving one way is rarely as long as driving back, so it is not symmetric."""
        if len(stops) > MAX_POINTS:
            raise MatrixTooLarge(f"{len(stops)} stops, the provider takes {MAX_POINTS}; shorten PLANNER_WINDOW_SECONDS")
        points = [[stop.longitude, stop.latitude] for stop in stops]
        body = {"origin": depot, "points": points, "profile": "cycling-cargo"}
        response = self._post("/matrix", body)
        return [[seconds / 60 for seconds in row] for row in response["durations"]]

    def _post(self, path: str, body: dict[str, object]) -> dict[str, list[list[float]]]:
        attempt = 0
        while True:
            try:
                response = self._client.post(self._url + path, json=body)
                response.raise_for_status()
                self._budget.deposit()
                return response.json()
            except (httpx.TransportError, httpx.HTTPStatusError) as err:
                if _is_permanent(err) or not self._budget.try_withdraw():
                    raise CartographUnavailable(f"POST {path}: {err}") from err
                attempt += 1
                time.sleep(backoff_seconds(attempt))
                log.warning("map provider failed, attempt %d: %s", attempt, err)


def _is_permanent(err: Exception) -> bool:
    """A 4xx will not get better by asking again, except for 429."""
    return isinstance(err, httpx.HTTPStatusError) and err.response.status_code < 500 and err.response.status_code != 429
