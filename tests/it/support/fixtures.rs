//! Preparations that tests of several topics share.

use std::{
    fs,
    path::Path,
    time::{Duration, SystemTime},
};

use super::Root;

/// Returns the modification time of aged files: 2026-04-01, days before the frozen clock of all tests.
pub(crate) fn old_time() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_775_000_000)
}

impl Root {
    /// Copies the folder with its database into a new home.
    pub(crate) fn copy(&self) -> Self {
        let copy = Self::empty(self.path.file_name().unwrap().to_str().unwrap());
        copy_folder(&self.path, &copy.path);
        copy
    }

    /// Creates a home with a copy of the folder `tests/data/NAME`.
    pub(crate) fn from_data(name: &str) -> Self {
        let root = Self::empty(name);
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
        copy_folder(&data, &root.path);
        root
    }

    /// Makes all files look as if they had not been modified for days.
    pub(crate) fn age_files(&self) {
        for path in self.files().keys() {
            self.age_file(path);
        }
    }

    /// Makes a file look as if it had not been modified for days.
    pub(crate) fn age_file(&self, relative: &str) {
        let times = fs::FileTimes::new().set_modified(old_time());
        fs::File::open(self.path(relative)).unwrap().set_times(times).unwrap();
    }

    /// Returns the paths of the typed memories.
    pub(crate) fn typed_memories(&self) -> Vec<String> {
        let is_typed = |it: &String| {
            let kinds = ["user_", "feedback_", "project_", "reference_"];
            kinds.iter().any(|kind| it.contains(kind)) && !it.contains("/.")
        };
        self.files().into_keys().filter(is_typed).collect()
    }

    /// Writes the user's own rules for secrets.
    pub(crate) fn write_secret_rules(&self, text: &str) {
        self.write("../.config/memoird/secrets.yaml", text);
    }
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    fs::set_permissions(to, fs::metadata(from).unwrap().permissions()).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}
