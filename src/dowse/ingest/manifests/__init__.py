"""Manifest reading: deploy, build and interface files enter; chunks and service facts leave.

Imports `chunking`, `services.facts` and PyYAML. A file that is no valid manifest is read as text.
Each reader is a module of its own, however short.
"""
