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

(invocation_expression function: (_) @call)
(object_creation_expression type: (_) @call)
(using_directive [(identifier) (qualified_name)] @import)
(comment) @above
