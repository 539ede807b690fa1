"""What runs on the real vLLM only; see docs/benchmarks.md."""
