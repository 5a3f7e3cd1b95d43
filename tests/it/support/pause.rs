//! Runs of the program that pause at a failpoint while the test acts.

use std::{
    fs,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use super::{CommandOutput, Root};

/// How long a run may take to reach its failpoint, and to end. A machine may be busy.
const PATIENCE: Duration = Duration::from_secs(180);

impl Root {
    /// Runs the program, calls `act` while it is paused at the failpoint `step`, and lets it finish.
    #[track_caller]
    pub(crate) fn run_paused_at(
        &self,
        args: &[&str],
        step: &str,
        act: impl FnOnce(),
    ) -> CommandOutput {
        let resume = self.home("resume");
        let reached = resume.with_extension("reached");
        let mut command = self.command(args);
        command.env("MEMOIRD_FAIL", format!("wait:{}@{step}", resume.display())).timeout(PATIENCE);
        let ran = thread::scope(|scope| {
            let run = scope.spawn(move || self.finish(command, args));
            await_pause(&reached, step, || run.is_finished());
            act();
            fs::File::create(&resume).unwrap();
            run.join().unwrap()
        });
        fs::remove_file(resume).unwrap();
        fs::remove_file(reached).unwrap();
        ran
    }
}

/// Waits until a run has created the file that says that it is paused at the failpoint `step`.
#[track_caller]
pub(crate) fn await_pause(reached: &Path, step: &str, mut has_ended: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !reached.exists() {
        assert!(!has_ended(), "the run ended before `{step}`");
        assert!(Instant::now() < deadline, "the run did not reach `{step}`");
        thread::sleep(Duration::from_millis(2));
    }
}
