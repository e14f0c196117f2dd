"""Everything about a summary that needs no model: its input, its prompts, what makes an answer acceptable, its bound,
the extractive fallback, and the report of what it kept and dropped (semantics 7 and 10).

    span ──> chunks ──> prompt ──> (a model) ──> accept ──> bound ──> files, report
      └──> extractive (select, checklist, names, files) ───────^

`text` and `terms` read any text in linear time, `sections` is the summary's form, `transcript` its input's markup, and
`lexicon` holds all words of natural languages.
"""
