"""Pipeline stages, one module each: a query state enters, a new query state leaves."""
