//! The manifest: every file of a bundle with the hash of its content and the object that holds it.
//!
//! JSON, so that people can read it and other programs can check a backup. Unknown keys are ignored; what changes
//! the meaning of known ones raises [`FORMAT`].

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{
    error::BundleError, local_files::DATABASE, merge::LocalContent, root_name::ExpectedTenant,
    state::BundleState,
};
use crate::{
    memory::hash::ContentHash,
    store::{db::lineage::Lineage, fs::layout::Layout},
};

/// The name of the manifest.
pub(crate) const MANIFEST: &str = "manifest.json";
/// The folder of the objects.
pub(crate) const OBJECTS: &str = "objects";
/// The version of the manifest and of the objects.
pub(crate) const FORMAT: u64 = 1;
/// A larger manifest would be of some 100,000 files.
pub(crate) const MANIFEST_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// No object is larger; see [`super::pack`]. A database of ten years has some 60 MB.
pub(crate) const OBJECT_BYTES_MAX: u64 = RAW_BYTES_MAX;
/// No content is larger when unpacked.
pub(crate) const RAW_BYTES_MAX: u64 = 1024 * 1024 * 1024;
const PATH_BYTES_MAX: usize = 1024;

/// The manifest of a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    pub(crate) format: u64,
    /// The version of memoird that published it.
    pub(crate) memoird: String,
    /// Identifies the root, in every store.
    pub(crate) root: String,
    /// Identifies the bundle: one that is created again at the same address, and begins with the first generation
    /// again, has another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) bundle: Option<String>,
    /// Whose root it is in a fleet; the folder of the store that it is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tenant: Option<String>,
    /// Rises by one with each publication.
    pub(crate) generation: u64,
    /// Identifies the publication: after a lost reply it shows whether it was this one.
    pub(crate) publication: String,
    /// Rises with each publication that removed forgotten words.
    pub(crate) forgets: u64,
    /// Whether the objects that it does not name are being removed, whatever their age.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) removing: bool,
    pub(crate) published: DateTime<Utc>,
    /// When a push last looked for garbage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) swept: Option<DateTime<Utc>>,
    pub(crate) agent_name: String,
    pub(crate) zone: String,
    /// The folder of the logs; `.` for the root itself.
    pub(crate) memory_dir: String,
    /// The schema of the database.
    pub(crate) schema: u64,
    /// By path relative to the root. A generated file and the hidden one beside it are one entry.
    pub(crate) files: BTreeMap<String, FileEntry>,
    /// By the hash of their bytes.
    pub(crate) objects: BTreeMap<String, ObjectEntry>,
    /// The note of a run that these files are up to date, so that nobody who brings all of them has to check it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) up_to_date: Option<serde_json::Value>,
}

/// A file, and where its content is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileEntry {
    /// BLAKE3 of the content, as 64 hex digits; of the database see [`super::local_files`].
    pub(crate) hash: String,
    /// In bytes.
    pub(crate) size: u64,
    pub(crate) object: String,
    /// Where the content begins in the unpacked object, in bytes.
    pub(crate) offset: u64,
}

/// An object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ObjectEntry {
    /// In bytes.
    pub(crate) size: u64,
    /// When unpacked, in bytes.
    pub(crate) raw: u64,
}

/// What every format has.
#[derive(Deserialize)]
struct AnyManifest {
    format: u64,
    #[serde(default)]
    memoird: String,
}

impl Manifest {
    /// Reads a manifest and checks it by itself; [`Self::check_root`] and [`Self::check_paths`] compare it with a
    /// root.
    pub(crate) fn parse(bytes: &[u8], url: &str) -> Result<Self, BundleError> {
        let bad = |reason: String| BundleError::BadManifest { url: url.to_owned(), reason };
        let any: AnyManifest = serde_json::from_slice(bytes).map_err(|e| bad(e.to_string()))?;
        let newer = |what, found, known| BundleError::Newer {
            url: url.to_owned(),
            version: any.memoird.clone(),
            what,
            found,
            known,
        };
        if any.format > FORMAT {
            return Err(newer("bundle format", any.format, FORMAT));
        }
        let manifest: Self = serde_json::from_slice(bytes).map_err(|e| bad(e.to_string()))?;
        let known = Lineage::schema_version() as u64;
        if manifest.schema > known {
            return Err(newer("database schema", manifest.schema, known));
        }
        manifest.check().map_err(bad)?;
        Ok(manifest)
    }

    fn check(&self) -> Result<(), String> {
        if self.format == 0 || self.generation == 0 || !is_id(&self.root) {
            return Err("it has no format, generation, or id".to_owned());
        }
        for (hash, object) in &self.objects {
            if !is_hash(hash) {
                return Err(format!("`{hash}` is not the name of an object"));
            }
            if object.size > OBJECT_BYTES_MAX || object.raw > RAW_BYTES_MAX {
                return Err(format!("the object {hash} is larger than an object may be"));
            }
        }
        for (path, file) in &self.files {
            if let Some(reason) = path_refusal(path) {
                return Err(format!("the path {path:?} {reason}"));
            }
            if !is_hash(&file.hash) {
                return Err(format!("`{path}` has no hash"));
            }
            let object = self.objects.get(&file.object);
            let end = file.offset.checked_add(file.size);
            if object.zip(end).is_none_or(|(object, end)| end > object.raw) {
                return Err(format!("the content of `{path}` is in no object"));
            }
        }
        Ok(())
    }

    /// Checks that the manifest is one of this root and of the bundle that it knows, and none from before the last one
    /// seen.
    pub(crate) fn check_root(&self, url: &str, state: &BundleState) -> Result<(), BundleError> {
        if let Some(own) = state.root.as_ref().filter(|it| **it != self.root) {
            return Err(BundleError::OtherRoot {
                url: url.to_owned(),
                agent_name: self.agent_name.clone(),
                found: self.root.clone(),
                own: own.clone(),
            });
        }
        if is_other(state.bundle.as_deref(), self.bundle.as_deref()) {
            return Err(BundleError::OtherBundle {
                url: url.to_owned(),
                published: self.published,
                state: state.path(),
            });
        }
        if self.generation < state.generation {
            return Err(BundleError::OlderManifest {
                url: url.to_owned(),
                found: self.generation,
                known: state.generation,
            });
        }
        Ok(())
    }

    /// Refuses a bundle of another tenant than the one that is expected, if any.
    pub(crate) fn check_tenant(
        &self,
        url: &str,
        expected: Option<&ExpectedTenant>,
    ) -> Result<(), BundleError> {
        let Some(ExpectedTenant { name, is_required }) = expected else { return Ok(()) };
        let is_right = self.tenant.as_ref().map_or(!is_required, |it| it == name);
        if is_right {
            return Ok(());
        }
        Err(BundleError::OtherTenant {
            url: url.to_owned(),
            found: self.tenant.clone(),
            expected: name.clone(),
        })
    }

    /// Checks that every path is one of the files that a root has.
    pub(crate) fn check_paths(&self, url: &str, layout: &Layout) -> Result<(), BundleError> {
        let ours = layout.memory_dir();
        let theirs = if self.memory_dir == "." { "" } else { &self.memory_dir };
        if ours != theirs {
            let shown = |it: &str| if it.is_empty() { ".".to_owned() } else { it.to_owned() };
            return Err(BundleError::OtherMemoryDir { theirs: shown(theirs), ours: shown(ours) });
        }
        match self.files.keys().find(|it| !super::local_files::is_own_path(layout, it)) {
            Some(path) => Err(BundleError::BadManifest {
                url: url.to_owned(),
                reason: format!("`{path}` is not a file of this memory folder"),
            }),
            None => Ok(()),
        }
    }

    /// Returns the hash of a file's content.
    pub(crate) fn hash_of(&self, path: &str) -> Option<ContentHash> {
        self.files.get(path).and_then(|it| parse_hash(&it.hash))
    }

    /// Returns whether the files are the same as those of a root.
    pub(crate) fn has_contents(&self, local: &BTreeMap<String, LocalContent>) -> bool {
        let is_same = |path: &String| {
            local.get(path).copied() == self.hash_of(path).map(LocalContent::Present)
        };
        self.files.len() == local.len() && self.files.keys().all(is_same)
    }

    /// Removes the objects that no file uses.
    pub(crate) fn drop_unused_objects(&mut self) {
        let used: std::collections::BTreeSet<&String> =
            self.files.values().map(|it| &it.object).collect();
        self.objects.retain(|hash, _| used.contains(hash));
    }

    /// Returns the manifest as it is published.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("strings and numbers can always be written")
    }
}

/// Returns whether two bundles at one address are not the same. Those of memoird before identities were added are not
/// distinguished.
pub(crate) fn is_other(known: Option<&str>, found: Option<&str>) -> bool {
    known.zip(found).is_some_and(|(known, found)| known != found)
}

/// Returns the key of an object.
pub(crate) fn object_key(hash: &str) -> String {
    format!("{OBJECTS}/{}/{hash}", hash.get(..2).unwrap_or_default())
}

/// Reads a hash of 64 hex digits.
pub(crate) fn parse_hash(text: &str) -> Option<ContentHash> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(at * 2..at * 2 + 2)?, 16).ok()?;
    }
    Some(ContentHash::from_bytes(bytes)).filter(|it| it.to_string() == text)
}

fn is_hash(text: &str) -> bool {
    parse_hash(text).is_some()
}

fn is_id(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|it| it.is_ascii_hexdigit())
}

/// Returns why a path may not be written below a root, whatever its name means; `None` if it may.
fn path_refusal(path: &str) -> Option<&'static str> {
    if path.is_empty() || path.len() > PATH_BYTES_MAX {
        return Some("is empty or too long");
    }
    if path.starts_with('/') {
        return Some("is absolute");
    }
    if path.contains('\\') || path.chars().any(char::is_control) {
        return Some("contains a backslash or an invisible character");
    }
    if path.split('/').any(|it| matches!(it, "" | "." | "..")) {
        return Some("leads out of its folder");
    }
    let is_private = path.split('/').next() == Some(crate::store::fs::layout::PRIVATE_DIR);
    (is_private && path != DATABASE).then_some("is in the private folder")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let object = "b".repeat(64);
        let entry = FileEntry { hash: "a".repeat(64), size: 3, object: object.clone(), offset: 0 };
        Manifest {
            format: FORMAT,
            memoird: "0.1.0".to_owned(),
            root: "0".repeat(32),
            bundle: Some("1".repeat(32)),
            tenant: None,
            generation: 3,
            publication: "1".to_owned(),
            forgets: 0,
            removing: false,
            published: DateTime::default(),
            swept: None,
            agent_name: "Lexicon".to_owned(),
            zone: "UTC".to_owned(),
            memory_dir: "memory".to_owned(),
            schema: 4,
            up_to_date: None,
            files: [("memory/2026-04-02.md".to_owned(), entry)].into(),
            objects: [(object, ObjectEntry { size: 30, raw: 3 })].into(),
        }
    }

    #[track_caller]
    fn check_refused(change: impl FnOnce(&mut Manifest), words: &str) {
        let mut manifest = manifest();
        change(&mut manifest);
        let error = Manifest::parse(&manifest.to_bytes(), "file:///x").unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }

    #[test]
    fn a_manifest_is_read_back() {
        assert_eq!(Manifest::parse(&manifest().to_bytes(), "file:///x").unwrap(), manifest());
    }

    #[test]
    fn what_could_leave_the_root_or_has_no_content_is_refused() {
        for path in [
            "/etc/passwd",
            "../x.md",
            "memory/../../x.md",
            "memory//2026-04-02.md",
            ".memoird/witness",
            "memory\\x.md",
            "a\u{1b}[2J.md",
            "",
        ] {
            check_refused(
                |it| {
                    let entry = it.files.pop_first().unwrap().1;
                    it.files.insert(path.to_owned(), entry);
                },
                "the path",
            );
        }
        check_refused(|it| it.objects.clear(), "in no object");
        check_refused(
            |it| it.files.values_mut().for_each(|it| it.offset = u64::MAX),
            "in no object",
        );
        check_refused(
            |it| it.files.values_mut().for_each(|it| it.hash = "x".repeat(64)),
            "no hash",
        );
        check_refused(|it| it.generation = 0, "generation");
        check_refused(|it| it.objects.values_mut().for_each(|it| it.raw = u64::MAX), "larger");
    }

    #[test]
    fn a_bundle_is_recognized_by_root_identity_and_generation() {
        let ids = |it: &str| Some(it.repeat(32));
        let (zero, one, two) = (ids("0"), ids("1"), ids("2"));
        for (root, bundle, generation, expected) in [
            (None, None, 0, "ok"),
            (zero.clone(), one.clone(), 3, "ok"),
            (zero.clone(), one.clone(), 2, "ok"),
            // A memoird without identities recorded it.
            (zero.clone(), None, 3, "ok"),
            (one.clone(), one.clone(), 3, "another memory folder"),
            (zero.clone(), two.clone(), 1, "was created again"),
            (zero.clone(), two, 3, "was created again"),
            (zero, one, 4, "an older copy"),
        ] {
            let state = BundleState { root, bundle, generation, ..BundleState::default() };
            let checked = manifest().check_root("file:///x", &state);
            let found = checked.map_or_else(|it| it.to_string(), |()| "ok".to_owned());
            assert!(found.contains(expected), "{found}");
        }
    }

    #[test]
    fn a_bundle_of_another_tenant_is_refused() {
        for (found, is_required, is_accepted) in [
            (Some("acme"), true, true),
            (Some("acme"), false, true),
            (Some("other"), true, false),
            (Some("other"), false, false),
            (None, true, false),
            (None, false, true),
        ] {
            let manifest = Manifest { tenant: found.map(str::to_owned), ..manifest() };
            let expected = ExpectedTenant { name: "acme".to_owned(), is_required };
            let checked = manifest.check_tenant("file:///x", Some(&expected));
            assert_eq!(checked.is_ok(), is_accepted, "{found:?} {is_required}");
        }
    }

    #[test]
    fn newer_forms_are_refused_by_name() {
        check_refused(|it| it.format = 2, "bundle format 2");
        check_refused(|it| it.schema = 99, "database schema 99");
        let error =
            Manifest::parse(b"{\"format\":7,\"memoird\":\"3.0\"}", "file:///x").unwrap_err();
        assert!(error.to_string().contains("memoird 3.0"), "{error}");
        let cut = Manifest::parse(&manifest().to_bytes()[..40], "file:///x").unwrap_err();
        assert!(matches!(cut, BundleError::BadManifest { .. }), "{cut}");
    }
}
