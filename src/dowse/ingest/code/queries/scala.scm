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

(call_expression function: (_) @call)
(instance_expression (_) @call)
(import_declaration) @import
(comment) @above
(block_comment) @above
(annotation) @above
