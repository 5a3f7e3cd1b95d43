//! Hashes of words, and maps whose keys are such hashes.

use std::{
    collections::{HashMap, HashSet},
    hash::{BuildHasherDefault, Hasher},
};

/// A map whose keys are already hashes.
pub(crate) type HashedMap<V> = HashMap<u64, V, BuildHasherDefault<IdentityHasher>>;

/// A set of hashes.
pub(crate) type HashedSet = HashSet<u64, BuildHasherDefault<IdentityHasher>>;

/// Passes a hash through unchanged.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = hash_bytes(bytes);
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = n;
    }
}

/// Hashes bytes. The hash is the same on every machine, and never 0.
pub(crate) fn hash_bytes(bytes: &[u8]) -> u64 {
    const MUL: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut state = 0x243F_6A88_85A3_08D3 ^ (bytes.len() as u64);
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        state = (state.rotate_left(23) ^ u64::from_le_bytes(word)).wrapping_mul(MUL);
    }
    finish(state)
}

/// Mixes two hashes into one. The order matters.
pub(crate) fn combine_hashes(a: u64, b: u64) -> u64 {
    finish((a.rotate_left(21) ^ b).wrapping_mul(0xD6E8_FEB8_6659_FD93))
}

fn finish(mut state: u64) -> u64 {
    state ^= state >> 32;
    state = state.wrapping_mul(0xE703_7ED1_A0B4_28DB);
    state ^= state >> 29;
    state | 1
}
