"""Adapters to the upstream providers: pure translation between our words and theirs."""
