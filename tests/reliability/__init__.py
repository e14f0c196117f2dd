"""What must survive: SIGKILL of workers and of web, restarts of PostgreSQL and the broker, FLUSHALL, lost, doubled and
reordered messages, many writers, many workers, edits during a run. `make test-reliability`; docs/reliability.md.

Nothing here runs in the test's process: a cluster of its own (web, one to four workers, beat, PostgreSQL, Valkey, a
scripted model server), started on free ports in a temporary folder, is killed from outside and looked at through its
API and SQL. The product has no hooks for this; a moment is chosen with what is outside of it:

| the worker is killed | how the test knows that it is there |
|---|---|
| before the call | the test holds the conversation's row lock, and the claimed job waits for it |
| during the call | the model server holds the answer back |
| after the answer, before the commit | the answer is released while the test holds the row lock |
| between apply and ack | the broker is told to hold writes back: the apply commits, the ack does not arrive |
| at random | `test_random_kills.py`: a seeded list of faults under load; the clients' ledger says what is owed |

Files: `cluster` the processes; `database` looks and locks by SQL; `broker` its messages; `client` one key's view of the
API; `load` the clients with their ledger; `faults` the list and its execution; `watch` who held which lease; `verdict`
what is counted afterwards; `audit` the product's own invariants, in a process of the cluster's environment; `report`
table and JSON.

`KILLS` (default 200) sets the size of the random run, `LIMIT_S` how long it makes faults at most, `SEED` repeats one.
"""
