"""gRPC client of quote-engine: the price of a kilometre, kept for an hour."""

import time

import grpc

from wrenfold.quotes.v1 import quotes_pb2, quotes_pb2_grpc

KEEP_SECONDS = 3600
DEADLINE_SECONDS = 1.5


class KilometreRates:
    def __init__(self, address: str) -> None:
        self._stub = quotes_pb2_grpc.QuoteServiceStub(grpc.insecure_channel(address))
        self._known: dict[str, tuple[float, int]] = {}

    def micros_per_kilometre(self, vehicle_class: str) -> int:
        """Yesterday's rate is fine when quote-engine is away; without any rate the error is raised."""
        known = self._known.get(vehicle_class)
        if known and time.monotonic() - known[0] < KEEP_SECONDS:
            return known[1]
        request = quotes_pb2.KilometreRateRequest(
            vehicle_class=quotes_pb2.VehicleClass.Value(f"VEHICLE_CLASS_{vehicle_class}")
        )
        try:
            response = self._stub.GetKilometreRate(request, timeout=DEADLINE_SECONDS)
        except grpc.RpcError:
            if known is None:
                raise
            return known[1]
        self._known[vehicle_class] = (time.monotonic(), response.micros_per_kilometre)
        return response.micros_per_kilometre
