"""The policy inside SGLang's own scheduler, as a plugin of SGLang's.

SGLang loads `justitia.engines.sglang.plugin.register` from the entry point ``justitia``
of ``sglang.srt.plugins``. That does nothing unless a variable ``JUSTITIA_…`` says what
to do; ``docs/sglang.md`` has them. SGLang is imported there, and not with this module.
"""

ADMISSIONS = ("none", "max")
"""Of the settings' admissions, those that SGLang can do."""
