//! Packs: immutable objects that hold the contents of one or many files.
//!
//! ```text
//! memoird-object1\n   16 bytes
//! salt                16 random bytes, so that no two publications ever name the same object
//! zstd frame          the contents, one after the other
//! ```
//!
//! The logs of a month that has ended are one pack, which hardly ever changes. All else that a publication changes
//! is one pack, and the database is its own. [`super::repack`] joins small ones.

use super::{
    error::BundleError,
    manifest::{FileEntry, Manifest, ObjectEntry},
};
use crate::memory::hash::ContentHash;

const MAGIC: &[u8; 16] = b"memoird-object1\n";
const SALT_BYTES: usize = 16;
const HEADER_BYTES: usize = MAGIC.len() + SALT_BYTES;
/// zstd's default.
const LEVEL: i32 = 3;
/// A pack is closed when it holds this much.
pub(super) const PACK_BYTES: usize = 16 * 1024 * 1024;

/// Contents that become one object.
#[derive(Debug, Default)]
pub(super) struct PackWriter {
    raw: Vec<u8>,
    files: Vec<(String, ContentHash, u64, u64)>,
}

/// An object to upload.
#[derive(Debug)]
pub(super) struct PackedObject {
    pub(super) hash: String,
    pub(super) bytes: Vec<u8>,
    /// How many bytes it unpacks to.
    pub(super) raw: u64,
    pub(super) files: Vec<(String, ContentHash, u64, u64)>,
}

impl PackWriter {
    pub(super) fn add(&mut self, path: &str, hash: ContentHash, content: &[u8]) {
        let (offset, size) = (self.raw.len() as u64, content.len() as u64);
        self.files.push((path.to_owned(), hash, offset, size));
        self.raw.extend_from_slice(content);
    }

    pub(super) fn is_full(&self) -> bool {
        self.raw.len() >= PACK_BYTES
    }

    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    pub(super) fn finish(self) -> Result<PackedObject, BundleError> {
        let failed = |action| move |source| BundleError::Io { action, source };
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&random_bytes()?);
        let frame = zstd::bulk::compress(&self.raw, LEVEL).map_err(failed("compress a pack"))?;
        bytes.extend_from_slice(&frame);
        let hash = ContentHash::of(&bytes).to_string();
        Ok(PackedObject { hash, bytes, raw: self.raw.len() as u64, files: self.files })
    }
}

impl PackedObject {
    /// Names the object and its files in a manifest.
    pub(super) fn add_to(&self, manifest: &mut Manifest) {
        let entry = ObjectEntry { size: self.bytes.len() as u64, raw: self.raw };
        manifest.objects.insert(self.hash.clone(), entry);
        for (path, hash, offset, size) in &self.files {
            let file = FileEntry {
                hash: hash.to_string(),
                size: *size,
                object: self.hash.clone(),
                offset: *offset,
            };
            manifest.files.insert(path.clone(), file);
        }
    }
}

/// Returns random bytes of the system.
pub(super) fn random_bytes() -> Result<[u8; SALT_BYTES], BundleError> {
    let mut bytes = [0; SALT_BYTES];
    let failed = |errno: rustix::io::Errno| BundleError::Io {
        action: "get random bytes",
        source: errno.into(),
    };
    rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty())
        .map_err(failed)?;
    Ok(bytes)
}

/// Checks the bytes of an object and unpacks them.
///
/// Returns [`BundleError::BadObject`] for bytes that are not those that the manifest names.
pub(super) fn unpack(
    url: &str,
    hash: &str,
    entry: ObjectEntry,
    bytes: &[u8],
) -> Result<Vec<u8>, BundleError> {
    let bad = |reason: String| BundleError::BadObject {
        url: url.to_owned(),
        object: hash.to_owned(),
        reason,
    };
    if bytes.len() as u64 != entry.size {
        return Err(bad(format!("{} bytes, expected {}", bytes.len(), entry.size)));
    }
    if ContentHash::of(bytes).to_string() != hash {
        return Err(bad("its bytes are those of another object".to_owned()));
    }
    let frame = bytes
        .strip_prefix(MAGIC)
        .and_then(|it| it.get(SALT_BYTES..))
        .ok_or_else(|| bad(format!("fewer than {HEADER_BYTES} bytes, or no memoird object")))?;
    let raw = usize::try_from(entry.raw).unwrap_or(usize::MAX);
    let unpacked = zstd::bulk::decompress(frame, raw).map_err(|e| bad(e.to_string()))?;
    if unpacked.len() != raw {
        return Err(bad(format!("unpacks to {} bytes, expected {raw}", unpacked.len())));
    }
    Ok(unpacked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_unpacked_only_if_every_byte_is_right() {
        let mut pack = PackWriter::default();
        pack.add("memory/2026-04-01.md", ContentHash::of(b"one"), b"one");
        pack.add("memory/2026-04-02.md", ContentHash::of(b"two"), b"two");
        let object = pack.finish().unwrap();
        let entry = ObjectEntry { size: object.bytes.len() as u64, raw: 6 };
        let read = |bytes: &[u8], entry| unpack("file:///x", &object.hash, entry, bytes);
        assert_eq!(read(&object.bytes, entry).unwrap(), b"onetwo");
        assert!(read(&object.bytes[..object.bytes.len() - 1], entry).is_err());
        assert!(read(&object.bytes, ObjectEntry { raw: 5, ..entry }).is_err());
        let mut flipped = object.bytes.clone();
        flipped[20] ^= 1;
        assert!(read(&flipped, entry).is_err());
        assert!(read(b"", ObjectEntry { size: 0, raw: 6 }).is_err());
    }

    #[test]
    fn the_same_contents_are_never_the_same_object() {
        let pack = || {
            let mut pack = PackWriter::default();
            pack.add("a", ContentHash::of(b"one"), b"one");
            pack.finish().unwrap().hash
        };
        assert_ne!(pack(), pack());
    }
}
