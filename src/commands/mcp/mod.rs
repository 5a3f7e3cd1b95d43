//! `memoird mcp`: serves one memory folder to an agent over the Model Context Protocol, on stdio.
//!
//! The protocol itself is the official SDK's: the handshake of older clients and the stateless requests
//! of newer ones come in by the same door. Stdout belongs to it alone; all words of ours go to stderr.
//! What a tool says went through the door of what may be seen, as with every verb: the tools call the
//! verbs beside this folder and add nothing to what they show.
//!
//! - [`server`]: answers requests; takes a bounded number of them at once.
//! - [`tools`]: the tools, their words and types, as compile-time constants.
//! - [`take`]: what a tool is given; [`give`]: what it answers.
//! - [`desk`]: opens the folder for a request, writes to it, and says how it stands.
//! - [`reading`], [`memories`], [`records`]: what is read of it.
//! - [`pipe`]: tells when nobody reads.
//! - [`page`]: no answer is larger than a page.
//! - [`resources`], [`prompts`]: the files, and what to say at the start and the end of a session.
//! - [`watch`]: notices that files changed.
//! - [`setup`]: what an agent's program has to be told.

mod desk;
mod give;
mod memories;
mod page;
mod pipe;
mod prompts;
mod reading;
mod records;
mod resources;
mod server;
mod setup;
mod take;
mod tools;
mod watch;

use std::{path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use rmcp::{
    service::ServerInitializeError,
    transport::{
        async_rw::AsyncRwTransport,
        io::{StdioReader, StdioWriter, stdio_pipes},
    },
};

use tokio::sync::Notify;

use self::{desk::Desk, pipe::Told, server::Server};
use super::{
    GlobalArgs,
    context::Call,
    error::{CommandError, Kind},
    run::hide_panic_texts,
    ui::Ui,
};

/// The longest message that is read. A session record may be imported whole; what is longer is dropped
/// while it is read, and the next line is answered again.
const MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Serve the memory folder to an agent over MCP (its program calls this)
///
/// Speaks the Model Context Protocol on stdin and stdout, until stdin ends. Agents may read and log;
/// what changes files is off until it is allowed.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Let the agent correct items and import records, too [default: what `mcp.write` says]
    #[arg(long)]
    allow_write: bool,
    /// Print what to enter in the settings of an agent's program, and serve nothing
    #[arg(long, value_enum, value_name = "PROGRAM")]
    print_config: Option<setup::Program>,
}

pub(super) fn run(global: &GlobalArgs, args: &Args, ui: &Ui) -> Result<ExitCode, CommandError> {
    if let Some(program) = args.print_config {
        setup::print(program, global, args.allow_write, ui)?;
        return Ok(ExitCode::SUCCESS);
    }
    let call = Call::read(global)?;
    let root = call.root(global)?;
    root.refuse_stranger()?;
    hide_panic_texts();
    let path: PathBuf = root.vault.layout().root().to_owned();
    let writes = args.allow_write || root.settings.settings.mcp.write;
    let server = Server::new(Desk::new(global.clone(), path, writes));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(16)
        .enable_all()
        .build()
        .map_err(|e| CommandError::new(Kind::CannotWrite, e))?;
    let done = runtime.block_on(serve(server));
    // A read of stdin that is under way cannot be taken back; nothing waits for it.
    runtime.shutdown_background();
    done?;
    Ok(ExitCode::SUCCESS)
}

/// Answers until the other side has closed.
async fn serve(server: Server) -> Result<(), CommandError> {
    let closed = Arc::new(Notify::new());
    let (input, output): (StdioReader, StdioWriter) = stdio_pipes();
    let transport = AsyncRwTransport::new_server(input, Told::new(output, Arc::clone(&closed)));
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
            Err(CommandError::new(Kind::Data, what).hint(
                "`memoird mcp` is for an agent's program: memoird mcp --print-config claude-code",
            ))
        }
    }
}
