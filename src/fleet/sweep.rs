//! Finds pushes that were not reported to the claims database, as when it did not answer.
//!
//! Lists the store once. A manifest is fetched only if it was changed since the last sweep, by the clock of the store.

use std::time::Duration;

use super::{
    claims::{Claims, KnownRoot},
    error::BundleError,
    manifest::{self, MANIFEST, MANIFEST_BYTES_MAX, Manifest},
    root_name::{ExpectedTenant, RootName},
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
        if known.as_ref().and_then(|it| it.seen_at) == Some(object.modified) {
            continue;
        }
        match found_manifest(&*storage, store, &root, &object.key) {
            Ok(manifest) if known.is_some_and(|it| is_reported(&it, &manifest)) => {
                claims.note_seen(&root, object.modified)?;
            }
            Ok(Manifest { generation, bundle, .. }) => {
                claims.report(&root, generation, bundle.as_deref(), Some(Duration::ZERO))?;
                claims.note_seen(&root, object.modified)?;
                report.reported += 1;
            }
            Err(error) => report.refused.push(error.to_string()),
        }
    }
    Ok(report)
}

fn is_reported(known: &KnownRoot, manifest: &Manifest) -> bool {
    known.generation >= manifest.generation
        && !manifest::is_other(known.bundle.as_deref(), manifest.bundle.as_deref())
}

fn found_manifest(
    storage: &dyn ObjectStorage,
    store: &str,
    root: &RootName,
    key: &str,
) -> Result<Manifest, BundleError> {
    let url = root.url(store);
    let FetchedObject::Found(bytes, _) = storage.get(key, None, MANIFEST_BYTES_MAX)? else {
        return Err(BundleError::NoBundle { url });
    };
    let manifest = Manifest::parse(&bytes, &url)?;
    let tenant = ExpectedTenant { name: root.tenant().to_owned(), is_required: true };
    manifest.check_tenant(&url, Some(&tenant))?;
    Ok(manifest)
}
