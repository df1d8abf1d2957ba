"""How Dagster sees the pipeline: the only room that imports it. Every concept has a module of its own."""
