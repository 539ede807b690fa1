"""The engine ``openai``: workloads on servers, through the gateway's dispatcher."""

from justitia.gateway.openai.engine import OpenAIEngine

__all__ = ["OpenAIEngine"]
