"""One oracle, one loop, one ledger."""
