(function_definition name: (word) @name) @function
(program (variable_assignment name: (variable_name) @name) @minor.variable)
(program (declaration_command (variable_assignment name: (variable_name) @name) @minor.variable))

(command name: (command_name) @call)
(command name: (command_name) @_f . argument: (_) @import (#any-of? @_f "source" "."))
(comment) @above
