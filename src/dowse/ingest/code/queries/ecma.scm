(class_declaration name: (_) @name) @class
(class name: (_) @name) @class
(method_definition name: (_) @name) @method
(function_declaration name: (identifier) @name) @function
(generator_function_declaration name: (identifier) @name) @function
(function_expression name: (identifier) @name) @function
(generator_function name: (identifier) @name) @function
(variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression) (generator_function)]) @function
(variable_declarator name: (identifier) @name value: (class)) @class
(assignment_expression left: (identifier) @name right: [(arrow_function) (function_expression) (generator_function)]) @function
(assignment_expression
  left: (member_expression object: (_) @scope property: (_) @name) right: [(arrow_function) (function_expression) (generator_function)]) @function
(pair key: (property_identifier) @name value: [(arrow_function) (function_expression) (generator_function)]) @function
(program (lexical_declaration (variable_declarator name: (identifier) @name) @minor.constant))
(program (variable_declaration (variable_declarator name: (identifier) @name) @minor.variable))
(export_statement (lexical_declaration (variable_declarator name: (identifier) @name) @minor.constant))
(export_statement value: (assignment_expression left: (identifier) @name)) @minor.constant

(call_expression function: (_) @call)
(new_expression constructor: (_) @call)
(import_statement source: (string) @import)
(export_statement source: (string) @import)
(call_expression function: (identifier) @_f arguments: (arguments . (string) @import) (#eq? @_f "require"))
(comment) @above
(decorator) @above
