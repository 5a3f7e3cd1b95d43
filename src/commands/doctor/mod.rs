//! `memoird doctor`: checks files, database and settings, and repairs what can be repaired.
//!
//! Without `--repair` it never writes. The checks are independent: a failing check does not hide the
//! others. `root` runs them; checks of the machine are in `system` and `keys`, checks of memory in
//! [`crate::compaction::integrity::check`], repairs in [`crate::compaction::integrity::repair`].

mod keys;
mod root;
mod sandbox;
mod system;

use serde::Serialize;

use super::{GlobalArgs, error_report::exit_code_if_failed, secrets, ui::Ui};
use crate::{
    compaction::{
        self,
        integrity::{
            check::{self, CheckOutcome, CheckResult},
            rebuild::{self, CheckDepth, OpenedDatabase},
            repair,
        },
    },
    operations::{
        error::{CommandError, CommandErrorKind, CommandResult},
        workspace::{Invocation, MemoryRoot, require_writer},
    },
    store::db::lineage::{Lineage, LineageError},
};

/// Check files, database, and settings
///
/// Without --repair it changes nothing. The exit code is 0 if all checks pass, and 1 if any check fails.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(super) struct DoctorArgs {
    /// Repair what can be repaired; deletes nothing, and keeps replaced files in .memoird/quarantine
    #[arg(long)]
    repair: bool,
    /// Look for secrets instead, in logs, generated files, and the history; lists their kind and
    /// location, never the value. With --repair, mask them in generated files
    #[arg(long)]
    secrets: bool,
    /// Enter the daemon's sandbox, try what it must forbid, and show what is refused
    #[arg(long, conflicts_with_all = ["repair", "secrets"])]
    sandbox: bool,
    /// With --repair: show what would be done, and change nothing
    #[arg(long, requires = "repair")]
    dry_run: bool,
    /// With --repair: do not ask for confirmation
    #[arg(long, short, requires = "repair")]
    yes: bool,
}

/// What `--json` prints; a document of `schema/doctor.schema.json`.
#[derive(Serialize)]
struct DoctorReport {
    ok: bool,
    checks: Vec<DoctorCheck>,
    /// What `--repair` did or, with `--dry-run`, would do.
    #[serde(skip_serializing_if = "Option::is_none")]
    repairs: Option<Vec<String>>,
}

#[derive(Serialize)]
struct DoctorCheck {
    name: &'static str,
    ok: bool,
    detail: String,
    /// Whether the check passed, but needs attention.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    warning: bool,
}

/// How many findings of a check are listed; the rest is counted.
const FINDINGS_MAX: usize = 20;

pub(super) fn run(global: &GlobalArgs, args: &DoctorArgs, ui: &Ui) -> CommandResult {
    if args.secrets {
        let (call, root) = Invocation::with_root(global)?;
        let request = secrets::SecretsRequest {
            action: if args.repair {
                secrets::SecretsAction::Redact
            } else {
                secrets::SecretsAction::List
            },
            dry_run: args.dry_run,
            yes: args.yes,
            command: "memoird doctor --secrets --repair",
        };
        return secrets::run(&call, &root, request, ui);
    }
    if args.sandbox {
        let checks = sandbox::sandbox_checks(global)?;
        let report = DoctorReport { ok: checks.iter().all(|it| it.ok), checks, repairs: None };
        show(&report, false, ui);
        return Ok(exit_code_if_failed(!report.ok));
    }
    let opened = Invocation::load(global).and_then(|call| Ok((call.selected_root(global)?, call)));
    let mut repairs = None;
    let checks = match opened {
        Ok((root, call)) => {
            if args.repair {
                repairs = run_repair(&root, &call, args, ui)?;
            }
            root::root_checks(&root, &call)
        }
        // A bad configuration is a finding; a missing root is an error of the call.
        Err(error) if error.kind() == CommandErrorKind::Config => {
            let mut findings = vec![error.to_string()];
            findings.extend(error.hints().iter().cloned());
            let mut checks =
                vec![DoctorCheck::new("configuration", Ok(CheckOutcome::Failed(findings)))];
            let keys = keys::check_keys_without_root(global.config.as_deref());
            checks.extend(keys.map(|it| DoctorCheck::new("keys", Ok(it))));
            checks
        }
        Err(error) => return Err(error),
    };
    let report = DoctorReport { ok: checks.iter().all(|it| it.ok), checks, repairs };
    show(&report, args.dry_run, ui);
    Ok(exit_code_if_failed(!report.ok))
}

/// Repairs what can be repaired, if the user agrees; `None` if not.
fn run_repair(
    root: &MemoryRoot,
    call: &Invocation,
    args: &DoctorArgs,
    ui: &Ui,
) -> CommandResult<Option<Vec<String>>> {
    require_writer(call, root)?;
    let engine = root.engine(call)?;
    root.require_memory_folder()?;
    let now = call.now;
    let database = root.vault.layout().database();
    let damaged = match Lineage::open_existing(&database)
        .and_then(|it| it.as_ref().map_or(Ok(()), check::database))
    {
        Ok(()) => None,
        Err(LineageError::Damaged { detail, .. }) => Some(detail),
        Err(error) => return Err(error.into()),
    };
    let mut plan = Vec::new();
    if let Some(detail) = &damaged {
        plan.push(format!(
            "the database is damaged ({detail}): set it aside, rebuild it from the files, and recover what is readable"
        ));
    }
    {
        let lineage = if damaged.is_none() { Lineage::open_existing(&database)? } else { None };
        let view = compaction::read_snapshot(&root.vault, lineage.as_ref())?;
        let steps = repair::plan_repair(&root.vault, &view, lineage.as_ref())?;
        plan.extend(steps.iter().map(ToString::to_string));
    }
    if plan.is_empty() || args.dry_run {
        return Ok(Some(plan));
    }
    if !args.yes {
        for step in &plan {
            ui.note(step);
        }
        let agreed = ui.confirm("Repair? Nothing is deleted.").ok_or_else(|| {
            CommandError::usage("cannot ask for confirmation without a terminal")
                .hint("memoird doctor --repair --yes")
                .hint("memoird doctor --repair --dry-run")
        })?;
        if !agreed {
            return Ok(None);
        }
    }
    let clock = call.clock();
    let OpenedDatabase { mut lineage, pending_rebuild, .. } =
        rebuild::open(&root.vault, CheckDepth::Full, now)?;
    let mut compactor = root.compactor(&mut lineage, engine.as_ref(), &clock);
    let mut repairs = Vec::new();
    if let Some(rebuild) = pending_rebuild {
        repairs.push(rebuild.recovery.to_string());
        compactor.rebuild_recovered(rebuild, now)?;
    }
    // Rebuilding the database may have repaired much, so the steps are planned again.
    let view = compactor.context.take_snapshot(now)?;
    let steps = repair::plan_repair(&root.vault, &view, Some(compactor.context.lineage))?;
    repairs.extend(compactor.repair(&steps, now)?);
    Ok(Some(repairs))
}

impl DoctorCheck {
    fn new(name: &'static str, checked: CheckResult) -> Self {
        let (ok, warning, detail) = match checked {
            Ok(CheckOutcome::Passed(detail)) => (true, false, detail),
            Ok(CheckOutcome::Warning(detail)) => (true, true, detail),
            Ok(CheckOutcome::Failed(mut findings)) => {
                let more = findings.len().saturating_sub(FINDINGS_MAX);
                findings.truncate(FINDINGS_MAX);
                if more > 0 {
                    findings.push(format!("and {more} more"));
                }
                (false, false, findings.join("\n"))
            }
            Err(error) => {
                let source = error.source().map(ToString::to_string);
                let message = error.to_string();
                let source = source.filter(|it| !message.contains(it.as_str()));
                (false, false, source.map_or(message.clone(), |it| format!("{message}: {it}")))
            }
        };
        Self { name, ok, detail, warning }
    }
}

fn show(report: &DoctorReport, dry_run: bool, ui: &Ui) {
    if ui.is_json() {
        ui.json(report);
        return;
    }
    for step in report.repairs.iter().flatten() {
        ui.note(if dry_run { format!("would do: {step}") } else { step.clone() });
    }
    if report.repairs.as_ref().is_some_and(Vec::is_empty) {
        ui.note("nothing to repair");
    }
    let width = report.checks.iter().map(|it| it.name.chars().count()).max().unwrap_or(0);
    for DoctorCheck { name, ok, detail, warning } in &report.checks {
        let mark = match (ok, warning) {
            (true, false) => "ok  ",
            (true, true) => "note",
            (false, _) => "bad ",
        };
        let mut lines = detail.lines();
        ui.data(format!("{mark}  {name:width$}  {}", lines.next().unwrap_or_default()));
        for line in lines {
            ui.data(format!("      {:width$}  {line}", ""));
        }
    }
    let failed = report.checks.iter().filter(|it| !it.ok).count();
    if failed > 0 {
        ui.warn(format!("{failed} of {} checks failed", report.checks.len()));
    } else {
        ui.success("all checks passed");
    }
}
