"""Kopf handlers, which only pass watch events of custom resources on."""
