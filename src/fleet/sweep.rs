//! Finds pushes that were not reported to the claims database, as when it did not answer.
//!
//! Lists the store once. A manifest is fetched only if it was changed since the last sweep, by the clock of the store.

use super::{
    claims::Claims,
    error::BundleError,
    manifest::{MANIFEST, MANIFEST_BYTES_MAX, Manifest},
    root_name::RootName,
    storage::{self, FetchedObject, ObjectStorage},
};

/// What a sweep found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SweepReport {
    /// Bundles in the store.
    pub(crate) roots: usize,
    /// Roots that were reported now.
    pub(crate) reported: usize,
    /// Bundles that were left alone, with the reason.
    pub(crate) refused: Vec<String>,
}

/// Reports every root of a store whose last push was not.
pub(crate) fn sweep(claims: &Claims, store: &str) -> Result<SweepReport, BundleError> {
    claims.sweep()?;
    let storage = storage::open(store)?;
    let mut report = SweepReport::default();
    for object in storage.list("")? {
        let name = object.key.strip_suffix(MANIFEST).and_then(|it| it.strip_suffix('/'));
        let Some(Ok(root)) = name.map(str::parse::<RootName>) else { continue };
        report.roots += 1;
        let known = claims.known_root(&root)?;
        if known.and_then(|it| it.seen_at) == Some(object.modified) {
            continue;
        }
        match found_generation(&*storage, store, &root, &object.key) {
            Ok(generation) if known.is_some_and(|it| it.generation >= generation) => {
                claims.note_seen(&root, object.modified)?;
            }
            Ok(generation) => {
                claims.report(&root, generation, Some(std::time::Duration::ZERO))?;
                claims.note_seen(&root, object.modified)?;
                report.reported += 1;
            }
            Err(error) => report.refused.push(error.to_string()),
        }
    }
    Ok(report)
}

fn found_generation(
    storage: &dyn ObjectStorage,
    store: &str,
    root: &RootName,
    key: &str,
) -> Result<u64, BundleError> {
    let url = root.url(store);
    let FetchedObject::Found(bytes, _) = storage.get(key, None, MANIFEST_BYTES_MAX)? else {
        return Err(BundleError::NoBundle { url });
    };
    let manifest = Manifest::parse(&bytes, &url)?;
    manifest.check_tenant(&url, Some(root.tenant()))?;
    Ok(manifest.generation)
}
