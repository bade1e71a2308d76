"""The custom resources as pydantic models, the CRDs generated from them, names, and the configuration file."""
