"""The database, which is the audit authority: uploads, jobs, units, attempts, receipts, accounts, events."""
