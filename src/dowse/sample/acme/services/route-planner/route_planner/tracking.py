"""HTTP client of tracking-hub: which depots are closed today."""

import logging

import httpx

log = logging.getLogger(__name__)


class TrackingHub:
    def __init__(self, url: str, client: httpx.Client | None = None) -> None:
        self._url = url
        self._client = client or httpx.Client(timeout=2.0)

    def closed_depots(self) -> frozenset[str]:
        """Codes of depots that take nothing today. When tracking-hub is away all count as open: a van that finds a
        closed gate is a nuisance, a town without tours is an incident."""
        try:
            response = self._client.get(f"{self._url}/depots", params={"state": "closed"})
            response.raise_for_status()
        except httpx.HTTPError as err:
            log.warning("tracking-hub did not answer, assuming that every depot is open: %s", err)
            return frozenset()
        return frozenset(depot["code"] for depot in response.json())
