(call target: (identifier) @_f (arguments . (alias) @name) (#any-of? @_f "defmodule" "defprotocol" "defimpl")) @module
(call target: (identifier) @_f (arguments . (identifier) @name) (#any-of? @_f "def" "defp" "defdelegate" "defguard" "defguardp" "defmacro" "defmacrop" "defn" "defnp")) @function
(call target: (identifier) @_f (arguments . (call target: (identifier) @name)) (#any-of? @_f "def" "defp" "defdelegate" "defguard" "defguardp" "defmacro" "defmacrop" "defn" "defnp"))
  @function
(call target: (identifier) @_f
  (arguments . (binary_operator left: (call target: (identifier) @name) operator: "when"))
  (#any-of? @_f "def" "defp" "defdelegate" "defguard" "defguardp" "defmacro" "defmacrop" "defn" "defnp")) @function

(call target: (_) @call)
(call target: (identifier) @_f (arguments . (alias) @import) (#any-of? @_f "alias" "import" "use" "require"))
(comment) @above
(unary_operator operator: "@") @above
