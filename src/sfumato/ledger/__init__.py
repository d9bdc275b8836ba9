"""The budget ledger: what was charged, to whom, and what was answered. Append-only and hash-chained."""
