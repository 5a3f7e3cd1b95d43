//! `memoird bundle`: publishes a memory folder to object storage, and brings what others published.

mod conflicts;

use std::{collections::HashMap, process::ExitCode};

use serde::Serialize;

pub(super) use self::conflicts::{conflict_entries, is_conflict_id, settle_conflicts};
use super::{GlobalArgs, embed_lines::embed_new_lines, error_report::exit_code_if_failed, ui::Ui};
use crate::{
    config::root::ROOT_FILE_NAME,
    fleet::{
        error::BundleError,
        pull::{self, FetchedManifest, FetchedSettings, PullReport, PullRequest, StatusReport},
        push::{self, PathNote, PushReport, PushRequest},
        root_name::RootName,
        state::BundleState,
        storage::{StorageErrorKind, StorageScheme, normalized_url},
    },
    operations::{
        error::{CommandError, CommandErrorKind, CommandResult},
        format::counted,
        replica::{CLAIMS_VARIABLE, report_push},
        workspace::{Invocation, MemoryRoot},
    },
    recall::search,
    store::fs::vault::settings_files,
};

/// Publish a memory folder to object storage, or bring it from there
///
/// A bundle is one memory folder in one store: its logs, generated files, notes, decisions, and database. Several
/// machines may publish to it. What only one of them changed is joined; what two changed is a conflict, and nobody's
/// version is overwritten.
///
/// URL is `file:///PATH`, `s3://BUCKET/PATH`, `gs://BUCKET/PATH`, or `az://CONTAINER/PATH`. The credentials are those of
/// the environment (`AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`, `AWS_ENDPOINT_URL` for other servers). `gs://` and
/// `az://` are untested. Without URL, the only store of the folder is used.
#[derive(Debug, clap::Args)]
pub(super) struct BundleArgs {
    #[command(subcommand)]
    verb: BundleCommand,
}

#[derive(Debug, clap::Subcommand)]
enum BundleCommand {
    /// Publish what changed here
    ///
    /// At its first use a store must win 20 races of concurrent writers, or it is refused. Without an answer from the
    /// store nothing is lost: `memoird bundle status` lists what is not published yet.
    Push(PushArgs),
    /// Bring what others published
    ///
    /// Everything is fetched and checked before the first file changes. Files that changed here are not touched; of
    /// those that also changed in the store, that version is saved in .memoird/quarantine.
    Pull(PullArgs),
    /// Show what a push and a pull would do
    Status(StatusArgs),
}

#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
struct PushArgs {
    /// The address of the bundle
    url: Option<String>,
    /// Publish your version of a file in conflict; may be repeated
    #[arg(long, value_name = "PATH")]
    mine: Vec<String>,
    /// The bucket keeps former versions, and its lifecycle rule removes them: `forget` cannot
    #[arg(long)]
    accept_versions: bool,
    /// Publish the removal of many files
    #[arg(long)]
    accept_missing: bool,
    /// Report the push to this claims database, so that a worker compacts the folder when it is due; the address must
    /// end with TENANT/ROOT. Default: `MEMOIRD_CLAIMS`
    #[arg(long, value_name = "URL")]
    claims: Option<String>,
    /// Without a claims database: note in the store when the folder is due, for `memoird worker --list-due`; the address
    /// must end with TENANT/ROOT
    #[arg(long, conflicts_with = "claims")]
    due: bool,
    /// Show what would be published, and change nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, clap::Args)]
struct PullArgs {
    /// The address of the bundle
    url: Option<String>,
    /// Replace your version of a file in conflict, which is saved; may be repeated, `all` for every file
    #[arg(long, value_name = "PATH")]
    theirs: Vec<String>,
    /// Remove many files that were removed from the store
    #[arg(long)]
    accept_missing: bool,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, clap::Args)]
struct StatusArgs {
    /// The address of the bundle
    url: Option<String>,
}

/// What `--json` prints for `status`: `schema/bundle.schema.json`.
#[derive(Serialize)]
struct StatusDocument {
    bundles: Vec<StatusReport>,
}

/// How many entries of a list are shown without `--verbose`.
const SHOWN_MAX: usize = 20;

pub(super) fn run(global: &GlobalArgs, args: &BundleArgs, ui: &Ui) -> CommandResult {
    // A pull makes a memory folder of an ordinary one.
    let (call, root) = match &args.verb {
        BundleCommand::Pull(_) => Invocation::with_any_root_to_write(global, ui)?,
        _ => Invocation::with_root_to_write(global, ui)?,
    };
    match &args.verb {
        BundleCommand::Push(args) => push(&call, &root, args, ui),
        BundleCommand::Pull(args) => pull(&call, root, args, ui),
        BundleCommand::Status(args) => status(&call, &root, args, ui),
    }
}

fn push(call: &Invocation, root: &MemoryRoot, args: &PushArgs, ui: &Ui) -> CommandResult {
    root.require_memory_folder()?;
    let url = address(root, args.url.as_deref(), "push")?;
    warn_if_untested(&url, ui)?;
    root.finish_interrupted_pull(call)?;
    let claims = args.claims.as_deref().or(call.environment.variable(CLAIMS_VARIABLE));
    let claims = claims.filter(|_| !args.due);
    let is_reported = claims.is_some() || args.due;
    let name = is_reported.then(|| RootName::of_url(&url)).transpose().map_err(|error| {
        CommandError::usage(error).hint("a push that is reported goes to STORE/TENANT/ROOT")
    })?;
    let request = PushRequest {
        mine: args.mine.iter().cloned().collect(),
        accepts_versions: args.accept_versions,
        accepts_missing: args.accept_missing,
        dry_run: args.dry_run,
        tenant: name.as_ref().map(|it| it.tenant().to_owned()),
        state_home: Some(call.environment.state_home.clone()),
        ..PushRequest::default()
    };
    let report =
        with_progress(ui, |show| push::push(&root.bundle_root(call), &url, &request, show))
            .map_err(|error| explain(error, root, &url))?;
    show_push(&report, ui);
    if let Some(name) = name.filter(|_| !report.dry_run) {
        // What was published is published; a worker's sweep finds it without the report.
        if let Err(error) = report_push(call, root, claims, &name, &report) {
            ui.warn(format!("published, but not reported: {error}"));
        }
    }
    let is_incomplete =
        !report.conflicts.is_empty() || !report.skipped.is_empty() || !report.survivors.is_empty();
    Ok(exit_code_if_failed(is_incomplete))
}

fn pull(call: &Invocation, root: MemoryRoot, args: &PullArgs, ui: &Ui) -> CommandResult {
    let url = address(&root, args.url.as_deref(), "pull")?;
    warn_if_untested(&url, ui)?;
    let (root, fetched) = with_settings_of_bundle(call, root, &url, args.dry_run)?;
    let request = PullRequest {
        theirs: args.theirs.iter().cloned().collect(),
        accepts_missing: args.accept_missing,
        dry_run: args.dry_run,
        tenant: None,
        fetched,
    };
    let report =
        with_progress(ui, |show| pull::pull(&root.bundle_root(call), &url, &request, show))
            .map_err(|error| explain(error, &root, &url))?;
    if !report.dry_run && !report.brought.is_empty() {
        // If this fails, the next search indexes the files or reports the error.
        drop(search::refresh_index(&root.vault));
    }
    show_pull(&report, ui);
    // Where another host summarizes, no run computes them.
    if !report.dry_run
        && !root.settings.is_writer(&call.environment.host)
        && let Ok(scan) = root.vault.scan_hashes(&HashMap::new())
    {
        embed_new_lines(call, &root, Some(&scan.inventory), ui);
    }
    Ok(exit_code_if_failed(!report.conflicts.is_empty() || !report.skipped.is_empty()))
}

fn status(call: &Invocation, root: &MemoryRoot, args: &StatusArgs, ui: &Ui) -> CommandResult {
    let urls = match &args.url {
        Some(url) => vec![normalized_url(url)],
        None => known_urls(root)?,
    };
    if urls.is_empty() {
        return Err(no_address("status"));
    }
    let mut bundles = Vec::new();
    for url in &urls {
        let report = pull::status(&root.bundle_root(call), url);
        bundles.push(report.map_err(|error| explain(error, root, url))?);
    }
    let is_unreachable = bundles.iter().any(|it| it.unreachable.is_some());
    if ui.is_json() {
        ui.json(&StatusDocument { bundles });
    } else {
        for it in &bundles {
            show_status(it, ui);
        }
    }
    if is_unreachable {
        return Ok(CommandErrorKind::Unavailable.exit_code().into());
    }
    Ok(ExitCode::SUCCESS)
}

/// Notes that words are being forgotten, for all stores of a root. Returns their addresses.
pub(super) fn note_forgetting(root: &MemoryRoot) -> CommandResult<Vec<String>> {
    Ok(push::note_forgetting(&root.vault)?)
}

/// Removes from all stores what was forgotten here. Returns whether nothing of it is left in them.
pub(super) fn remove_forgotten(
    call: &Invocation,
    root: &MemoryRoot,
    urls: &[String],
    ui: &Ui,
) -> bool {
    let request = PushRequest {
        removes_forgotten: true,
        accepts_missing: true,
        state_home: Some(call.environment.state_home.clone()),
        ..PushRequest::default()
    };
    let mut is_gone = true;
    for url in urls {
        let pushed =
            with_progress(ui, |show| push::push(&root.bundle_root(call), url, &request, show));
        match pushed {
            Ok(report) if report.survivors.is_empty() => {
                let count = counted(report.removed_objects, "object", "objects");
                ui.note(format!("removed {count} from {url}"));
            }
            Ok(report) => {
                is_gone = false;
                ui.warn(format!(
                    "{url} may still hold the words: {} differ from this folder's ({})",
                    counted(report.survivors.len(), "file", "files"),
                    report.survivors.join(", ")
                ));
                ui.note(format!("hint: memoird bundle pull {url}, then forget again"));
            }
            Err(error) => {
                is_gone = false;
                ui.warn(format!("{url} still holds the words: {}", CommandError::from(error)));
                ui.note(format!("hint: memoird bundle push {url}"));
            }
        }
    }
    is_gone
}

/// Writes the settings of a bundle to a folder that has none, so that its files are read as in the bundle.
fn with_settings_of_bundle(
    call: &Invocation,
    root: MemoryRoot,
    url: &str,
    dry_run: bool,
) -> CommandResult<(MemoryRoot, Option<FetchedManifest>)> {
    let file = root.settings.path.join(ROOT_FILE_NAME);
    if dry_run || file.exists() {
        return Ok((root, None));
    }
    let FetchedSettings { text, fetched } =
        pull::fetch_settings(&root.vault, url, None).map_err(|it| explain(it, &root, url))?;
    let Some(text) = text else { return Ok((root, Some(fetched))) };
    settings_files::write_settings(&file, &text)?;
    Ok((call.open_root(&root.settings.path)?, Some(fetched)))
}

/// Returns the address that was named, or the only one of the root.
fn address(root: &MemoryRoot, named: Option<&str>, verb: &str) -> CommandResult<String> {
    if let Some(url) = named {
        return Ok(normalized_url(url));
    }
    let urls = known_urls(root)?;
    match &urls[..] {
        [url] => Ok(url.clone()),
        [] => Err(no_address(verb)),
        _ => Err(CommandError::usage("this folder has several stores; name one")
            .hints_from(urls.iter().map(|it| format!("memoird bundle {verb} {it}")))),
    }
}

fn known_urls(root: &MemoryRoot) -> CommandResult<Vec<String>> {
    let states = BundleState::load_all(&root.vault)?;
    Ok(states.into_iter().filter(|it| it.root.is_some()).map(|it| it.url).collect())
}

fn no_address(verb: &str) -> CommandError {
    CommandError::usage("this folder was never published or brought; name a store")
        .hint(format!("memoird bundle {verb} s3://BUCKET/PATH"))
}

fn warn_if_untested(url: &str, ui: &Ui) -> CommandResult<()> {
    let scheme = StorageScheme::of(url).map_err(BundleError::Storage)?;
    if !scheme.is_tested() {
        ui.warn(format!("{url}: memoird is not tested with stores of this kind"));
    }
    Ok(())
}

fn with_progress<T>(ui: &Ui, work: impl FnOnce(push::ShowStep<'_>) -> T) -> T {
    // Shown from two steps on; the number is known only later.
    let display = ui.progress(2);
    work(&|done, total, name| {
        display.total(total);
        display.step(done, name);
    })
}

fn show_push(report: &PushReport, ui: &Ui) {
    if ui.is_json() {
        return ui.json(report);
    }
    let PushReport { published, generation, url, objects, bytes, .. } = report;
    show_paths(if report.dry_run { "would publish" } else { "published" }, published, ui);
    show_problems(&report.conflicts, &report.skipped, url, ui);
    if report.incoming > 0 {
        let count = counted(report.incoming, "file", "files");
        ui.note(format!("others changed {count}: memoird bundle pull {url}"));
    }
    if report.dry_run {
        ui.note("nothing was changed");
    } else if published.is_empty() && *objects == 0 {
        ui.success(format!("nothing to publish; {url} has generation {generation}"));
    } else {
        ui.success(format!(
            "published {} as generation {generation} ({}, {} KiB)",
            counted(published.len(), "file", "files"),
            counted(*objects, "object", "objects"),
            bytes.div_ceil(1024),
        ));
    }
    if report.removed_objects > 0 {
        ui.note(format!(
            "removed {}",
            counted(report.removed_objects, "unused object", "unused objects")
        ));
    }
    for path in &report.survivors {
        ui.warn(format!(
            "{path} in the store is not the version of this folder, and may hold forgotten words"
        ));
    }
}

fn show_pull(report: &PullReport, ui: &Ui) {
    if ui.is_json() {
        return ui.json(report);
    }
    let PullReport { brought, generation, url, .. } = report;
    show_paths(if report.dry_run { "would bring" } else { "brought" }, brought, ui);
    show_problems(&report.conflicts, &report.skipped, url, ui);
    if report.dry_run {
        ui.note("nothing was changed");
    } else if brought.is_empty() {
        ui.success(format!("up to date with generation {generation} of {url}"));
    } else {
        let count = counted(brought.len(), "file", "files");
        ui.success(format!("brought {count} of generation {generation}"));
    }
    if let Some(name) = &report.other_agent_name {
        ui.warn(format!(
            "the bundle is of the agent `{name}`, and this folder has another agent_name, so that generated files \
             would differ; set it in memoird.yaml"
        ));
    }
    if report.unpublished > 0 {
        let count = counted(report.unpublished, "file", "files");
        ui.note(format!("{count} changed here: memoird bundle push {url}"));
    }
}

fn show_status(report: &StatusReport, ui: &Ui) {
    ui.heading(&report.url);
    match (&report.unreachable, report.generation, report.published) {
        (Some(why), _, _) => ui.warn(format!("{why}; compared with the last common state")),
        (None, Some(generation), Some(published)) => ui.data(format!(
            "  generation {generation} of {}, {}",
            published.format("%Y-%m-%d %H:%M UTC"),
            counted(report.files.unwrap_or_default(), "file", "files")
        )),
        _ => ui.data("  no bundle yet"),
    }
    for (name, list) in [
        ("not published", &report.unpublished),
        ("not brought", &report.incoming),
        ("conflict", &report.conflicts),
        ("not read", &report.skipped),
    ] {
        for PathNote { path, note } in list {
            ui.data(format!("  {name}: {path} ({note})"));
        }
    }
    if report.must_remove {
        let url = &report.url;
        ui.warn(format!("{url} may hold forgotten words: memoird bundle push {url}"));
    }
    let lists = [&report.unpublished, &report.incoming, &report.conflicts, &report.skipped];
    if report.unreachable.is_none() && lists.iter().all(|it| it.is_empty()) {
        ui.success("up to date");
    }
}

fn show_paths(what: &str, paths: &[PathNote], ui: &Ui) {
    let shown = if ui.is_verbose() { paths.len() } else { SHOWN_MAX };
    for PathNote { path, note } in paths.iter().take(shown) {
        ui.data(format!("{what} {path} ({note})"));
    }
    if paths.len() > shown {
        ui.data(format!("… and {} more (--verbose)", paths.len() - shown));
    }
}

fn show_problems(conflicts: &[PathNote], skipped: &[PathNote], url: &str, ui: &Ui) {
    for PathNote { path, note } in skipped {
        ui.warn(format!("{path} was left out: {note}"));
    }
    for PathNote { path, note } in conflicts {
        ui.warn(format!("conflict: {path} ({note})"));
    }
    if let Some(PathNote { path, .. }) = conflicts.first() {
        ui.note(format!(
            "hint: `memoird bundle pull {url}` saves the other versions in .memoird/quarantine; then `memoird bundle \
             push --mine {path}` or `memoird bundle pull --theirs {path}`"
        ));
    }
}

/// Adds what an error means for this root: what is not published while the store does not answer.
fn explain(error: BundleError, root: &MemoryRoot, url: &str) -> CommandError {
    let is_unreachable = matches!(
        &error,
        BundleError::Storage(it)
            if matches!(it.kind, StorageErrorKind::Unreachable | StorageErrorKind::Denied)
    );
    let error = CommandError::from(error);
    let is_known = BundleState::load(&root.vault, url).is_ok_and(|it| it.root.is_some());
    if is_unreachable && is_known {
        return error
            .hint(format!("`memoird bundle status {url}` lists what is not published yet"));
    }
    error
}

impl From<BundleError> for CommandError {
    fn from(error: BundleError) -> Self {
        let hint: Option<String> = match &error {
            BundleError::Storage(storage) => match storage.kind {
                StorageErrorKind::Address => {
                    Some("memoird bundle push s3://BUCKET/PATH".to_owned())
                }
                StorageErrorKind::Denied => Some(
                    "set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION, or run it where a role gives them"
                        .to_owned(),
                ),
                StorageErrorKind::Unreachable => Some(
                    "check the network, and AWS_ENDPOINT_URL for a server of your own; without AWS_ACCESS_KEY_ID the \
                     credentials come from the role of the machine"
                        .to_owned(),
                ),
                _ => None,
            },
            BundleError::LostRace { .. } => {
                Some("use a store with conditional writes, as Amazon S3 has them, or a folder".to_owned())
            }
            BundleError::KeepsVersions { .. } | BundleError::MayKeepVersions { .. } => Some(
                "turn versioning off, or give the bucket a lifecycle rule that removes former versions, then run \
                 `memoird bundle push --accept-versions`"
                    .to_owned(),
            ),
            BundleError::OtherRoot { .. } => Some(
                "use another address for this folder, or run `memoird bundle pull` in an empty folder".to_owned(),
            ),
            BundleError::OtherBundle { url, state, .. } => Some(format!(
                "`memoird bundle pull {url}` in an empty folder brings the new one; or remove `{state}` and pull here, \
                 which compares all files"
            )),
            BundleError::NotJoined { url, .. } => Some(format!(
                "to join both, `memoird bundle pull {url}`, look at the result, and push; else push to another address"
            )),
            BundleError::OtherTenant { .. } => Some(
                "publish it from its machine with `memoird bundle push --claims`, which names the tenant".to_owned(),
            ),
            BundleError::LeaseLost { .. } => {
                Some("another worker continues; give --lease more time if that happens often".to_owned())
            }
            BundleError::OlderManifest { .. } => {
                Some("publish to another address, where nothing is overwritten".to_owned())
            }
            BundleError::Newer { .. } => Some("use the newer memoird".to_owned()),
            BundleError::MassRemoval { .. } => {
                Some("if that is meant, run it again with --accept-missing".to_owned())
            }
            BundleError::Unfinished { .. } => Some("`memoird compact` finishes it".to_owned()),
            BundleError::Contended { .. } => Some("run the command again".to_owned()),
            BundleError::NoConflict { .. } => {
                Some("`memoird bundle status` lists the conflicts".to_owned())
            }
            BundleError::ForgottenElsewhere { path } => {
                Some(format!("memoird bundle pull --theirs {path}"))
            }
            BundleError::NoBundle { .. } => {
                Some("`memoird bundle push` publishes a memory folder there".to_owned())
            }
            BundleError::BadManifest { .. } | BundleError::BadObject { .. } => Some(
                "nothing was changed here; publish from a machine that has all files to another address".to_owned(),
            ),
            BundleError::Overlap { .. } => Some("name a folder elsewhere".to_owned()),
            BundleError::BadState { .. } => {
                Some("remove it, then `memoird bundle pull` compares all files".to_owned())
            }
            _ => None,
        };
        let kind = match &error {
            BundleError::Storage(storage) => match storage.kind {
                StorageErrorKind::Address => CommandErrorKind::Usage,
                StorageErrorKind::Changed => CommandErrorKind::Busy,
                StorageErrorKind::TooLarge => CommandErrorKind::Data,
                _ => CommandErrorKind::Unavailable,
            },
            BundleError::LostRace { .. }
            | BundleError::KeepsVersions { .. }
            | BundleError::MayKeepVersions { .. }
            | BundleError::OtherRoot { .. }
            | BundleError::OtherBundle { .. }
            | BundleError::NotJoined { .. }
            | BundleError::OtherTenant { .. }
            | BundleError::OtherMemoryDir { .. }
            | BundleError::Overlap { .. } => CommandErrorKind::Config,
            BundleError::NoBundle { .. } | BundleError::NoConflict { .. } => {
                CommandErrorKind::Usage
            }
            BundleError::Unfinished { .. }
            | BundleError::Contended { .. }
            | BundleError::LeaseLost { .. } => CommandErrorKind::Busy,
            BundleError::Io { .. } => CommandErrorKind::CannotWrite,
            _ => CommandErrorKind::Data,
        };
        match error {
            BundleError::Vault(error) => error.into(),
            BundleError::Lineage(error) => error.into(),
            BundleError::Lock(error) => error.into(),
            BundleError::Compaction(error) => error.into(),
            BundleError::Claims(error) => error.into(),
            error => Self::new(kind, error).hints_from(hint),
        }
    }
}
