"""Beside a simulator that others made."""
