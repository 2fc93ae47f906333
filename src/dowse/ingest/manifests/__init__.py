"""Manifest reading: deploy, build and interface files enter; chunks and service facts leave."""
