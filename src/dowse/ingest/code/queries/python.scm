(class_definition name: (identifier) @name) @class
(function_definition name: (identifier) @name) @function
(module (expression_statement (assignment left: (identifier) @name) @minor.constant))
(class_definition body: (block (expression_statement (assignment left: (identifier) @name) @minor.field)))
(module (type_alias_statement left: (type (identifier) @name)) @minor.type)

(call function: (_) @call)
(import_statement) @import
(import_from_statement) @import
(comment) @above
(decorator) @above
