"""An OpenAI-compatible service in front of any engine, which sends in a policy's order.

Clients change the base URL and name their agent. What cannot start yet is held back
here, so the engines behind need not know of agents. ``docs/gateway.md`` is for those
who run it.
"""
