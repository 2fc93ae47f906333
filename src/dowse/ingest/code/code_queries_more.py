"""The queries for the languages of the extra `langs`; see `code_queries` for what the captures mean."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from dowse.ingest.code.code_queries import Queries

KOTLIN = Queries(
    """
    (class_declaration name: (identifier) @name) @class
    (object_declaration name: (identifier) @name) @object
    (companion_object) @scope.object
    (function_declaration name: (identifier) @name) @function
    (secondary_constructor "constructor" @name) @constructor
    (property_declaration (variable_declaration (identifier) @name)) @minor.property
    (type_alias type: (identifier) @name) @minor.type
    (enum_entry (identifier) @name) @minor.constant
    """,
    """
    (call_expression . (_) @call)
    (import (qualified_identifier) @import)
    (line_comment) @above
    (block_comment) @above
    """,
)

SWIFT = Queries(
    """
    (class_declaration name: (_) @name) @class
    (protocol_declaration name: (_) @name) @interface
    (function_declaration name: (simple_identifier) @name) @function
    (init_declaration "init" @name) @constructor
    (deinit_declaration "deinit" @name) @method
    (subscript_declaration (parameter (simple_identifier) @name)) @minor.method
    (protocol_function_declaration name: (simple_identifier) @name) @minor.method
    (property_declaration name: (pattern (simple_identifier) @name)) @minor.property
    (protocol_property_declaration name: (pattern (simple_identifier) @name)) @minor.property
    (typealias_declaration name: (type_identifier) @name) @minor.type
    (enum_entry name: (simple_identifier) @name) @minor.constant
    """,
    """
    (call_expression . (_) @call)
    (import_declaration (identifier) @import)
    (comment) @above
    (multiline_comment) @above
    """,
)

SCALA = Queries(
    """
    (class_definition name: (identifier) @name) @class
    (object_definition name: (identifier) @name) @object
    (package_object name: (identifier) @name) @object
    (trait_definition name: (identifier) @name) @trait
    (enum_definition name: (identifier) @name) @enum
    (function_definition name: (_) @name) @function
    (given_definition name: (identifier) @name) @minor.variable
    (function_declaration name: (_) @name) @minor.method
    (package_clause name: (package_identifier) @name) @minor.namespace
    (val_definition pattern: (identifier) @name) @minor.variable
    (var_definition pattern: (identifier) @name) @minor.variable
    (val_declaration name: (identifier) @name) @minor.variable
    (var_declaration name: (identifier) @name) @minor.variable
    (type_definition name: (type_identifier) @name) @minor.type
    (simple_enum_case name: (identifier) @name) @minor.class
    (full_enum_case name: (identifier) @name) @minor.class
    (class_parameter name: (identifier) @name) @minor.property
    """,
    """
    (call_expression function: (_) @call)
    (instance_expression (_) @call)
    (import_declaration) @import
    (comment) @above
    (block_comment) @above
    (annotation) @above
    """,
)

SQL = Queries(
    """
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
    """,
    """
    (invocation (object_reference) @call)
    (comment) @above
    (marginalia) @above
    """,
)

LUA = Queries(
    """
    (function_declaration name: (identifier) @name) @function
    (function_declaration name: (dot_index_expression table: (_) @scope field: (identifier) @name)) @function
    (function_declaration name: (method_index_expression table: (_) @scope method: (identifier) @name)) @method
    (assignment_statement (variable_list . name: (identifier) @name) (expression_list . value: (function_definition)))
      @function
    (assignment_statement
      (variable_list . name: (dot_index_expression table: (_) @scope field: (identifier) @name))
      (expression_list . value: (function_definition))) @function
    (field name: (identifier) @name value: (function_definition)) @function
    (chunk (variable_declaration (assignment_statement (variable_list name: (identifier) @name)) @minor.variable))
    """,
    """
    (function_call name: (_) @call)
    (function_call name: (identifier) @_f arguments: (arguments . (string) @import) (#eq? @_f "require"))
    (comment) @above
    """,
)

HCL = Queries(
    "(config_file (body (block (identifier) @name) @block))",
    """
    (function_call (identifier) @call)
    (comment) @above
    """,
)

_MODULES = '"defmodule" "defprotocol" "defimpl"'
_FUNCTIONS = '"def" "defp" "defdelegate" "defguard" "defguardp" "defmacro" "defmacrop" "defn" "defnp"'
ELIXIR = Queries(
    f"""
    (call target: (identifier) @_f (arguments . (alias) @name) (#any-of? @_f {_MODULES})) @module
    (call target: (identifier) @_f (arguments . (identifier) @name) (#any-of? @_f {_FUNCTIONS})) @function
    (call target: (identifier) @_f (arguments . (call target: (identifier) @name)) (#any-of? @_f {_FUNCTIONS}))
      @function
    (call target: (identifier) @_f
      (arguments . (binary_operator left: (call target: (identifier) @name) operator: "when"))
      (#any-of? @_f {_FUNCTIONS})) @function
    """,
    """
    (call target: (_) @call)
    (call target: (identifier) @_f (arguments . (alias) @import) (#any-of? @_f "alias" "import" "use" "require"))
    (comment) @above
    (unary_operator operator: "@") @above
    """,
)

MORE: Mapping[str, Queries] = MappingProxyType(
    {
        "kotlin": KOTLIN,
        "swift": SWIFT,
        "scala": SCALA,
        "sql": SQL,
        "lua": LUA,
        "terraform": HCL,
        "elixir": ELIXIR,
    }
)
