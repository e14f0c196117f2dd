"""Everything about a summary that needs no model: its input, its prompts, what makes an answer acceptable, its bound,
the extractive fallback, and the report of what it kept and dropped (semantics 7 and 10).

    span ──> chunks ──> prompt ──> (a model) ──> accept ──> bound ──> report
      └────────────────> extractive ─────────────────────────^
"""
