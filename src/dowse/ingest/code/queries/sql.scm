(create_table (object_reference name: (_) @name)) @table
(create_view (object_reference name: (_) @name)) @view
(create_materialized_view (object_reference name: (_) @name)) @view
(create_function (object_reference name: (_) @name)) @function
(create_trigger . (_) . (_) . (object_reference name: (_) @name)) @trigger
(create_type (object_reference name: (_) @name)) @type
(create_index column: (identifier) @name) @minor.index
(create_sequence (object_reference name: (_) @name)) @minor.sequence
(create_schema (identifier) @name) @minor.schema
(column_definition name: (_) @name) @minor.column

(invocation (object_reference) @call)
(comment) @above
(marginalia) @above
