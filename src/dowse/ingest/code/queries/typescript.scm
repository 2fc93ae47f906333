; inherits: ecma

(abstract_class_declaration name: (_) @name) @class
(interface_declaration name: (_) @name) @interface
(enum_declaration name: (_) @name) @enum
(type_alias_declaration name: (_) @name) @type
(internal_module name: (_) @name) @module
(module name: (_) @name) @module
(public_field_definition name: (_) @name value: [(arrow_function) (function_expression) (generator_function)]) @method
(public_field_definition name: (_) @name) @minor.field
(function_signature name: (identifier) @name) @minor.function
(method_signature name: (_) @name) @minor.method
(abstract_method_signature name: (_) @name) @minor.method
(interface_body (property_signature name: (_) @name) @minor.field)
