"""Clauses of RFCs and drafts, as questions about the packets of trials."""
