//! Listens on 127.0.0.1 and answers one browser.
//!
//! Two tasks share the [`PageServer`]: the server, which answers each request on a thread for blocking work, and the
//! timer of idleness. The server ends with the first of: an interrupt, an hour without a request and without a
//! compaction that a page started. Event streams end with it, and do not keep it alive.

use std::{
    future::pending,
    net::{Ipv4Addr, TcpListener},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::{
    body::{Body, Bytes},
    extract::Request,
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use maud::Markup;
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep},
};

use super::{
    actions::{self, ActionResult},
    address::PageAddress,
    assets, connections,
    context::{Fields, FolderChoice, LinkStyle, PageContext, SharedFolder},
    guard::{self, GuardError, SessionGuard},
    layout,
    page_compaction::{PageCompaction, RunningCompaction},
    pages, progress,
};
use crate::operations::{
    compact::compact_all,
    error::{CommandError, CommandErrorKind, CommandResult},
    page::{PageLink, PageRequest, WhenReady},
    run_reporter::LogReporter,
    workspace::{ConfigOverrides, Invocation},
};

/// The server ends after this time without a request.
const IDLE_MAX: Duration = Duration::from_secs(60 * 60);
/// A form is a few fields and one text.
const FORM_BYTES_MAX: usize = 256 * 1024;
/// How many pages are made at once; others wait.
const PAGES_AT_ONCE_MAX: usize = 4;
/// How many tabs can show the progress of a run at once.
const STREAMS_MAX: usize = 32;

/// What all requests share.
pub(super) struct PageServer {
    guard: SessionGuard,
    pub(super) overrides: ConfigOverrides,
    paths: Arc<[PathBuf]>,
    read_only: bool,
    /// One for each folder.
    shared: Vec<Arc<SharedFolder>>,
    activity: Activity,
    pages: Arc<Semaphore>,
    pub(super) streams: Arc<Semaphore>,
}

/// When the last request came.
struct Activity {
    start: Instant,
    /// Milliseconds after `start`.
    last: AtomicU64,
}

/// Serves the page until an interrupt, or until nobody asked for an hour.
pub(super) fn serve(request: &PageRequest, ready: WhenReady<'_>) -> CommandResult<()> {
    let wanted = request.port.unwrap_or(0);
    let cannot_listen = |e: std::io::Error| {
        let error = CommandError::new(
            CommandErrorKind::Busy,
            format!("cannot listen on 127.0.0.1, port {wanted}: {e}"),
        );
        error.hint("memoird open")
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, wanted)).map_err(cannot_listen)?;
    listener.set_nonblocking(true).map_err(cannot_listen)?;
    let port = listener.local_addr().map_err(cannot_listen)?.port();
    let (guard, token) = SessionGuard::new(port).map_err(CommandError::data)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(PAGES_AT_ONCE_MAX + request.roots.len() + 4)
        .enable_all()
        .build()
        .map_err(cannot_listen)?;
    let outcome = runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let server = Arc::new(PageServer {
            guard,
            overrides: request.overrides.clone(),
            paths: request.roots.clone().into(),
            read_only: request.read_only,
            shared: request.roots.iter().map(|_| Arc::default()).collect(),
            activity: Activity::new(),
            pages: Arc::new(Semaphore::new(PAGES_AT_ONCE_MAX)),
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
        });
        let url = format!("http://127.0.0.1:{port}{}/?token={token}", server.guard.base());
        ready(&PageLink { url, port, read_only: request.read_only });
        let answering = Arc::clone(&server);
        let respond = move |request: Request| answer(Arc::clone(&answering), request);
        tokio::select! {
            never = connections::answer_all(listener, respond) => match never {},
            () = server.idle() => {}
            () = interrupted() => {}
        }
        Ok::<_, std::io::Error>(())
    });
    // Pages that are being made are not waited for: nobody reads them.
    runtime.shutdown_background();
    outcome.map_err(cannot_listen)
}

/// Returns when the process is asked to end.
async fn interrupted() {
    use tokio::signal::unix::{SignalKind, signal};
    let mut ended = signal(SignalKind::terminate()).ok();
    let terminated = async {
        match &mut ended {
            Some(signal) => signal.recv().await,
            None => pending().await,
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminated => {}
    }
}

impl Activity {
    fn new() -> Self {
        Self { start: Instant::now(), last: AtomicU64::new(0) }
    }

    fn touch(&self) {
        let elapsed = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.store(elapsed, Ordering::Relaxed);
    }

    /// Returns when there was no request for `span`.
    async fn idle_for(&self, span: Duration) {
        loop {
            let last = self.start + Duration::from_millis(self.last.load(Ordering::Relaxed));
            let left = span.saturating_sub(last.elapsed());
            if left.is_zero() {
                return;
            }
            sleep(left).await;
        }
    }
}

async fn answer(server: Arc<PageServer>, request: Request) -> Response {
    let mut response = server.respond(request).await;
    guard::harden(response.headers_mut());
    response
}

impl PageServer {
    async fn respond(self: Arc<Self>, request: Request) -> Response {
        let (head, body) = request.into_parts();
        if let Err(refused) = self.guard.check_host(&head.headers) {
            return outside(StatusCode::FORBIDDEN, &refused.to_string());
        }
        let Some(path) = self.guard.path_below(head.uri.path()) else {
            return outside(StatusCode::NOT_FOUND, NO_PAGE);
        };
        let is_read = matches!(head.method, Method::GET | Method::HEAD);
        if let Some(name) = path.strip_prefix("/assets/").filter(|_| is_read) {
            return assets::find(name).map_or_else(|| self.not_found(), asset);
        }
        let fields = Fields::parse(head.uri.query().unwrap_or_default().as_bytes());
        let is_link = path == "/" && head.method == Method::GET;
        if let Some(token) = fields.get("token").filter(|_| is_link) {
            return self.enter(token, &head.headers);
        }
        if let Err(refused) = self.guard.check_session(&head.headers) {
            return self.refusal(refused);
        }
        self.activity.touch();
        if is_read {
            return self.read(path, fields).await;
        }
        if head.method != Method::POST {
            return self.text_page(
                StatusCode::METHOD_NOT_ALLOWED,
                "Not possible",
                "pages are read or sent",
            );
        }
        if self.read_only {
            let why = "the page was opened with --read-only, so nothing can be changed";
            return self.text_page(StatusCode::FORBIDDEN, "Not changed", why);
        }
        if let Err(refused) = self.guard.check_origin(&head.headers) {
            return self.refusal(refused);
        }
        let Ok(body) = axum::body::to_bytes(body, FORM_BYTES_MAX).await else {
            let why = "the form is longer than 256 KiB";
            return self.text_page(StatusCode::PAYLOAD_TOO_LARGE, "Not changed", why);
        };
        self.write(path, &body).await
    }

    /// Exchanges the token of the link for a cookie, and leads to a URL without it. A page leads there, because a
    /// browser that comes from elsewhere would follow a redirect without the cookie.
    fn enter(&self, token: &str, headers: &HeaderMap) -> Response {
        let cookie = match self.guard.exchange(token) {
            Ok(cookie) => Some(cookie),
            // The same browser reloaded the first page.
            Err(_) if self.guard.check_session(headers).is_ok() => None,
            Err(refused) => return self.refusal(refused),
        };
        self.activity.touch();
        let base = self.guard.base();
        let first = format!("{base}/r/0/");
        let mut response = html(StatusCode::OK, layout::forward_page(base, &first));
        if let Some(cookie) = cookie.and_then(|it| HeaderValue::try_from(it).ok()) {
            response.headers_mut().insert(header::SET_COOKIE, cookie);
        }
        response
    }

    async fn read(self: Arc<Self>, path: &str, fields: Fields) -> Response {
        if path == "/" {
            return self.redirect(&format!("{}/r/0/", self.guard.base()));
        }
        if let Some(index) = path.strip_prefix("/events/").and_then(|it| it.parse().ok()) {
            return match self.folder(index) {
                Some(folder) => progress::stream(&self, folder),
                None => self.not_found(),
            };
        }
        let Some((folder, address)) = self.target(path) else { return self.not_found() };
        self.blocking(move |server| {
            let context = match server.context(folder) {
                Ok(context) => context,
                Err(error) => return server.failure(&error),
            };
            match pages::render(&context, &address, &fields) {
                Ok(shown) => html(StatusCode::OK, layout::page(&context, &address, &shown)),
                Err(error) => error_page(&context, &address, &error),
            }
        })
        .await
    }

    async fn write(self: Arc<Self>, path: &str, body: &Bytes) -> Response {
        let fields = Fields::parse(body);
        if let Err(refused) = self.guard.check_form(fields.get("csrf")) {
            return self.refusal(refused);
        }
        let Some((folder, address)) = self.target(path) else { return self.not_found() };
        self.blocking(move |server| {
            let context = match server.context(folder.clone()) {
                Ok(context) => context,
                Err(error) => return server.failure(&error),
            };
            match actions::apply(&context, &address, &fields) {
                Ok(ActionResult::GoTo(page, query)) => {
                    let url = context.href(&page).unwrap_or_default();
                    server.redirect(&format!("{url}{query}"))
                }
                Ok(ActionResult::Show(shown)) => {
                    html(StatusCode::OK, layout::page(&context, &address, &shown))
                }
                Ok(ActionResult::Compact(begun)) => {
                    let url = context.href(&PageAddress::Runs).unwrap_or_default();
                    let url = format!("{url}?started={}", begun.number);
                    server.compact(folder, begun);
                    server.redirect(&url)
                }
                Err(error) => error_page(&context, &address, &error),
            }
        })
        .await
    }

    /// Reads files and databases on a thread of its own, a few pages at a time.
    async fn blocking(
        self: Arc<Self>,
        work: impl FnOnce(&Self) -> Response + Send + 'static,
    ) -> Response {
        let Ok(permit) = Arc::clone(&self.pages).acquire_owned().await else {
            return self.unavailable();
        };
        let server = Arc::clone(&self);
        let work = move || {
            let response = work(&server);
            // The work goes on when the browser has left, and counts until it ends.
            drop(permit);
            response
        };
        // A panic in one page is an answer, and does not end the server.
        tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| self.unavailable())
    }

    fn context(&self, folder: FolderChoice) -> CommandResult<PageContext> {
        let shared = self.shared_folder(&folder);
        let csrf = (!self.read_only).then(|| self.guard.csrf().to_owned());
        let links = LinkStyle::Server(self.guard.base().into());
        PageContext::open(&self.overrides, folder, links, csrf, shared)
    }

    fn shared_folder(&self, folder: &FolderChoice) -> Arc<SharedFolder> {
        self.shared.get(folder.index).cloned().unwrap_or_default()
    }

    /// Returns the compaction that the page of a folder started.
    pub(super) fn compaction(&self, folder: &FolderChoice) -> Arc<PageCompaction> {
        Arc::clone(&self.shared_folder(folder).compaction)
    }

    /// Compacts a folder on a thread of its own, and returns at once.
    fn compact(&self, folder: FolderChoice, begun: RunningCompaction) {
        let overrides = self.overrides.clone();
        let run = move || {
            let call = Invocation::read(&overrides)?;
            let path = folder.paths.get(folder.index);
            let path = path.ok_or_else(|| CommandError::usage("there is no such memory folder"))?;
            Ok(compact_all(&call, &call.open_root(path)?, &LogReporter)?.report.failed)
        };
        // Detached: the page of runs asks for the result, and a panic counts as a failure.
        drop(tokio::task::spawn_blocking(move || begun.finish(run())));
    }

    /// Returns when there was no request for [`IDLE_MAX`] and nothing runs.
    async fn idle(&self) {
        loop {
            self.activity.idle_for(IDLE_MAX).await;
            if !self.shared.iter().any(|it| it.compaction.is_running()) {
                return;
            }
            self.activity.touch();
        }
    }

    /// Returns the folder and the page of a path: `/r/0/period/2026-W14`.
    fn target(&self, path: &str) -> Option<(FolderChoice, PageAddress)> {
        let (index, page) = path.strip_prefix("/r/")?.split_once('/')?;
        Some((self.folder(index.parse().ok()?)?, PageAddress::parse(page)?))
    }

    fn folder(&self, index: usize) -> Option<FolderChoice> {
        let is_known = index < self.paths.len();
        is_known.then(|| FolderChoice { paths: Arc::clone(&self.paths), index })
    }

    fn text_page(&self, status: StatusCode, title: &str, message: &str) -> Response {
        html(status, layout::bare_page(Some(self.guard.base()), title, message))
    }

    fn refusal(&self, refused: GuardError) -> Response {
        self.text_page(StatusCode::FORBIDDEN, "Refused", &refused.to_string())
    }

    fn not_found(&self) -> Response {
        self.text_page(StatusCode::NOT_FOUND, "No such page", NO_PAGE)
    }

    fn unavailable(&self) -> Response {
        let why = "the page could not be made; the log of the program says why";
        self.text_page(StatusCode::INTERNAL_SERVER_ERROR, "This cannot be shown", why)
    }

    fn failure(&self, error: &CommandError) -> Response {
        let title = "The memory folder cannot be opened";
        self.text_page(status_of(error), title, &error.to_string())
    }

    /// Leads to another page of this server by a `GET`.
    fn redirect(&self, url: &str) -> Response {
        match HeaderValue::try_from(url) {
            Ok(url) => (StatusCode::SEE_OTHER, [(header::LOCATION, url)]).into_response(),
            Err(_) => self.not_found(),
        }
    }
}

fn html(status: StatusCode, page: Markup) -> Response {
    let kind = [(header::CONTENT_TYPE, "text/html; charset=utf-8")];
    (status, kind, page.into_string()).into_response()
}

const NO_PAGE: &str = "there is no page with this address";

/// Answers a request that does not know where the pages are, and says nothing about it.
fn outside(status: StatusCode, message: &str) -> Response {
    html(status, layout::bare_page(None, "Refused", message))
}

fn error_page(context: &PageContext, address: &PageAddress, error: &CommandError) -> Response {
    html(status_of(error), layout::page(context, address, &layout::error_content(error)))
}

fn status_of(error: &CommandError) -> StatusCode {
    match error.kind() {
        CommandErrorKind::Usage => StatusCode::NOT_FOUND,
        CommandErrorKind::Busy => StatusCode::CONFLICT,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

fn asset((kind, content): (&'static str, &'static str)) -> Response {
    ([(header::CONTENT_TYPE, kind)], Body::from(content)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_server_ends_an_hour_after_the_last_request() {
        let activity = Arc::new(Activity::new());
        let begin = Instant::now();
        let other = Arc::clone(&activity);
        tokio::spawn(async move {
            sleep(Duration::from_secs(50 * 60)).await;
            other.touch();
        });
        activity.idle_for(IDLE_MAX).await;
        assert_eq!(begin.elapsed().as_secs() / 60, 110);
    }
}
