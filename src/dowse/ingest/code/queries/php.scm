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
