(class name: (_) @name) @class
(module name: (_) @name) @module
(singleton_class value: (_) @name) @scope.class
(method name: (_) @name) @method
(singleton_method name: (_) @name) @method
(alias name: (_) @name) @minor.method
(assignment left: (constant) @name) @minor.constant

(call method: (identifier) @call)
(call method: (identifier) @_f arguments: (argument_list . (string) @import)
  (#any-of? @_f "require" "require_relative" "load"))
(comment) @above
