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

(call_expression . (_) @call)
(import_declaration (identifier) @import)
(comment) @above
(multiline_comment) @above
