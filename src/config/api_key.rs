//! The API key of a language model: where it is read from, and how it is protected.
//!
//! | source, the first that exists | must be |
//! |---|---|
//! | the file `model.key_file` | owned by this user or root, and private |
//! | [`CREDENTIAL`], a systemd credential in `$CREDENTIALS_DIRECTORY` | not world-readable |
//! | the variable [`VARIABLE`] | – |
//!
//! [`Config::key_source`] finds the source and [`KeySource::read`] reads it. `doctor` shows the former and tries
//! the latter. A client of a provider reads the key when it starts and keeps it while it runs.
//!
//! # Invariants
//!
//! - A [`Secret`] is never printed, cloned or stored: it has no `Display`, no `Clone` and no `Serialize`, its
//!   `Debug` is `Secret(…)`, and it is overwritten on drop. [`Secret::expose`] is only for the code that writes
//!   the header of a request; a test checks that.
//! - No error quotes the content of a file or a variable, only its location and what is wrong with it.
//! - No child process inherits the variable: code that starts a program calls [`remove_key_variables`] first. It
//!   cannot be removed from our own environment, because that would be `unsafe`; other processes cannot read it
//!   there, because our process is not dumpable.

use std::{
    fmt,
    fs::File,
    io::{self, Read as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use rustix::fs::{Mode, OFlags};
use zeroize::Zeroizing;

use super::{Config, environment::Environment, settings::Model};

/// The variable of the key, if no better source is configured.
pub const VARIABLE: &str = "MEMOIRD_API_KEY";

/// The name of the credential, as in `LoadCredential=memoird-api-key:PATH`.
pub const CREDENTIAL: &str = "memoird-api-key";

/// The variable with which systemd names the folder of a service's credentials.
pub(super) const CREDENTIALS_VARIABLE: &str = "CREDENTIALS_DIRECTORY";

/// The size limit of a key file. Today's keys have under 300 bytes; signed tokens reach 4 KB.
const BYTES_MAX: usize = 8 * 1024;

/// Text that is never shown.
pub struct Secret(Zeroizing<String>);

/// The source of the key.
#[derive(Clone, Debug)]
pub enum KeySource {
    /// The file `model.key_file`.
    File(PathBuf),
    /// A systemd credential.
    Credential(PathBuf),
    /// The environment.
    Variable(Arc<Secret>),
}

/// Why a key is not used. No message quotes the key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file does not exist.
    #[error("there is no key file at `{}`", file.display())]
    Missing {
        /// The file.
        file: PathBuf,
    },
    /// A file that cannot be read.
    #[error("cannot read the key file `{}`: {source}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A link.
    #[error("the key file `{}` is a link, and anybody who can change the link chooses the key", file.display())]
    Link {
        /// The link.
        file: PathBuf,
    },
    /// A folder, a pipe, a device.
    #[error("the key file `{}` is not a regular file", file.display())]
    NotRegular {
        /// The path.
        file: PathBuf,
    },
    /// A file of another user.
    #[error("the key file `{}` belongs to another user ({owner}), who can read and change it", file.display())]
    OtherOwner {
        /// The file.
        file: PathBuf,
        /// Its owner.
        owner: u32,
    },
    /// A file that other users can access.
    #[error("the key file `{}` is open to other users (mode {mode:o}), so they may already know the key", file.display())]
    TooOpen {
        /// The file.
        file: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// Text that is not a key.
    #[error("the key in {location} {defect}")]
    Invalid {
        /// Its location.
        location: KeyLocation,
        /// What is wrong with it.
        defect: KeyDefect,
    },
}

/// The location of a key, for messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyLocation {
    /// A file.
    File(PathBuf),
    /// [`VARIABLE`].
    Variable,
}

/// Why a text is not a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyDefect {
    /// It is empty.
    Empty,
    /// It is longer than a key can be.
    TooLong,
    /// It has several lines.
    MultipleLines,
    /// It has a space, or a character that is not allowed in the header of a request.
    Characters,
}

impl Secret {
    /// Wraps a text.
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// Returns the text, only to be written into the header of a request.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl Config {
    /// Returns the source of the key for `model`; `None` if there is none. Reads nothing, and only checks
    /// whether a credential exists.
    pub fn key_source(&self, model: &Model, around: &Environment) -> Option<KeySource> {
        if let Some(file) = &model.key_file {
            let folder = self.folder(around);
            return Some(KeySource::File(around.absolute(Path::new(file), &folder)));
        }
        let credential = around.credentials_dir.as_ref().map(|it| it.join(CREDENTIAL));
        if let Some(file) = credential.filter(|it| it.symlink_metadata().is_ok()) {
            return Some(KeySource::Credential(file));
        }
        around.api_key.clone().map(KeySource::Variable)
    }
}

impl KeySource {
    /// Reads the key.
    ///
    /// Fails if other users can access the key, or if the text is not a key.
    pub(crate) fn read(&self) -> Result<Secret, KeyError> {
        match self {
            Self::File(file) => read_file(file, 0o077),
            // For a system service it may belong to root and be readable by a group.
            Self::Credential(file) => read_file(file, 0o037),
            Self::Variable(text) => parse_key(text.0.as_bytes(), || KeyLocation::Variable),
        }
    }
}

impl KeyError {
    /// Returns the next step, preferably a command to run.
    pub fn hint(&self) -> String {
        let chmod = |file: &Path| format!("chmod 600 '{}'", file.display());
        match self {
            Self::Missing { file } => {
                format!("install -m 600 /dev/null '{}', then write the key into it", file.display())
            }
            Self::Unreadable { file, .. } => format!("ls -l '{}'", file.display()),
            Self::Link { file } => {
                format!("name the file itself as model.key_file: readlink -f '{}'", file.display())
            }
            Self::NotRegular { .. } => {
                "name a file as model.key_file that holds the key and nothing else".to_owned()
            }
            Self::OtherOwner { file, .. } => {
                let shown = file.display();
                format!("install -m 600 '{shown}' '{shown}.own', and name that as model.key_file")
            }
            Self::TooOpen { file, .. } => chmod(file),
            Self::Invalid { location: KeyLocation::File(file), .. } => {
                format!("write the key alone on one line into '{}'", file.display())
            }
            Self::Invalid { location: KeyLocation::Variable, .. } => {
                format!("set {VARIABLE} to the key alone, or better: model.key_file")
            }
        }
    }
}

impl fmt::Display for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(file) => file.display().fmt(f),
            Self::Credential(_) => write!(f, "the systemd credential {CREDENTIAL}"),
            Self::Variable(_) => write!(f, "the variable {VARIABLE}"),
        }
    }
}

impl fmt::Display for KeyLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(file) => write!(f, "`{}`", file.display()),
            Self::Variable => write!(f, "the variable {VARIABLE}"),
        }
    }
}

impl fmt::Display for KeyDefect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("is empty"),
            Self::TooLong => write!(f, "is longer than {BYTES_MAX} bytes"),
            Self::MultipleLines => f.write_str("has more than one line"),
            Self::Characters => {
                f.write_str("has a space in it, or a character that is not printable ASCII")
            }
        }
    }
}

/// Removes the key's variables from the environment of a program that is about to be started.
///
/// The provider `command` starts its program with a cleared environment and needs this too: the variables it
/// restores by name must not include the key.
pub fn remove_key_variables(command: &mut Command) -> &mut Command {
    command.env_remove(VARIABLE).env_remove(CREDENTIALS_VARIABLE)
}

/// Reads a key from a file; refuses the permission bits `refused`.
fn read_file(file: &Path, refused: u32) -> Result<Secret, KeyError> {
    let name = || file.to_path_buf();
    // A pipe would block the program, and a terminal could become its controlling one.
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(file, flags, Mode::empty()).map_err(|errno| match errno {
        rustix::io::Errno::LOOP => KeyError::Link { file: name() },
        rustix::io::Errno::NOENT => KeyError::Missing { file: name() },
        errno => KeyError::Unreadable { file: name(), source: errno.into() },
    })?;
    let opened = File::from(opened);
    let unreadable = |source| KeyError::Unreadable { file: name(), source };
    // From the open file, because the name may refer to another file by now.
    let meta = opened.metadata().map_err(unreadable)?;
    if !meta.is_file() {
        return Err(KeyError::NotRegular { file: name() });
    }
    let owner = meta.uid();
    if owner != 0 && owner != rustix::process::geteuid().as_raw() {
        return Err(KeyError::OtherOwner { file: name(), owner });
    }
    let mode = meta.mode() & 0o777;
    if mode & refused != 0 {
        return Err(KeyError::TooOpen { file: name(), mode });
    }
    // With enough capacity, because growing would leave a copy behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(BYTES_MAX + 1));
    opened.take(BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    parse_key(&bytes, || KeyLocation::File(name()))
}

/// Returns the key in the bytes of a file or variable.
fn parse_key(bytes: &[u8], location: impl Fn() -> KeyLocation) -> Result<Secret, KeyError> {
    let no_key = |defect| KeyError::Invalid { location: location(), defect };
    if bytes.len() > BYTES_MAX {
        return Err(no_key(KeyDefect::TooLong));
    }
    let key = bytes.trim_ascii();
    if key.is_empty() {
        return Err(no_key(KeyDefect::Empty));
    }
    if key.iter().any(|it| [b'\n', b'\r'].contains(it)) {
        return Err(no_key(KeyDefect::MultipleLines));
    }
    match std::str::from_utf8(key) {
        Ok(text) if key.iter().all(u8::is_ascii_graphic) => Ok(Secret::new(text.to_owned())),
        _ => Err(no_key(KeyDefect::Characters)),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, Permissions},
        os::unix::fs::{PermissionsExt as _, symlink},
        panic,
    };

    use super::*;

    /// Made up; no secret scanner's rule but ours matches it.
    const KEY: &str = "sk-test-4f9Qx7mB2vLkR8sT1wZc";

    fn write(file: &Path, bytes: &[u8], mode: u32) {
        drop(fs::remove_file(file));
        #[expect(clippy::disallowed_methods, reason = "a file of a test")]
        fs::write(file, bytes).unwrap();
        fs::set_permissions(file, Permissions::from_mode(mode)).unwrap();
    }

    /// Fails to compile where a type implements one of the traits.
    macro_rules! has_none_of {
        ($type:ty: $($trait:path),+) => {$({
            trait Ambiguous<A> { fn holds() {} }
            impl<T: ?Sized> Ambiguous<()> for T {}
            struct Has;
            impl<T: ?Sized + $trait> Ambiguous<Has> for T {}
            <$type as Ambiguous<_>>::holds();
        })+};
    }

    #[test]
    fn a_secret_shows_nothing() {
        has_none_of!(Secret: Clone, fmt::Display, serde::Serialize, AsRef<str>, std::ops::Deref);
        let secret = Secret::new(KEY.to_owned());
        assert_eq!(
            format!("{secret:?} {:#?}", Some(&secret)),
            "Secret(…) Some(\n    Secret(…),\n)"
        );
        assert_eq!(secret.expose(), KEY);
        let around = Environment { api_key: Some(Arc::new(secret)), ..Environment::default() };
        assert!(!format!("{around:?}").contains("4f9Q"));
        // The message of a failing `unwrap`.
        let quiet = panic::take_hook();
        panic::set_hook(Box::new(|_| {}));
        let caught = panic::catch_unwind(|| {
            let outcome: Result<(), _> = std::hint::black_box(Err(Secret::new(KEY.to_owned())));
            outcome.unwrap();
        });
        panic::set_hook(quiet);
        let message = caught.unwrap_err().downcast::<String>().unwrap();
        assert!(message.contains("Secret(…)") && !message.contains("4f9Q"), "{message}");
    }

    #[track_caller]
    fn check_file(bytes: &[u8], mode: u32, credential: bool, expected: Result<(), &str>) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("key");
        write(&file, bytes, mode);
        check_at(&file, credential, expected);
    }

    #[track_caller]
    fn check_at(file: &Path, credential: bool, expected: Result<(), &str>) {
        let file = file.to_path_buf();
        let source = if credential { KeySource::Credential(file) } else { KeySource::File(file) };
        match (source.read(), expected) {
            (Ok(secret), Ok(())) => assert_eq!(secret.expose(), KEY),
            (Err(error), Err(expected)) => {
                let message = format!("{error} {error:?} {}", error.hint());
                assert!(message.contains(expected), "{message}");
                assert!(!message.contains("4f9Q"), "{message}");
            }
            (seen, _) => panic!("{seen:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn only_a_private_file_with_one_key_is_read() {
        let key = KEY.as_bytes();
        for mode in [0o600, 0o400, 0o700] {
            check_file(key, mode, false, Ok(()));
        }
        for mode in [0o644, 0o640, 0o604, 0o620, 0o601] {
            check_file(key, mode, false, Err("chmod 600 '"));
        }
        for mode in [0o400, 0o440, 0o600] {
            check_file(key, mode, true, Ok(()));
        }
        for mode in [0o444, 0o460, 0o401] {
            check_file(key, mode, true, Err("is open to other users"));
        }
        check_file(format!(" \t{KEY}\r\n\n").as_bytes(), 0o600, false, Ok(()));
        check_file(b"", 0o600, false, Err("is empty"));
        check_file(b" \n", 0o600, false, Err("is empty"));
        check_file(format!("{KEY}\n{KEY}").as_bytes(), 0o600, false, Err("more than one line"));
        check_file(format!("Bearer {KEY}").as_bytes(), 0o600, false, Err("has a space"));
        check_file(format!("{KEY}\u{e9}").as_bytes(), 0o600, false, Err("printable ASCII"));
        check_file(format!("{KEY}\0").as_bytes(), 0o600, false, Err("printable ASCII"));
        check_file(&[key, b"\xff\xfe"].concat(), 0o600, false, Err("printable ASCII"));
        check_file(KEY.repeat(400).as_bytes(), 0o600, false, Err("longer than 8192 bytes"));
    }

    #[test]
    fn only_a_regular_file_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        write(&path("key"), KEY.as_bytes(), 0o600);
        symlink("key", path("link")).unwrap();
        check_at(&path("link"), false, Err("readlink -f"));
        check_at(&path("link"), true, Err("is a link"));
        check_at(&path("none"), false, Err("there is no key file at"));
        check_at(dir.path(), false, Err("not a regular file"));
        // Nobody writes to the pipe, so reading would block forever.
        rustix::fs::mkfifoat(rustix::fs::CWD, path("pipe"), Mode::from_raw_mode(0o600)).unwrap();
        check_at(&path("pipe"), false, Err("not a regular file"));
        check_at(Path::new("/dev/null"), false, Err("not a regular file"));
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(path("key"), Some(4711), None).unwrap();
            check_at(&path("key"), false, Err("belongs to another user (4711)"));
        }
    }

    #[track_caller]
    fn check_source(key_file: Option<&str>, credential: bool, variable: bool, expected: &str) {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        let mut around = Environment {
            home: home.to_path_buf(),
            config_home: home.join(".config"),
            cwd: "/elsewhere".into(),
            credentials_dir: Some(home.join("credentials")),
            ..Environment::default()
        };
        fs::create_dir(home.join("credentials")).unwrap();
        if credential {
            write(&home.join("credentials").join(CREDENTIAL), KEY.as_bytes(), 0o400);
        }
        around.api_key = variable.then(|| Arc::new(Secret::new(KEY.to_owned())));
        let config = Config::from_text(None, &[], &around).unwrap();
        let model = Model { key_file: key_file.map(str::to_owned), ..Model::default() };
        let source = config.key_source(&model, &around);
        let seen = source.as_ref().map(ToString::to_string).unwrap_or_default();
        assert_eq!(seen.replace(home.to_str().unwrap(), "~"), expected);
        if let Some(source) = source.filter(|it| !matches!(it, KeySource::File(_))) {
            assert_eq!(source.read().unwrap().expose(), KEY);
        }
    }

    #[test]
    fn the_first_source_wins() {
        check_source(Some("~/key"), true, true, "~/key");
        check_source(Some("key"), true, true, "~/.config/memoird/key");
        check_source(Some("/run/key"), false, false, "/run/key");
        check_source(None, true, true, "the systemd credential memoird-api-key");
        check_source(None, false, true, "the variable MEMOIRD_API_KEY");
        check_source(None, false, false, "");
    }

    #[test]
    fn an_invalid_variable_is_named_but_not_quoted() {
        let source = KeySource::Variable(Arc::new(Secret::new(format!("{KEY} {KEY}"))));
        let error = source.read().unwrap_err();
        let text = format!("{error} {error:?} {source:?} {}", error.hint());
        assert!(text.starts_with("the key in the variable MEMOIRD_API_KEY has a space"), "{text}");
        assert!(!text.contains("4f9Q"), "{text}");
    }

    #[test]
    fn a_child_does_not_inherit_the_key() {
        let mut command = Command::new("true");
        command.env(VARIABLE, KEY).env("LANG", "C");
        remove_key_variables(&mut command);
        let set: Vec<_> = command.get_envs().filter(|(_, value)| value.is_some()).collect();
        assert_eq!(set, [("LANG".as_ref(), Some("C".as_ref()))]);
        let taken: Vec<_> = command.get_envs().filter(|(_, value)| value.is_none()).collect();
        assert_eq!(taken.len(), 2);
    }
}
