"""What workers do with tasks: take what is due, send, read, store, look into what is unclear, clean up.

Nothing here is called by an owner; `operations`, `deletion` and `desk` are. The engine reads a provider's
capability flags and never its name.
"""
