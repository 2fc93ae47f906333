"""A language's name goes in; the tree-sitter queries that find its definitions, calls and imports come out.

In `definitions` each pattern captures a definition under its kind and its name as `@name`. `@minor.KIND` is one that
never makes a chunk of its own (a constant, a field, a prototype); `@scope.KIND` only encloses others (an impl block);
`@scope` is a receiver or qualifier that goes before the name. Where two patterns meet on one name, the first wins.
In `references`, `@call` is what is called, `@import` an import, `@above` a comment, decorator or attribute that
belongs to the definition below it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class Queries:
    """What one grammar is asked."""

    definitions: str
    references: str


PYTHON = Queries(
    """
    (class_definition name: (identifier) @name) @class
    (function_definition name: (identifier) @name) @function
    (module (expression_statement (assignment left: (identifier) @name) @minor.constant))
    (class_definition body: (block (expression_statement (assignment left: (identifier) @name) @minor.field)))
    (module (type_alias_statement left: (type (identifier) @name)) @minor.type)
    """,
    """
    (call function: (_) @call)
    (import_statement) @import
    (import_from_statement) @import
    (comment) @above
    (decorator) @above
    """,
)

GO = Queries(
    """
    (function_declaration name: (identifier) @name) @function
    (method_declaration receiver: (parameter_list) @scope name: (field_identifier) @name) @method
    (type_spec name: (type_identifier) @name type: (struct_type)) @struct
    (type_spec name: (type_identifier) @name type: (interface_type)) @interface
    (type_spec name: (type_identifier) @name) @type
    (type_alias name: (type_identifier) @name) @minor.type
    (interface_type (method_elem name: (field_identifier) @name) @minor.method)
    (const_spec name: (identifier) @name) @minor.constant
    (source_file (var_declaration (var_spec name: (identifier) @name) @minor.variable))
    (source_file (var_declaration (var_spec_list (var_spec name: (identifier) @name) @minor.variable)))
    """,
    """
    (call_expression function: (_) @call)
    (import_spec path: (_) @import)
    (comment) @above
    """,
)

JAVA = Queries(
    """
    (class_declaration name: (identifier) @name) @class
    (interface_declaration name: (identifier) @name) @interface
    (enum_declaration name: (identifier) @name) @enum
    (record_declaration name: (identifier) @name) @record
    (annotation_type_declaration name: (identifier) @name) @annotation
    (method_declaration name: (identifier) @name) @method
    (constructor_declaration name: (identifier) @name) @constructor
    (compact_constructor_declaration name: (identifier) @name) @constructor
    (field_declaration declarator: (variable_declarator name: (identifier) @name)) @minor.field
    (enum_constant name: (identifier) @name) @minor.constant
    """,
    """
    (method_invocation name: (identifier) @call)
    (object_creation_expression type: (_) @call)
    (import_declaration [(identifier) (scoped_identifier)] @import)
    (line_comment) @above
    (block_comment) @above
    """,
)

_FUNCTIONS = "[(arrow_function) (function_expression) (generator_function)]"
_JAVASCRIPT_DEFINITIONS = f"""
    (class_declaration name: (_) @name) @class
    (class name: (_) @name) @class
    (method_definition name: (_) @name) @method
    (function_declaration name: (identifier) @name) @function
    (generator_function_declaration name: (identifier) @name) @function
    (function_expression name: (identifier) @name) @function
    (generator_function name: (identifier) @name) @function
    (variable_declarator name: (identifier) @name value: {_FUNCTIONS}) @function
    (variable_declarator name: (identifier) @name value: (class)) @class
    (assignment_expression left: (identifier) @name right: {_FUNCTIONS}) @function
    (assignment_expression
      left: (member_expression object: (_) @scope property: (_) @name) right: {_FUNCTIONS}) @function
    (pair key: (property_identifier) @name value: {_FUNCTIONS}) @function
    (program (lexical_declaration (variable_declarator name: (identifier) @name) @minor.constant))
    (program (variable_declaration (variable_declarator name: (identifier) @name) @minor.variable))
    (export_statement (lexical_declaration (variable_declarator name: (identifier) @name) @minor.constant))
    (export_statement value: (assignment_expression left: (identifier) @name)) @minor.constant
"""
_JAVASCRIPT_REFERENCES = """
    (call_expression function: (_) @call)
    (new_expression constructor: (_) @call)
    (import_statement source: (string) @import)
    (export_statement source: (string) @import)
    (call_expression function: (identifier) @_f arguments: (arguments . (string) @import) (#eq? @_f "require"))
    (comment) @above
    (decorator) @above
"""
JAVASCRIPT = Queries(
    _JAVASCRIPT_DEFINITIONS
    + f"""
    (field_definition property: (_) @name value: {_FUNCTIONS}) @method
    (field_definition property: (_) @name) @minor.field
    """,
    _JAVASCRIPT_REFERENCES,
)
TYPESCRIPT = Queries(
    _JAVASCRIPT_DEFINITIONS
    + f"""
    (abstract_class_declaration name: (_) @name) @class
    (interface_declaration name: (_) @name) @interface
    (enum_declaration name: (_) @name) @enum
    (type_alias_declaration name: (_) @name) @type
    (internal_module name: (_) @name) @module
    (module name: (_) @name) @module
    (public_field_definition name: (_) @name value: {_FUNCTIONS}) @method
    (public_field_definition name: (_) @name) @minor.field
    (function_signature name: (identifier) @name) @minor.function
    (method_signature name: (_) @name) @minor.method
    (abstract_method_signature name: (_) @name) @minor.method
    (interface_body (property_signature name: (_) @name) @minor.field)
    """,
    _JAVASCRIPT_REFERENCES,
)

_C_DEFINITIONS = """
    (struct_specifier name: (_) @name body: (_)) @struct
    (union_specifier name: (_) @name body: (_)) @union
    (enum_specifier name: (_) @name body: (_)) @enum
    (function_definition declarator: (function_declarator declarator: (_) @name)) @function
    (function_definition declarator: (pointer_declarator declarator: (function_declarator declarator: (_) @name)))
      @function
    (function_definition declarator: (pointer_declarator declarator: (pointer_declarator
      declarator: (function_declarator declarator: (_) @name)))) @function
    (preproc_function_def name: (identifier) @name) @macro
    (preproc_def name: (identifier) @name) @minor.constant
    (type_definition declarator: (type_identifier) @name) @type
    (type_definition declarator: (function_declarator declarator: (parenthesized_declarator
      (pointer_declarator declarator: (type_identifier) @name)))) @minor.type
    (declaration type: (union_specifier name: (type_identifier) @name)) @minor.union
    (enumerator name: (identifier) @name) @minor.constant
    (function_declarator declarator: (identifier) @name) @minor.function
"""
_C_REFERENCES = """
    (call_expression function: (_) @call)
    (preproc_include path: (_) @import)
    (comment) @above
"""
C = Queries(_C_DEFINITIONS, _C_REFERENCES)
CPP = Queries(
    _C_DEFINITIONS
    + """
    (class_specifier name: (_) @name body: (_)) @class
    (namespace_definition name: (_) @name) @namespace
    (function_definition declarator: (reference_declarator (function_declarator declarator: (_) @name))) @function
    (function_declarator declarator: (field_identifier) @name) @minor.method
    (function_declarator declarator: (qualified_identifier) @name) @minor.method
    (function_declarator declarator: (destructor_name) @name) @minor.method
    (function_declarator declarator: (operator_name) @name) @minor.method
    (alias_declaration name: (type_identifier) @name) @minor.type
    (concept_definition name: (identifier) @name) @minor.type
    (class_specifier name: (type_identifier) @name) @minor.class
    """,
    _C_REFERENCES
    + """
    (new_expression type: (_) @call)
    (template_declaration parameters: (_) @above)
    """,
)

CSHARP = Queries(
    """
    (namespace_declaration name: (_) @name) @namespace
    (class_declaration name: (identifier) @name) @class
    (interface_declaration name: (identifier) @name) @interface
    (struct_declaration name: (identifier) @name) @struct
    (record_declaration name: (identifier) @name) @record
    (enum_declaration name: (identifier) @name) @enum
    (delegate_declaration name: (identifier) @name) @minor.type
    (method_declaration name: (identifier) @name) @method
    (constructor_declaration name: (identifier) @name) @constructor
    (destructor_declaration name: (identifier) @name) @method
    (local_function_statement name: (identifier) @name) @function
    (property_declaration name: (identifier) @name) @minor.property
    (event_declaration name: (identifier) @name) @minor.property
    (field_declaration (variable_declaration (variable_declarator name: (identifier) @name))) @minor.field
    (enum_member_declaration name: (identifier) @name) @minor.constant
    """,
    """
    (invocation_expression function: (_) @call)
    (object_creation_expression type: (_) @call)
    (using_directive [(identifier) (qualified_name)] @import)
    (comment) @above
    """,
)

RUST = Queries(
    """
    (struct_item name: (type_identifier) @name) @struct
    (enum_item name: (type_identifier) @name) @enum
    (union_item name: (type_identifier) @name) @union
    (trait_item name: (type_identifier) @name) @trait
    (impl_item type: (_) @name) @scope.impl
    (mod_item name: (identifier) @name body: (_)) @module
    (mod_item name: (identifier) @name) @minor.module
    (function_item name: (identifier) @name) @function
    (macro_definition name: (identifier) @name) @macro
    (function_signature_item name: (identifier) @name) @minor.method
    (type_item name: (type_identifier) @name) @minor.type
    (const_item name: (identifier) @name) @minor.constant
    (static_item name: (identifier) @name) @minor.constant
    (enum_variant name: (identifier) @name) @minor.constant
    """,
    """
    (call_expression function: (_) @call)
    (macro_invocation macro: (_) @call)
    (use_declaration argument: (_) @import)
    (line_comment) @above
    (block_comment) @above
    (attribute_item) @above
    """,
)

RUBY = Queries(
    """
    (class name: (_) @name) @class
    (module name: (_) @name) @module
    (singleton_class value: (_) @name) @scope.class
    (method name: (_) @name) @method
    (singleton_method name: (_) @name) @method
    (alias name: (_) @name) @minor.method
    (assignment left: (constant) @name) @minor.constant
    """,
    """
    (call method: (identifier) @call)
    (call method: (identifier) @_f arguments: (argument_list . (string) @import)
      (#any-of? @_f "require" "require_relative" "load"))
    (comment) @above
    """,
)

PHP = Queries(
    """
    (namespace_definition name: (namespace_name) @name) @minor.namespace
    (class_declaration name: (name) @name) @class
    (interface_declaration name: (name) @name) @interface
    (trait_declaration name: (name) @name) @trait
    (enum_declaration name: (name) @name) @enum
    (function_definition name: (name) @name) @function
    (method_declaration name: (name) @name) @method
    (const_element (name) @name) @minor.constant
    (property_declaration (property_element (variable_name (name) @name))) @minor.field
    (enum_case name: (name) @name) @minor.constant
    """,
    """
    (function_call_expression function: (_) @call)
    (scoped_call_expression name: (name) @call)
    (member_call_expression name: (name) @call)
    (object_creation_expression [(name) (qualified_name)] @call)
    (namespace_use_clause [(name) (qualified_name)] @import)
    (require_expression [(string) (encapsed_string)] @import)
    (require_once_expression [(string) (encapsed_string)] @import)
    (include_expression [(string) (encapsed_string)] @import)
    (comment) @above
    (attribute_list) @above
    """,
)

BASH = Queries(
    """
    (function_definition name: (word) @name) @function
    (program (variable_assignment name: (variable_name) @name) @minor.variable)
    (program (declaration_command (variable_assignment name: (variable_name) @name) @minor.variable))
    """,
    """
    (command name: (command_name) @call)
    (command name: (command_name) @_f . argument: (_) @import (#any-of? @_f "source" "."))
    (comment) @above
    """,
)

CORE: Mapping[str, Queries] = MappingProxyType(
    {
        "python": PYTHON,
        "go": GO,
        "java": JAVA,
        "javascript": JAVASCRIPT,
        "typescript": TYPESCRIPT,
        "tsx": TYPESCRIPT,
        "c": C,
        "cpp": CPP,
        "csharp": CSHARP,
        "rust": RUST,
        "ruby": RUBY,
        "php": PHP,
        "shell": BASH,
    }
)
