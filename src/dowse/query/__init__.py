"""The query path: a request and a store enter, a ranked and explained result leaves.

`pipeline` runs the stages that `assemble` puts together. Imports core values and ports only: no store, no model.
"""
