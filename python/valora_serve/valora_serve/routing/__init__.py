"""Chooses the replica for a request by the time it is expected to take there."""
