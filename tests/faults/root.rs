//! A memory folder in a temporary home, and runs of the program in it.

use std::{
    fmt,
    fs::{self, File},
    io::Write as _,
    os::unix::{
        fs::{MetadataExt as _, symlink},
        process::ExitStatusExt as _,
    },
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use chrono::DateTime;
use tempfile::TempDir;

use super::files::{Files, read_all};

/// The time of all trials: the Monday after all weeks of the sample journal.
pub(crate) const NOW: &str = "2026-04-13T09:00:00+02:00";
/// The log of that day.
pub(crate) const TODAY: &str = "memory/2026-04-13.md";
const ARCHIVE: &str = "memory/archive";
/// Usually another file system than that of temporary files.
const OTHER_DISK: &str = "/dev/shm";
/// A run that takes longer hangs.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A memory folder; dropping it removes its home.
#[derive(Debug)]
pub(crate) struct Root {
    home: TempDir,
    path: PathBuf,
    /// The folder on another disk that [`ARCHIVE`] links to.
    other_disk_archive: Option<TempDir>,
}

/// The outcome of one run of the program.
#[derive(Clone, Debug)]
pub(crate) struct CommandOutput {
    pub(crate) line: String,
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Returns the program under test, in all modules except the failpoints.
pub(crate) fn program() -> PathBuf {
    std::env::var_os("MEMOIRD_FAULTS_BIN").map_or_else(built_program, PathBuf::from)
}

/// Returns the program as built for this test.
pub(crate) fn built_program() -> PathBuf {
    assert_cmd::cargo::cargo_bin!("memoird").to_owned()
}

impl Root {
    /// Creates an empty folder in the system's temporary folder.
    pub(crate) fn new() -> Self {
        Self::new_in(&std::env::temp_dir())
    }

    /// Creates an empty folder in `dir`.
    pub(crate) fn new_in(dir: &Path) -> Self {
        let home = tempfile::Builder::new().prefix("faults-").tempdir_in(dir).unwrap();
        let path = home.path().canonicalize().unwrap().join("mara");
        fs::create_dir(&path).unwrap();
        Self { home, path, other_disk_archive: None }
    }

    /// Copies the folder, `.memoird/` included.
    pub(crate) fn copy(&self) -> Self {
        self.copy_to(&std::env::temp_dir())
    }

    /// Copies the folder into `dir`.
    pub(crate) fn copy_to(&self, dir: &Path) -> Self {
        let mut copy = Self::new_in(dir);
        copy_all(&self.path, &copy.path);
        if let Some(archive) = &self.other_disk_archive {
            copy.archive_on_other_disk();
            copy_all(archive.path(), &copy.path(ARCHIVE));
        }
        copy
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.path.join(relative)
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    pub(crate) fn write(&self, relative: &str, text: &str) {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        File::create(path).unwrap().write_all(text.as_bytes()).unwrap();
    }

    pub(crate) fn remove(&self, relative: &str) {
        fs::remove_file(self.path(relative)).unwrap();
    }

    pub(crate) fn read(&self, relative: &str) -> String {
        fs::read_to_string(self.path(relative)).unwrap_or_else(|e| panic!("{relative}: {e}"))
    }

    /// Replaces the first `from` in a file.
    pub(crate) fn edit(&self, relative: &str, from: &str, to: &str) {
        let text = self.read(relative);
        assert!(text.contains(from), "no `{from}` in {relative}:\n{text}");
        self.write(relative, &text.replacen(from, to, 1));
    }

    /// Puts the archive on another disk, if there is one.
    pub(crate) fn archive_on_other_disk(&mut self) {
        let device = |path: &Path| fs::metadata(path).map(|it| it.dev()).ok();
        if ![None, device(&self.path)].contains(&device(Path::new(OTHER_DISK))) {
            let archive =
                tempfile::Builder::new().prefix("faults-").tempdir_in(OTHER_DISK).unwrap();
            fs::create_dir_all(self.path("memory")).unwrap();
            symlink(archive.path(), self.path(ARCHIVE)).unwrap();
            self.other_disk_archive = Some(archive);
        }
    }

    /// Returns whether [`Self::archive_on_other_disk`] found another disk.
    pub(crate) fn has_archive_on_other_disk(&self) -> bool {
        self.other_disk_archive.is_some()
    }

    /// Sets the modification time of all logs to 12 days ago.
    pub(crate) fn age_logs(&self) {
        let then = DateTime::parse_from_rfc3339(NOW).unwrap() - Duration::from_secs(12 * 86_400);
        let times = fs::FileTimes::new().set_modified(then.into());
        for name in self.files().keys().filter(|it| it.starts_with("memory/20")) {
            File::open(self.path(name)).unwrap().set_times(times).unwrap();
        }
    }

    /// Copies the sample logs whose names start with one of `names`.
    pub(crate) fn add_logs(&self, names: &[&str]) {
        let journal = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/journal/mara/memory");
        fs::create_dir_all(self.path("memory")).unwrap();
        for entry in fs::read_dir(journal).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            if names.iter().any(|it| name.starts_with(it)) {
                fs::copy(entry.path(), self.path("memory").join(name)).unwrap();
            }
        }
    }

    /// Returns all files except those in `.memoird/`.
    pub(crate) fn files(&self) -> Files {
        read_all(&self.path)
    }

    /// Returns the program, ready to run in the folder.
    pub(crate) fn command(&self, program: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(args);
        self.set_up(&mut command);
        command
    }

    /// Sets the working directory and a clean environment.
    pub(crate) fn set_up(&self, command: &mut Command) {
        command
            .env_clear()
            .env("PATH", "/nonexistent")
            .env("HOME", self.home.path())
            .env("TZ", "Europe/Berlin")
            .env("MEMOIRD_NOW", NOW)
            .current_dir(&self.path)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
    }

    /// Runs the program in the folder.
    pub(crate) fn run(&self, args: &[&str]) -> CommandOutput {
        finish(self.command(&program(), args))
    }
}

/// Runs a command to its end.
pub(crate) fn finish(mut command: Command) -> CommandOutput {
    let line = line_of(&command);
    wait(command.spawn().unwrap(), line)
}

/// Runs a command, and kills it after `delay` if it has not ended by then.
pub(crate) fn kill_after(mut command: Command, delay: Duration) -> CommandOutput {
    let line = line_of(&command);
    let mut child = command.spawn().unwrap();
    std::thread::sleep(delay);
    child.kill().unwrap();
    wait(child, line)
}

fn line_of(command: &Command) -> String {
    let mut line = "memoird".to_owned();
    for arg in command.get_args() {
        line.push(' ');
        line.push_str(&arg.to_string_lossy());
    }
    line
}

/// Waits for the end of a process, whose output must fit into a pipe.
pub(crate) fn wait(mut child: Child, line: String) -> CommandOutput {
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > TIMEOUT {
            child.kill().unwrap();
            panic!("`{line}` hangs");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    CommandOutput {
        line,
        status: output.status,
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

fn copy_all(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            fs::create_dir(&target).unwrap();
            let mode = entry.metadata().unwrap().permissions();
            fs::set_permissions(&target, mode).unwrap();
            copy_all(&entry.path(), &target);
        } else if !entry.file_type().unwrap().is_symlink() {
            fs::copy(entry.path(), &target).unwrap();
            // The age of a log is its modification time.
            let modified = entry.metadata().unwrap().modified().unwrap();
            let times = fs::FileTimes::new().set_modified(modified);
            File::open(target).unwrap().set_times(times).unwrap();
        }
    }
}

impl CommandOutput {
    /// Returns whether it ended with exit code 0, which acknowledges its work.
    pub(crate) fn is_done(&self) -> bool {
        self.status.success()
    }

    /// Returns whether it was killed.
    pub(crate) fn is_killed(&self) -> bool {
        self.status.signal() == Some(9)
    }

    /// Checks that the exit code is 0.
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        assert!(self.is_done(), "{self}");
        self
    }
}

impl fmt::Display for CommandOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "$ {}\n{}", self.line, self.stdout)?;
        for line in self.stderr.lines() {
            writeln!(f, "! {line}")?;
        }
        write!(f, "[{}]", self.status)
    }
}
