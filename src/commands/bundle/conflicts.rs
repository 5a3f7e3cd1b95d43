//! Files in conflict with a store, as entries of the review queue.

use std::collections::{BTreeMap, BTreeSet};

use super::{explain, with_progress};
use crate::{
    commands::ui::Ui,
    fleet::{
        pull::{self, PullRequest},
        push::{self, PushRequest},
        state::BundleState,
    },
    memory::hash::ContentHash,
    operations::{
        error::{CommandError, CommandErrorKind, CommandResult},
        review::queue::ReviewEntry,
        workspace::{Invocation, MemoryRoot},
    },
    recall::search,
};

/// The beginning of the id of a conflict in the review queue.
const CONFLICT_ID: &str = "conflict-";

/// A file of which a pull saved another version, until a person decides.
struct OpenConflict {
    url: String,
    path: String,
    copy: Option<String>,
}

impl OpenConflict {
    fn id(&self) -> String {
        let hash = ContentHash::of(format!("{}\n{}", self.url, self.path)).hex16();
        format!("{CONFLICT_ID}{}", &hash[..8])
    }

    fn entry(&self, verdict: Option<&'static str>) -> ReviewEntry {
        let text = match &self.copy {
            Some(copy) => format!("the version of the store: {copy}"),
            None => "removed from the store".to_owned(),
        };
        ReviewEntry {
            id: self.id(),
            what: "conflict",
            why: vec![format!("changed here and in {}", self.url)],
            text,
            path: self.path.clone(),
            verdict,
            ..ReviewEntry::default()
        }
    }
}

/// Returns the files in conflict. `bundle status` reports a state that cannot be read.
fn open_conflicts(root: &MemoryRoot) -> Vec<OpenConflict> {
    let mut conflicts = Vec::new();
    for state in BundleState::load_all(&root.vault).unwrap_or_default() {
        let (url, of_store) = (state.url, state.conflicts);
        conflicts.extend(of_store.into_iter().map(|(path, it)| OpenConflict {
            url: url.clone(),
            path,
            copy: it.copy,
        }));
    }
    conflicts
}

/// Returns the files in conflict as entries of the review queue.
pub(in crate::commands) fn conflict_entries(root: &MemoryRoot) -> Vec<ReviewEntry> {
    open_conflicts(root).iter().map(|it| it.entry(None)).collect()
}

/// Returns whether an id of the review queue is that of a conflict.
pub(in crate::commands) fn is_conflict_id(id: &str) -> bool {
    id.starts_with(CONFLICT_ID)
}

/// Settles conflicts: the version of the store is brought, or one's own is published.
pub(in crate::commands) fn settle_conflicts(
    call: &Invocation,
    root: &MemoryRoot,
    ids: &[String],
    takes_theirs: bool,
    ui: &Ui,
) -> CommandResult<Vec<ReviewEntry>> {
    let open = open_conflicts(root);
    let find = |id: &String| {
        open.iter().find(|it| it.id() == *id).ok_or_else(|| {
            CommandError::usage(format!("the review queue has no `{id}`"))
                .hint("memoird review list")
        })
    };
    let named = ids.iter().map(find).collect::<CommandResult<Vec<&OpenConflict>>>()?;
    let mut of_stores: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for it in &named {
        of_stores.entry(&it.url).or_default().insert(it.path.clone());
    }
    for (url, paths) in of_stores {
        let bundle = root.bundle_root(call);
        let settled = with_progress(ui, |show| {
            if takes_theirs {
                let request = PullRequest { theirs: paths, ..PullRequest::default() };
                pull::pull(&bundle, url, &request, show).map(|it| it.conflicts)
            } else {
                let request = PushRequest {
                    mine: paths,
                    state_home: Some(call.environment.state_home.clone()),
                    ..PushRequest::default()
                };
                push::push(&bundle, url, &request, show).map(|it| it.conflicts)
            }
        });
        let left = settled.map_err(|error| explain(error, root, url))?;
        if let Some(path) = left.iter().find(|it| named.iter().any(|of| of.path == it.path)) {
            return Err(CommandError::new(
                CommandErrorKind::Job,
                format!("{} is still in conflict: {}", path.path, path.note),
            )
            .hint("memoird review list"));
        }
        if takes_theirs {
            // If this fails, the next search indexes the files or reports the error.
            drop(search::refresh_index(&root.vault));
        }
    }
    let verdict = if takes_theirs { "accepted" } else { "refused" };
    Ok(named.iter().map(|it| it.entry(Some(verdict))).collect())
}
