(struct_item name: (type_identifier) @name) @struct
(enum_item name: (type_identifier) @name) @enum
(union_item name: (type_identifier) @name) @union
(trait_item name: (type_identifier) @name) @trait
(impl_item type: (_) @name) @scope.impl
(mod_item name: (identifier) @name body: (_)) @module
(mod_item name: (identifier) @name) @minor.module
(function_item name: (identifier) @name) @function
(macro_definition name: (identifier) @name) @macro
(function_signature_item name: (identifier) @name) @minor.method
(type_item name: (type_identifier) @name) @minor.type
(const_item name: (identifier) @name) @minor.constant
(static_item name: (identifier) @name) @minor.constant
(enum_variant name: (identifier) @name) @minor.constant

(call_expression function: (_) @call)
(macro_invocation macro: (_) @call)
(use_declaration argument: (_) @import)
(line_comment) @above
(block_comment) @above
(attribute_item) @above
