//! `metrics_file`: a text file for the Prometheus node exporter, off by default.
//!
//! A file needs no port, no token and no request that wakes the daemon. It is replaced atomically when
//! a value changes, and removed when the daemon ends, so no stale values are collected. It contains
//! paths of memory folders and counts, no text of a log.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    io::{self, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use chrono::{DateTime, Utc};

use super::{repeat_filter::RepeatFilter, root_service::RootService};

/// The figures of one memory folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a number of its own")]
pub(super) struct RootMetrics {
    pub(super) is_served: bool,
    /// Jobs that are due, and jobs that are stuck.
    pub(super) due: usize,
    pub(super) stuck: usize,
    /// Nothing is written until a person acts.
    pub(super) is_paused: bool,
    /// Jobs wait for their model.
    pub(super) is_waiting: bool,
    /// The system does not report changes, so the folder is polled.
    pub(super) is_polled: bool,
    /// Scans that found an unreported change.
    pub(super) missed: u64,
    /// How often the system lost events.
    pub(super) overflows: u64,
    pub(super) runs: u64,
    /// Jobs since the daemon started, by outcome.
    pub(super) jobs: BTreeMap<&'static str, u64>,
    /// The last complete scan, and the next scheduled time.
    pub(super) last_scan: Option<DateTime<Utc>>,
    pub(super) next: Option<DateTime<Utc>>,
}

/// The file and its current content.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    file: Option<PathBuf>,
    text: String,
    write_errors: RepeatFilter,
}

impl Metrics {
    /// Writes the file if a value changed. Removes the previous file if the path changed or is unset.
    pub(super) fn update(
        &mut self,
        file: Option<&Path>,
        since: DateTime<Utc>,
        roots: &BTreeMap<PathBuf, RootService>,
    ) {
        if self.file.as_deref() != file {
            self.remove_file();
            self.file = file.map(Path::to_path_buf);
        }
        let Some(file) = &self.file else { return };
        let figures = roots.iter().map(|(path, root)| (path.as_path(), root.metrics()));
        let text = text(since, &figures.collect());
        if text == self.text {
            return;
        }
        match write(file, &text) {
            Ok(()) => {
                self.text = text;
                self.write_errors.clear();
            }
            Err(error) => {
                if self.write_errors.is_new(error_cause(file, &error)) {
                    tracing::warn!("metrics_file: cannot write `{}`: {error}", file.display());
                }
            }
        }
    }

    pub(super) fn remove_file(&mut self) {
        let Self { file, text, .. } = std::mem::take(self);
        if let Some(file) = file.filter(|_| !text.is_empty())
            && let Err(error) = fs::remove_file(&file)
        {
            tracing::debug!("{}: {error}", file.display());
        }
    }
}

/// Returns what identifies a failed write. The message would not do: it contains the temporary file,
/// whose name differs each time.
fn error_cause(file: &Path, error: &io::Error) -> String {
    format!("{}: {:?} {:?}", file.display(), error.kind(), error.raw_os_error())
}

/// Replaces the file. It is readable by all, because the exporter runs as another user.
fn write(file: &Path, text: &str) -> io::Result<()> {
    let folder = file.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let mut temp = tempfile::Builder::new()
        .prefix(".memoird-")
        .permissions(fs::Permissions::from_mode(0o644))
        .tempfile_in(folder)?;
    temp.write_all(text.as_bytes())?;
    temp.persist(file)?;
    Ok(())
}

/// Reads the value of one folder.
type MetricValue = fn(&RootMetrics) -> Option<f64>;

/// Per metric: name, type, help and value.
const ROOT_METRICS: [(&str, &str, &str, MetricValue); 11] = [
    ("served", "gauge", "Whether the memory folder is served.", |it| Some(flag(it.is_served))),
    ("due_jobs", "gauge", "Jobs that are due.", |it| Some(count(it.due))),
    ("stuck_jobs", "gauge", "Jobs that failed three times and wait for a person.", |it| {
        Some(count(it.stuck))
    }),
    ("paused", "gauge", "Whether nothing is written until a person acts.", |it| {
        Some(flag(it.is_paused))
    }),
    ("waiting", "gauge", "Whether jobs wait for their model or a budget.", |it| {
        Some(flag(it.is_waiting))
    }),
    ("polled", "gauge", "Whether the folder is polled for changes.", |it| Some(flag(it.is_polled))),
    ("missed_changes_total", "counter", "Scans that found an unreported change.", |it| {
        Some(total(it.missed))
    }),
    ("overflows_total", "counter", "How often the system lost change events.", |it| {
        Some(total(it.overflows))
    }),
    ("passes_total", "counter", "Runs that have ended.", |it| Some(total(it.runs))),
    (
        "last_scan_timestamp_seconds",
        "gauge",
        "When the folder was last scanned completely.",
        |it| it.last_scan.map(seconds),
    ),
    ("next_timestamp_seconds", "gauge", "When the next run is scheduled.", |it| {
        it.next.map(seconds)
    }),
];

fn flag(it: bool) -> f64 {
    f64::from(u8::from(it))
}

fn count(it: usize) -> f64 {
    total(u64::try_from(it).unwrap_or(u64::MAX))
}

#[expect(clippy::cast_precision_loss, reason = "no count is that large")]
fn total(it: u64) -> f64 {
    it as f64
}

#[expect(clippy::cast_precision_loss, reason = "no time is that far")]
fn seconds(at: DateTime<Utc>) -> f64 {
    at.timestamp() as f64
}

fn text(since: DateTime<Utc>, roots: &BTreeMap<&Path, RootMetrics>) -> String {
    let mut text = String::new();
    let mut say = |line: String| text += &(line + "\n");
    say("# HELP memoird_build_info The version of the running program.".to_owned());
    say("# TYPE memoird_build_info gauge".to_owned());
    say(format!("memoird_build_info{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION")));
    say("# HELP memoird_start_time_seconds When the daemon started.".to_owned());
    say("# TYPE memoird_start_time_seconds gauge".to_owned());
    say(format!("memoird_start_time_seconds {}", seconds(since)));
    for (name, kind, help, value) in ROOT_METRICS {
        say(format!("# HELP memoird_{name} {help}"));
        say(format!("# TYPE memoird_{name} {kind}"));
        for (root, figures) in roots {
            if let Some(value) = value(figures) {
                say(format!("memoird_{name}{{root=\"{}\"}} {value}", escaped(root)));
            }
        }
    }
    say("# HELP memoird_jobs_total Jobs since the daemon started, by outcome.".to_owned());
    say("# TYPE memoird_jobs_total counter".to_owned());
    for (root, figures) in roots {
        for (outcome, count) in &figures.jobs {
            let root = escaped(root);
            say(format!("memoird_jobs_total{{root=\"{root}\",outcome=\"{outcome}\"}} {count}"));
        }
    }
    text
}

/// Escapes a path as the value of a label.
fn escaped(path: &Path) -> String {
    let mut text = String::new();
    for letter in path.to_string_lossy().chars() {
        match letter {
            '\\' => text += "\\\\",
            '"' => text += "\\\"",
            '\n' => text += "\\n",
            letter => drop(text.write_char(letter)),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_folder_is_one_cause_however_often_it_is_tried() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("missing/memoird.prom");
        let [first, second] = [(); 2].map(|()| write(&file, "x").unwrap_err());
        assert_ne!(first.to_string(), second.to_string(), "both name a temporary file");
        assert_eq!(error_cause(&file, &first), error_cause(&file, &second));
    }

    #[test]
    fn each_root_has_its_values_and_unusual_names_are_escaped() {
        let figures = RootMetrics {
            is_served: true,
            stuck: 2,
            jobs: BTreeMap::from([("failed", 3), ("written", 70)]),
            last_scan: DateTime::from_timestamp(1_774_000_000, 0),
            ..RootMetrics::default()
        };
        let odd = Path::new("/a \"b\"\n\\");
        let roots = BTreeMap::from([(Path::new("/z"), RootMetrics::default()), (odd, figures)]);
        let text = text(DateTime::UNIX_EPOCH, &roots);
        for line in [
            "# TYPE memoird_served gauge",
            "memoird_served{root=\"/a \\\"b\\\"\\n\\\\\"} 1",
            "memoird_served{root=\"/z\"} 0",
            "memoird_stuck_jobs{root=\"/a \\\"b\\\"\\n\\\\\"} 2",
            "memoird_last_scan_timestamp_seconds{root=\"/a \\\"b\\\"\\n\\\\\"} 1774000000",
            "memoird_jobs_total{root=\"/a \\\"b\\\"\\n\\\\\",outcome=\"written\"} 70",
        ] {
            assert!(text.lines().any(|it| it == line), "{line}\n{text}");
        }
        // One HELP and one TYPE line per metric, and no other kind of line.
        assert_eq!(text.matches("# TYPE").count(), ROOT_METRICS.len() + 3);
        assert!(text.lines().all(|it| it.starts_with("# ") || it.starts_with("memoird_")));
    }
}
