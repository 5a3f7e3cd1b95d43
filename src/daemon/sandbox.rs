//! The sandbox: after start the daemon can write only to its own folders, read nothing else of a home,
//! and connect only to its model.
//!
//! The kernel enforces this (Landlock), with or without systemd, whatever a log or a model's reply
//! makes the process do. Rules cannot be widened later, and they bind to the folders themselves, not to
//! their names. A folder that is added or replaced later is therefore served by a restart.
//!
//! A program that the daemon starts is bound by the same rules and needs more: if one is configured,
//! only writing outside the home is forbidden.

use std::{
    collections::BTreeSet,
    fs::DirBuilder,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, NetPort, Ruleset,
    RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope,
    path_beneath_rules,
};

use super::{
    folder_snapshot::{self, FolderId},
    runtime_config::RuntimeConfig,
};
use crate::{
    config::{root::RootSettings, settings::EngineKind},
    model::{client::endpoint::ProviderEndpoint, connect, embedding::EmbeddingInput},
    store::fs::vault::Vault,
};

/// The requested rules; an older kernel enforces those that it supports.
const LANDLOCK_ABI: ABI = ABI::V6;

/// What every program reads: libraries, time zones, certificates, host names.
const SYSTEM_PATHS: [&str; 14] = [
    "/usr",
    "/lib",
    "/lib64",
    "/bin",
    "/sbin",
    "/etc",
    "/opt",
    "/nix/store",
    "/gnu/store",
    "/proc",
    "/sys",
    "/dev",
    "/run",
    "/var/lib/ca-certificates",
];

/// DNS over TCP, for long answers.
const DNS_PORT: u16 = 53;

/// What is allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SandboxLimits {
    /// Paths that may be written and read.
    pub writable: Vec<PathBuf>,
    /// Paths that may be read.
    pub readable: Vec<PathBuf>,
    /// Ports that may be connected to; `None` for any.
    pub ports: Option<BTreeSet<u16>>,
    /// Why more is allowed than the daemon itself needs.
    pub relaxed_reason: Option<String>,
}

/// How much of the sandbox is enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SandboxStatus {
    /// All rules.
    Full,
    /// The rules that this kernel supports.
    Partial,
    /// None: this kernel has no Landlock.
    Unsupported,
}

/// The folders that the rules were created for; `None` without a sandbox.
#[derive(Clone, Debug, Default)]
pub(super) struct SandboxedFolders(Option<BTreeSet<FolderId>>);

/// Enters the sandbox, as far as the kernel supports it.
pub(super) fn enter(loaded: &RuntimeConfig) -> SandboxedFolders {
    let limits = SandboxLimits::of(loaded);
    // A folder that is created later would be outside.
    let state = loaded.environment.ledger_path();
    if let Some(folder) = state.parent()
        && let Err(error) = DirBuilder::new().recursive(true).mode(0o700).create(folder)
    {
        tracing::warn!("{}: {error}", folder.display());
    }
    match limits.enter() {
        Ok(SandboxStatus::Unsupported) => {
            tracing::info!("no sandbox: this kernel has no Landlock");
            SandboxedFolders::default()
        }
        Ok(held) => {
            let partly =
                if held == SandboxStatus::Partial { ", as far as this kernel can" } else { "" };
            let why = limits.relaxed_reason.as_deref();
            let why = why.map(|it| format!(" (relaxed: {it})")).unwrap_or_default();
            tracing::info!("sandboxed to the memory folders{partly}{why}");
            SandboxedFolders::of(&limits)
        }
        Err(error) => {
            tracing::warn!("no sandbox: {error}");
            SandboxedFolders::default()
        }
    }
}

impl SandboxLimits {
    /// Returns what the daemon needs with this configuration.
    pub fn of(loaded: &RuntimeConfig) -> Self {
        let RuntimeConfig { environment: around, config, roots } = loaded;
        let ledger = around.ledger_path();
        let state = ledger.parent().unwrap_or(&ledger).to_path_buf();
        let mut writable: Vec<PathBuf> = roots.clone();
        // Projects that appear later are below this folder.
        writable.extend(config.projects_dir(around).filter(|it| it.is_dir()));
        // SQLite sorts there what does not fit into memory.
        writable.extend([state, std::env::temp_dir(), "/var/tmp".into()]);
        // The file is replaced by renaming, so its folder must be writable.
        writable.extend(loaded.metrics_file().and_then(|it| Some(it.parent()?.to_owned())));
        writable.extend(config.recording_file(around).and_then(|it| Some(it.parent()?.to_owned())));
        let mut readable: Vec<PathBuf> = SYSTEM_PATHS.iter().map(PathBuf::from).collect();
        readable.push(around.config_folder());
        readable.extend(std::env::current_exe());
        let file = config.file.as_deref();
        readable.extend(file.map(Path::to_path_buf));
        readable.extend(file.and_then(|it| it.canonicalize().ok()));
        readable.extend(around.variable("CREDENTIALS_DIRECTORY").map(PathBuf::from));
        // A test sets the clock through this file.
        let clock = std::env::var("MEMOIRD_NOW").unwrap_or_default();
        readable.extend(
            clock.strip_prefix('@').and_then(|it| Some(Path::new(it).parent()?.to_owned())),
        );
        let mut limits =
            Self { writable, readable, ports: Some(BTreeSet::new()), relaxed_reason: None };
        for root in roots {
            if let Ok(settings) = loaded.settings_of(root) {
                limits.add_model(loaded, &settings);
            }
        }
        if config.settings.on_problem.is_some() {
            limits.relax(loaded, "`on_problem` starts your program");
        }
        limits
    }

    fn add_model(&mut self, loaded: &RuntimeConfig, settings: &RootSettings) {
        let RuntimeConfig { environment: around, config, .. } = loaded;
        let Ok(vault) = Vault::for_root(settings) else { return };
        self.add_embedding_server(loaded, settings);
        if settings.settings.engine != EngineKind::Model {
            return;
        }
        let key = settings.settings.model.key_file.as_ref();
        self.readable.extend(key.map(|it| around.absolute(Path::new(it), &around.cwd)));
        let Ok(door) = connect::client(config, settings, around, vault, Duration::ZERO) else {
            return;
        };
        if matches!(door.endpoint(), ProviderEndpoint::Command(_)) {
            self.relax(loaded, "the model is your program");
        }
        self.add_server(door.endpoint().server());
    }

    fn add_embedding_server(&mut self, loaded: &RuntimeConfig, settings: &RootSettings) {
        let RuntimeConfig { environment: around, config, .. } = loaded;
        let Some(embeddings) = &settings.settings.search.embeddings else { return };
        let key = embeddings.key_file.as_ref().or(settings.settings.model.key_file.as_ref());
        self.readable.extend(key.map(|it| around.absolute(Path::new(it), &around.cwd)));
        if let Ok(Some(embedder)) =
            connect::embedding_client(config, settings, around, EmbeddingInput::Line)
        {
            self.add_server(embedder.client().endpoint().server());
        }
    }

    fn add_server(&mut self, server: &str) {
        let proxied =
            ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "https_proxy", "http_proxy", "all_proxy"];
        match (&mut self.ports, port_of(server)) {
            _ if proxied.iter().any(|it| std::env::var_os(it).is_some()) => self.ports = None,
            (Some(ports), Some(port)) => ports.extend([port, DNS_PORT]),
            _ => {}
        }
    }

    fn relax(&mut self, loaded: &RuntimeConfig, why: &str) {
        self.relaxed_reason = Some(why.to_owned());
        self.writable.push(loaded.environment.home.clone());
        self.readable.push("/".into());
        self.ports = None;
    }

    /// Applies the rules to this thread and those that it starts, permanently.
    ///
    /// # Errors
    ///
    /// Returns why a kernel with Landlock refuses.
    pub fn enter(&self) -> Result<SandboxStatus, RulesetError> {
        let all = AccessFs::from_all(LANDLOCK_ABI);
        let mut rules = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(all)?
            .scope(Scope::from_all(LANDLOCK_ABI))?;
        if self.ports.is_some() {
            rules = rules.handle_access(AccessNet::from_all(LANDLOCK_ABI))?;
        }
        let mut rules = rules
            .create()?
            .add_rules(path_beneath_rules(&self.readable, AccessFs::from_read(LANDLOCK_ABI)))?
            .add_rules(path_beneath_rules(["/dev/null"], all))?
            .add_rules(path_beneath_rules(&self.writable, all))?;
        for port in self.ports.iter().flatten() {
            rules = rules.add_rule(NetPort::new(*port, AccessNet::ConnectTcp))?;
        }
        Ok(match rules.restrict_self()?.ruleset {
            RulesetStatus::FullyEnforced => SandboxStatus::Full,
            RulesetStatus::PartiallyEnforced => SandboxStatus::Partial,
            RulesetStatus::NotEnforced => SandboxStatus::Unsupported,
        })
    }
}

impl SandboxedFolders {
    /// Records the folders that the rules were created for.
    pub(super) fn of(limits: &SandboxLimits) -> Self {
        Self(Some(limits.writable.iter().filter_map(|it| folder_snapshot::folder_id(it)).collect()))
    }

    /// Returns whether a folder exists at this path that the rules do not let us write to.
    pub(super) fn excludes(&self, root: &Path) -> bool {
        let Some(known) = &self.0 else { return false };
        // Rules include everything below a folder.
        let mut ids = root.ancestors().filter_map(folder_snapshot::folder_id);
        folder_snapshot::folder_id(root).is_some() && !ids.any(|it| known.contains(&it))
    }
}

/// Returns the port of an address, or the default of its scheme.
pub(crate) fn port_of(address: &str) -> Option<u16> {
    let (scheme, rest) = address.split_once("://")?;
    let authority = rest.split('/').next()?;
    let after_host = authority.rsplit_once(']').map_or(authority, |it| it.1);
    match after_host.rsplit_once(':') {
        Some((_, port)) => port.parse().ok(),
        None => Some(if scheme == "http" { 80 } else { 443 }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_its_port() {
        let ports = [
            "https://api.example/v1",
            "http://127.0.0.1:11434/v1",
            "http://[::1]:8080",
            "http://[::1]/x",
            "claude",
        ]
        .map(port_of);
        assert_eq!(ports, [Some(443), Some(11434), Some(8080), Some(80), None]);
    }

    #[test]
    fn a_replaced_folder_is_outside_the_sandbox() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        std::fs::create_dir(&root).unwrap();
        assert!(!SandboxedFolders::default().excludes(&root));
        let limits = SandboxLimits { writable: vec![root.clone()], ..SandboxLimits::default() };
        let confined = SandboxedFolders::of(&limits);
        assert!(!confined.excludes(&root));
        std::fs::rename(&root, dir.path().join("old")).unwrap();
        assert!(!confined.excludes(&root), "no folder exists");
        std::fs::create_dir(&root).unwrap();
        assert!(confined.excludes(&root));
    }
}
