"""Benchmarks in SGLang: of what the adapter costs there."""
