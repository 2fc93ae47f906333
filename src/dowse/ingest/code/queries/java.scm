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

(method_invocation name: (identifier) @call)
(object_creation_expression type: (_) @call)
(import_declaration [(identifier) (scoped_identifier)] @import)
(line_comment) @above
(block_comment) @above
