"""Shared by the cluster tests: kubectl, the counting origin, training jobs."""
