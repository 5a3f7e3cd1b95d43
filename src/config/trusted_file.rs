//! Files of the configuration that others may change are refused: they could run programs as this user.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path};

use super::ConfigError;

/// Refuses a file that any user may change, or that another user owns; `also` is one more owner to accept.
pub(super) fn refuse_if_open(
    file: &Path,
    metadata: &fs::Metadata,
    also: Option<u32>,
) -> Result<(), ConfigError> {
    let owner = metadata.uid();
    let own = rustix::process::geteuid().as_raw();
    if owner != 0 && owner != own && Some(owner) != also {
        return Err(ConfigError::OtherOwner { file: file.to_owned(), owner });
    }
    let mode = metadata.mode() & 0o7777;
    if mode & 0o002 != 0 {
        return Err(ConfigError::WorldWritable { file: file.to_owned(), mode });
    }
    Ok(())
}
