"""Service graph: facts from manifests and code enter; services, their calls and the evidence leave.

Imports core values and ports.
"""
