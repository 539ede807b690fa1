"""Claims that no client may make: fields with JSON that cannot be used of them."""

HOSTILE = (
    ("cost", "-5"),
    ("cost", "0"),
    ("cost", '"12"'),
    ("cost", "[1, 2]"),
    ("weight", "-1"),
    ("weight", "1e-400"),
    ("agent", f'"{"x" * 10_000}"'),
    ("agent", '""'),
    ("agent", "7.5"),
    ("agent", '["a", "b"]'),
    ("agent", '"a\\u0000\\r\\nX-Admin: yes"'),
    ("kind", f'"{"k" * 10_000}"'),
    ("stage", "-1"),
    ("stage", "1.5"),
    ("inferences", str(10**15)),
    ("tokens", "-1"),
    ("stage_costs", "[1, -2]"),
)


def hostile(prefix: str = "") -> list[tuple[str, str]]:
    """Return members of a JSON object, and the field that is at fault in each."""
    return [(f'"{prefix}{field}": {value}', field) for field, value in HOSTILE]
