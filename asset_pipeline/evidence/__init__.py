"""Can it be proved? Signed events in a chain, checkpoints over them, and the checks that need no more than public keys.

Pure: bytes and values in, bytes and findings out. Rows and transactions belong in ``ledger``, files in ``archive``.
"""
