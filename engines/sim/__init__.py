"""An LLM engine simulated step by step: the embedded default."""
