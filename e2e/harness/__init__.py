"""What the cluster tests share: kubectl, the origin that counts, training jobs."""
