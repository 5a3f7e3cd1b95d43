//! The name of a root in a fleet: `TENANT/ROOT`, which is also its path below the store.

use std::{fmt, str::FromStr};

use super::storage::normalized_url;

/// The longest part of a name, in bytes.
const PART_BYTES_MAX: usize = 128;

/// A tenant and the name of one of its roots.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RootName {
    /// Invariant: both are parts of a path that lead nowhere else.
    tenant: String,
    id: String,
}

/// The tenant whose root a bundle must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExpectedTenant {
    pub(crate) name: String,
    /// Whether a bundle whose manifest names no tenant is refused.
    pub(crate) is_required: bool,
}

impl RootName {
    /// Returns a name, or what is wrong with it.
    pub(crate) fn new(tenant: &str, id: &str) -> Result<Self, String> {
        for part in [tenant, id] {
            check_part(part)?;
        }
        Ok(Self { tenant: tenant.to_owned(), id: id.to_owned() })
    }

    /// Returns the name that the address of a bundle ends with.
    pub(crate) fn of_url(url: &str) -> Result<Self, String> {
        let url = normalized_url(url);
        let path = url.split_once("://").map_or("", |it| it.1);
        let mut parts = path.rsplit('/');
        match (parts.next(), parts.next(), parts.next()) {
            (Some(id), Some(tenant), Some(_)) => Self::new(tenant, id),
            _ => Err(format!("`{url}` does not end with TENANT/ROOT")),
        }
    }

    /// Returns the store of the bundle of this root at `url`.
    pub(crate) fn store_of(&self, url: &str) -> String {
        let url = normalized_url(url);
        url.strip_suffix(&format!("/{self}")).map_or_else(|| url.clone(), str::to_owned)
    }

    pub(crate) fn tenant(&self) -> &str {
        &self.tenant
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Returns the address of its bundle in a store.
    pub(crate) fn url(&self, store: &str) -> String {
        format!("{}/{self}", normalized_url(store))
    }
}

/// Refuses a part of a name that is no plain file name.
pub(crate) fn check_part(part: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if part.is_empty()
        || part.len() > PART_BYTES_MAX
        || part.starts_with('.')
        || !part.chars().all(is_plain)
    {
        return Err(format!(
            "`{part}` is not a valid name of a tenant or root (letters, digits, `-`, `_`, `.`; at most {PART_BYTES_MAX})"
        ));
    }
    Ok(())
}

impl fmt::Display for RootName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.tenant, self.id)
    }
}

impl FromStr for RootName {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name.split_once('/') {
            Some((tenant, id)) => Self::new(tenant, id),
            None => Err(format!("`{name}` is not TENANT/ROOT")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_nowhere_else() {
        let name: RootName = "acme/lexicon-2".parse().unwrap();
        assert_eq!(name.url("s3://memory/"), "s3://memory/acme/lexicon-2");
        assert_eq!(name.store_of("s3://memory/acme/lexicon-2/"), "s3://memory");
        assert_eq!(RootName::of_url("s3://memory/acme/lexicon-2/"), Ok(name));
        for bad in ["acme", "acme/..", "../x", "a/b/c", "/x", "acme/", "acme/.x", "acme/a b"] {
            assert!(bad.parse::<RootName>().is_err(), "{bad}");
        }
        assert!(RootName::of_url("s3://memory").is_err());
    }
}
