"""Bytes by key: local folders and S3 buckets behind one interface."""
