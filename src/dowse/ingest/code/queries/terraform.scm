(config_file (body (block (identifier) @name) @block))

(function_call (identifier) @call)
(comment) @above
