"""Tours in Postgres. Saving the same tour again replaces it."""

from psycopg_pool import ConnectionPool

from route_planner.solver import Tour

_UPSERT = """
    INSERT INTO tours (id, depot, delivery_window, vehicle_class, stop_order, minutes, price_micros, planned_at)
    VALUES (%s, %s, %s, %s, %s, %s, %s, now())
    ON CONFLICT (id) DO UPDATE
       SET stop_order = EXCLUDED.stop_order, minutes = EXCLUDED.minutes, planned_at = EXCLUDED.planned_at
"""


class RouteRepository:
    def __init__(self, url: str) -> None:
        self._pool = ConnectionPool(url, min_size=1, max_size=4, open=True)

    def save(self, tour: Tour) -> None:
        with self._pool.connection() as connection, connection.transaction():
            connection.execute(
                _UPSERT,
                (tour.id, tour.depot, tour.window, tour.vehicle_class, list(tour.order), tour.minutes, tour.price_micros),
            )
            connection.execute("DELETE FROM tour_shipments WHERE tour_id = %s", (tour.id,))
            with connection.cursor() as cursor:
                cursor.executemany(
                    "INSERT INTO tour_shipments (tour_id, position, number) VALUES (%s, %s, %s)",
                    [(tour.id, position, number) for position, number in enumerate(tour.shipments)],
                )

    def tours_of(self, depot: str, window: str) -> list[tuple[str, float]]:
        with self._pool.connection() as connection:
            return connection.execute(
                "SELECT id, minutes FROM tours WHERE depot = %s AND delivery_window = %s ORDER BY id", (depot, window)
            ).fetchall()
