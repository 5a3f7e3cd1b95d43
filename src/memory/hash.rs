//! BLAKE3 hashes of content, in the three lengths that files show.
//!
//! A file is identified by 32 bytes in the database and by its first 8 bytes (16 hex digits) in
//! frontmatter and records; a bullet by 4 bytes; a cited line by 2 bytes after its address.

use std::fmt;

/// The BLAKE3 hash of some bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentHash([u8; 32]);

impl ContentHash {
    /// Hashes `bytes`.
    pub fn of(bytes: impl AsRef<[u8]>) -> Self {
        Self(*blake3::hash(bytes.as_ref()).as_bytes())
    }

    /// Wraps a stored hash.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the first 8 bytes as 16 hex digits, as a record names a source.
    pub fn hex16(&self) -> String {
        hex(&self.0[..8])
    }

    /// Returns the first 4 bytes as 8 hex digits, as a record names a bullet.
    pub fn hex8(&self) -> String {
        hex(&self.0[..4])
    }

    /// Returns the first 2 bytes as 4 hex digits, the check after an address
    /// (`2026-04-02:12#3fa9`).
    pub fn hex4(&self) -> String {
        hex(&self.0[..2])
    }

    /// Returns the first 8 bytes as a number, for compact tables of line hashes.
    pub fn prefix64(&self) -> u64 {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.0[..8]);
        u64::from_be_bytes(bytes)
    }
}

/// Returns the first 4 hex digits of the hash whose [`ContentHash::prefix64`] is given.
pub fn hex4_of(prefix64: u64) -> String {
    hex(&prefix64.to_be_bytes()[..2])
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ContentHash({})", self.hex16())
    }
}

/// Formats `bytes` in lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]])
        .map(char::from)
        .collect()
}
