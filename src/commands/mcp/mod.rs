//! `memoird mcp`: serves one memory folder to an agent over the Model Context Protocol, on stdio.
//!
//! The protocol itself is the official SDK's: the handshake of older clients and the stateless requests
//! of newer ones come in by the same door. Stdout belongs to it alone; all words of ours go to stderr.
//! What a tool says went through the door of what may be seen, as with every verb: the tools call the
//! verbs beside this folder and add nothing to what they show.
//!
//! - [`server`]: answers requests; takes a bounded number of them at once.
//! - [`tools`]: the tools, their words and types, as compile-time constants.
//! - [`requests`]: what a tool is given; [`responses`]: what it answers.
//! - [`service`]: opens the folder for a request, writes to it, and says how it stands.
//! - [`reads`], [`memories`], [`records`]: what is read of it.
//! - [`transport`]: tells when nobody reads.
//! - [`page_limit`]: no answer is larger than a page.
//! - [`resources`], [`prompts`]: the files, and what to say at the start and the end of a session.
//! - [`file_watch`]: notices that files changed.
//! - [`client_config`]: what an agent's program has to be told.

mod client_config;
mod file_watch;
mod memories;
mod page_limit;
mod prompts;
mod reads;
mod records;
mod requests;
mod resources;
mod responses;
mod server;
mod service;
mod tools;
mod transport;

use std::{path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use rmcp::{
    service::ServerInitializeError,
    transport::{
        async_rw::AsyncRwTransport,
        io::{StdioReader, StdioWriter, stdio_pipes},
    },
};

use tokio::sync::Notify;

use self::{server::McpServer, service::McpService, transport::CloseNotifyingWriter};
use super::{
    GlobalArgs,
    error::{CommandError, CommandErrorKind},
    run::hide_panic_messages,
    ui::Ui,
    workspace::Invocation,
};

/// The longest message that is read. A session record may be imported whole; what is longer is dropped
/// while it is read, and the next line is answered again.
const MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Serve the memory folder to an agent over MCP (its program calls this)
///
/// Speaks the Model Context Protocol on stdin and stdout, until stdin ends. Agents may read and log;
/// what changes files is off until it is allowed.
#[derive(Debug, clap::Args)]
pub(super) struct McpArgs {
    /// Let the agent correct items and import records, too [default: what `mcp.write` says]
    #[arg(long)]
    allow_write: bool,
    /// Print what to enter in the settings of an agent's program, and serve nothing
    #[arg(long, value_enum, value_name = "PROGRAM")]
    print_config: Option<client_config::McpClient>,
}

pub(super) fn run(global: &GlobalArgs, args: &McpArgs, ui: &Ui) -> Result<ExitCode, CommandError> {
    if let Some(program) = args.print_config {
        client_config::print_config(program, global, args.allow_write, ui)?;
        return Ok(ExitCode::SUCCESS);
    }
    let call = Invocation::load(global)?;
    let root = call.selected_root(global)?;
    root.require_memory_folder()?;
    hide_panic_messages();
    let path: PathBuf = root.vault.layout().root().to_owned();
    let writes = args.allow_write || root.settings.settings.mcp.write;
    let server = McpServer::new(McpService::new(global.clone(), path, writes));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(16)
        .enable_all()
        .build()
        .map_err(|e| CommandError::new(CommandErrorKind::CannotWrite, e))?;
    let done = runtime.block_on(serve(server));
    // A read of stdin that is under way cannot be taken back; nothing waits for it.
    runtime.shutdown_background();
    done?;
    Ok(ExitCode::SUCCESS)
}

/// Answers until the other side has closed.
async fn serve(server: McpServer) -> Result<(), CommandError> {
    let closed = Arc::new(Notify::new());
    let (input, output): (StdioReader, StdioWriter) = stdio_pipes();
    let transport =
        AsyncRwTransport::new_server(input, CloseNotifyingWriter::new(output, Arc::clone(&closed)));
    let transport = transport.with_max_line_length(MESSAGE_BYTES_MAX);
    let session = async {
        let running = rmcp::serve_server(server, transport).await?;
        drop(running.waiting().await);
        Ok(())
    };
    let ended = tokio::select! {
        ended = session => ended,
        // Nobody reads what is answered.
        () = closed.notified() => Ok(()),
    };
    match ended {
        // Who closes before it has said anything wants nothing.
        Ok(()) | Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        // Nor who closed before it was greeted: the two may be noticed in either order.
        Err(_) if tokio::time::timeout(Duration::ZERO, closed.notified()).await.is_ok() => Ok(()),
        Err(error) => {
            let what = format!("no session came about: {error}");
            Err(CommandError::new(CommandErrorKind::Data, what).hint(
                "`memoird mcp` is for an agent's program: memoird mcp --print-config claude-code",
            ))
        }
    }
}
