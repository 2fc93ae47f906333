(struct_specifier name: (_) @name body: (_)) @struct
(union_specifier name: (_) @name body: (_)) @union
(enum_specifier name: (_) @name body: (_)) @enum
(function_definition declarator: (function_declarator declarator: (_) @name)) @function
(function_definition declarator: (pointer_declarator declarator: (function_declarator declarator: (_) @name)))
  @function
(function_definition declarator: (pointer_declarator declarator: (pointer_declarator
  declarator: (function_declarator declarator: (_) @name)))) @function
(preproc_function_def name: (identifier) @name) @macro
(preproc_def name: (identifier) @name) @minor.constant
(type_definition declarator: (type_identifier) @name) @type
(type_definition declarator: (function_declarator declarator: (parenthesized_declarator
  (pointer_declarator declarator: (type_identifier) @name)))) @minor.type
(declaration type: (union_specifier name: (type_identifier) @name)) @minor.union
(enumerator name: (identifier) @name) @minor.constant
(function_declarator declarator: (identifier) @name) @minor.function

(call_expression function: (_) @call)
(preproc_include path: (_) @import)
(comment) @above
