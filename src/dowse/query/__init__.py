"""A question goes in, a ranked and explained result comes out; `pipeline.answer` is the way in."""
