(function_declaration name: (identifier) @name) @function
(method_declaration receiver: (parameter_list) @scope name: (field_identifier) @name) @method
(type_spec name: (type_identifier) @name type: (struct_type)) @struct
(type_spec name: (type_identifier) @name type: (interface_type)) @interface
(type_spec name: (type_identifier) @name) @type
(type_alias name: (type_identifier) @name) @minor.type
(interface_type (method_elem name: (field_identifier) @name) @minor.method)
(const_spec name: (identifier) @name) @minor.constant
(source_file (var_declaration (var_spec name: (identifier) @name) @minor.variable))
(source_file (var_declaration (var_spec_list (var_spec name: (identifier) @name) @minor.variable)))

(call_expression function: (_) @call)
(import_spec path: (_) @import)
(comment) @above
