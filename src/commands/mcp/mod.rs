//! `memoird mcp`: serves one memory folder to an agent over the Model Context Protocol, on stdio.
//!
//! The official SDK implements the protocol, both the handshake of older clients and the stateless
//! requests of newer ones. Stdout belongs to the protocol; our messages go to stderr. The tools call
//! the same functions as the verbs, so what they return is sanitized in the same way.
//!
//! - [`server`]: answers requests, a bounded number at once.
//! - [`tools`]: the tools with their descriptions and schemas, constant in the program.
//! - [`requests`]: the tools' arguments; [`responses`]: their results.
//! - [`service`]: opens the folder for a request, writes to it, and reports its status.
//! - [`reads`], [`memories`], [`records`]: what the tools read.
//! - [`transport`]: detects a closed connection.
//! - [`page_limit`]: limits the size of a response.
//! - [`resources`], [`prompts`]: the files, and the prompts for the start and end of a session.
//! - [`file_watch`]: detects changed files.
//! - [`client_config`]: the settings that an agent's program needs.

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
use super::{GlobalArgs, run::hide_panic_messages, ui::Ui};
use crate::operations::{
    error::{CommandError, CommandResult},
    workspace::Invocation,
};

/// The longest message that is read, so that a whole session record can be imported. A longer message
/// is dropped while it is read, and the next line is answered again.
const MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Serve the memory folder to an agent over MCP (its program calls this)
///
/// Speaks the Model Context Protocol on stdin and stdout until stdin ends. Agents may read and log;
/// changing files must be allowed.
#[derive(Debug, clap::Args)]
pub(super) struct McpArgs {
    /// Also let the agent correct items and import records [default: the value of `mcp.write`]
    #[arg(long)]
    allow_write: bool,
    /// Print the settings for an agent's program, and serve nothing
    #[arg(long, value_enum, value_name = "PROGRAM")]
    print_config: Option<client_config::McpClient>,
}

pub(super) fn run(global: &GlobalArgs, args: &McpArgs, ui: &Ui) -> CommandResult {
    if let Some(program) = args.print_config {
        client_config::print_config(program, global, args.allow_write, ui)?;
        return Ok(ExitCode::SUCCESS);
    }
    let (_, root) = Invocation::with_root(global)?;
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
        .map_err(CommandError::cannot_write)?;
    let done = runtime.block_on(serve(server));
    // A pending read of stdin cannot be cancelled, so the runtime does not wait for it.
    runtime.shutdown_background();
    done?;
    Ok(ExitCode::SUCCESS)
}

/// Answers requests until the client closes the connection.
async fn serve(server: McpServer) -> CommandResult<()> {
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
        // The client has closed the connection.
        () = closed.notified() => Ok(()),
    };
    match ended {
        // A client that closes before its first request wants nothing.
        Ok(()) | Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        // The same if it closes during the handshake; the two are seen in either order.
        Err(_) if tokio::time::timeout(Duration::ZERO, closed.notified()).await.is_ok() => Ok(()),
        Err(error) => {
            let what = format!("MCP handshake failed: {error}");
            Err(CommandError::data(what).hint(
                "`memoird mcp` is for an agent's program: memoird mcp --print-config claude-code",
            ))
        }
    }
}
