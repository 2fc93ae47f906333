"""Pipeline stages, one module each: a query state enters, a new query state leaves.

A stage is pure: it does not log, time itself, catch or retry; `query.pipeline` does. Imports `query.plan`.
"""
