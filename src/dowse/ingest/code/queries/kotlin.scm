(class_declaration name: (identifier) @name) @class
(object_declaration name: (identifier) @name) @object
(companion_object) @scope.object
(function_declaration name: (identifier) @name) @function
(secondary_constructor "constructor" @name) @constructor
(property_declaration (variable_declaration (identifier) @name)) @minor.property
(type_alias type: (identifier) @name) @minor.type
(enum_entry (identifier) @name) @minor.constant

(call_expression . (_) @call)
(import (qualified_identifier) @import)
(line_comment) @above
(block_comment) @above
