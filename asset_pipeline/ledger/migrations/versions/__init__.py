"""The steps, in order. A published one is never changed."""
