"""What the service costs and reaches, measured: `make bench`.

Machines are shared and noisy, so a speed is a ratio of two things measured in turns within one run, or a count. Each
module measures some figures; `__main__` runs them, prints a table and writes `.data/bench.json`. How each is measured:
docs/benchmarks.md.
"""
