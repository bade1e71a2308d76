"""Custom resources as pydantic models, CRDs generated from them, API names, and the configuration file."""
