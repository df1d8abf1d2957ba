"""Whose turn is it? Plans units of work, claims them, runs them on an executor, completes jobs."""
