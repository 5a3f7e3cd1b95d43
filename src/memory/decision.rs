//! What people decided, as `.decisions.jsonl` keeps it.
