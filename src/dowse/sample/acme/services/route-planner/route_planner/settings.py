"""Settings of the planner, read from the environment once."""

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    routes_db_url: str
    parcel_bus_url: str
    cartograph_url: str
    cartograph_token: str
    tracking_hub_url: str
    quote_engine_addr: str
    prefetch: int = 40
    window_seconds: int = 90
    two_opt_seconds: float = 4.0
    max_stops: int = 120
    flags: str = ""


class MissingSettingError(Exception):
    """A variable without a default is not set; the process must not start half-configured."""


def load_settings(env: dict[str, str] | None = None) -> Settings:
    env = dict(os.environ) if env is None else env

    def required(name: str) -> str:
        if not env.get(name):
            raise MissingSettingError(f"{name} is not set; see services/route-planner/README.md")
        return env[name]

    return Settings(
        routes_db_url=required("ROUTES_DB_URL"),
        parcel_bus_url=required("PARCEL_BUS_URL"),
        cartograph_url=required("CARTOGRAPH_URL"),
        cartograph_token=env.get("CARTOGRAPH_TOKEN", ""),
        tracking_hub_url=required("TRACKING_HUB_URL"),
        quote_engine_addr=required("QUOTE_ENGINE_ADDR"),
        prefetch=int(env.get("PLANNER_PREFETCH", "40")),
        window_seconds=int(env.get("PLANNER_WINDOW_SECONDS", "90")),
        two_opt_seconds=float(env.get("PLANNER_TWO_OPT_SECONDS", "4.0")),
        max_stops=int(env.get("PLANNER_MAX_STOPS", "120")),
        flags=env.get("FEATURE_FLAGS", ""),
    )
