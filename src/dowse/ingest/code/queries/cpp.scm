; inherits: c

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

(new_expression type: (_) @call)
(template_declaration parameters: (_) @above)
