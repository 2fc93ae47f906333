"""The planner: booked shipments in, tours out."""
