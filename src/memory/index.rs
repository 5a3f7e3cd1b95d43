//! `MEMORY.md`: the index of typed memories.
