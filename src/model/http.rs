//! The HTTP client: deadlines, a limit on the body, no redirects.
//!
//! It is independent of providers. An answer of any status is returned unchanged; the wire formats
//! interpret it.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use chrono::{DateTime, Utc};
use reqwest::{
    Client, Response,
    header::{HeaderMap, HeaderName, HeaderValue, LOCATION},
    redirect,
};
use tokio::{
    runtime::{Builder, Runtime},
    time::{Instant, timeout, timeout_at},
};

use super::failure::{CallError, Deadline};

/// The longest body that is read, after decompression. A model's reply has at most some 100 KB.
const BYTES_MAX: usize = 8 * 1024 * 1024;

/// The longest file that is read line by line. A line may be as long as a body.
const FILE_BYTES_MAX: usize = 512 * 1024 * 1024;

/// How long a call may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// Until there is a connection.
    pub connect: Duration,
    /// Until the first byte of the answer. A model on this machine may have to load first.
    pub first_byte: Duration,
    /// Between two pieces of the answer.
    pub idle: Duration,
    /// For the whole call.
    pub total: Duration,
}

/// An HTTP client. It is built on first use, because that reads the certificates of the system.
pub struct HttpClient {
    deadlines: Deadlines,
    connection: Mutex<Option<Arc<HttpConnection>>>,
}

struct HttpConnection {
    client: Client,
    runtime: Runtime,
}

/// The answer of a server.
#[derive(Clone, Debug)]
pub struct HttpResponse {
    /// The HTTP status.
    pub status: u16,
    /// The headers that matter to us.
    pub headers: ResponseHeaders,
    /// The body, decompressed.
    pub body: Vec<u8>,
}

/// The headers that matter to us.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseHeaders {
    /// The server's id of the call.
    pub request_id: Option<String>,
    /// How long the server asks to wait before a retry.
    pub retry_after: Option<Duration>,
}

/// A header of a request. One that contains a key is marked, so that nothing prints it.
pub struct RequestHeader {
    /// Its name, in lower case.
    pub name: &'static str,
    /// Its value.
    pub value: String,
    /// Whether it is a key.
    pub is_secret: bool,
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").field("deadlines", &self.deadlines).finish_non_exhaustive()
    }
}

impl HttpClient {
    /// Returns a client with these deadlines.
    pub fn new(deadlines: Deadlines) -> Self {
        Self { deadlines, connection: Mutex::new(None) }
    }

    /// Sends JSON and returns what the server answers, whatever its status.
    ///
    /// Returns why there is no complete answer. No error contains a header, the body, or the answer.
    pub(crate) fn post(
        &self,
        server: &str,
        path: &str,
        headers: &[RequestHeader],
        body: Vec<u8>,
        now: DateTime<Utc>,
    ) -> Result<HttpResponse, CallError> {
        self.upload(server, path, headers, "application/json", body, now)
    }

    /// Sends a body of another type.
    pub(crate) fn upload(
        &self,
        server: &str,
        path: &str,
        headers: &[RequestHeader],
        content_type: &str,
        body: Vec<u8>,
        now: DateTime<Utc>,
    ) -> Result<HttpResponse, CallError> {
        let connection = self.connection()?;
        let mut map = header_map(headers)?;
        let content_type = HeaderValue::from_str(content_type);
        map.insert("content-type", content_type.map_err(|_| invalid_header("content-type"))?);
        let request = connection.client.post(format!("{server}{path}")).headers(map).body(body);
        connection.runtime.block_on(self.exchange(server, request, now))
    }

    /// Fetches a short page of the server, such as its version. Never retried.
    pub(crate) fn get(
        &self,
        server: &str,
        path: &str,
        headers: &[RequestHeader],
        now: DateTime<Utc>,
    ) -> Result<HttpResponse, CallError> {
        let connection = self.connection()?;
        let request =
            connection.client.get(format!("{server}{path}")).headers(header_map(headers)?);
        connection.runtime.block_on(self.exchange(server, request, now))
    }

    /// Fetches a file and passes each line to `on_line`, with only one line in memory at a time.
    ///
    /// An answer that reports an error is returned with its body, like that of [`Self::get`].
    ///
    /// Like [`Self::post`], and what `on_line` returns.
    pub(crate) fn get_lines(
        &self,
        server: &str,
        path: &str,
        headers: &[RequestHeader],
        now: DateTime<Utc>,
        on_line: &mut dyn FnMut(&[u8]) -> Result<(), CallError>,
    ) -> Result<HttpResponse, CallError> {
        let connection = self.connection()?;
        let request =
            connection.client.get(format!("{server}{path}")).headers(header_map(headers)?);
        connection.runtime.block_on(async {
            let total = Instant::now() + self.deadlines.total;
            let (mut answer, mut response) = self.send(server, request, total, now).await?;
            if !answer.is_ok() {
                answer.body = self.read_body(server, response, total).await?;
                return Ok(answer);
            }
            let too_large =
                |bytes_max| CallError::ResponseTooLarge { server: server.into(), bytes_max };
            let (mut rest, mut read) = (Vec::new(), 0);
            while let Some(piece) = self.next_chunk(server, &mut response, total).await? {
                read += piece.len();
                if read > FILE_BYTES_MAX {
                    return Err(too_large(FILE_BYTES_MAX));
                }
                rest.extend_from_slice(&piece);
                let mut begin = 0;
                while let Some(length) = rest[begin..].iter().position(|it| *it == b'\n') {
                    on_line(&rest[begin..begin + length])?;
                    begin += length + 1;
                }
                rest.drain(..begin);
                if rest.len() > BYTES_MAX {
                    return Err(too_large(BYTES_MAX));
                }
            }
            if !rest.is_empty() {
                on_line(&rest)?;
            }
            Ok(answer)
        })
    }

    async fn exchange(
        &self,
        server: &str,
        request: reqwest::RequestBuilder,
        now: DateTime<Utc>,
    ) -> Result<HttpResponse, CallError> {
        let total = Instant::now() + self.deadlines.total;
        let (mut answer, response) = self.send(server, request, total, now).await?;
        answer.body = self.read_body(server, response, total).await?;
        Ok(answer)
    }

    /// Sends a request and waits for the beginning of its answer.
    async fn send(
        &self,
        server: &str,
        request: reqwest::RequestBuilder,
        total: Instant,
        now: DateTime<Utc>,
    ) -> Result<(HttpResponse, Response), CallError> {
        let late = |deadline, after| CallError::Timeout { server: server.into(), deadline, after };
        let sent = timeout(self.deadlines.first_byte, request.send());
        let response = match timeout_at(total, sent).await {
            Err(_) => return Err(late(Deadline::Total, self.deadlines.total)),
            Ok(Err(_)) => return Err(late(Deadline::FirstByte, self.deadlines.first_byte)),
            Ok(Ok(Err(error))) => return Err(self.send_error(server, &error)),
            Ok(Ok(Ok(response))) => response,
        };
        if response.status().is_redirection() {
            return Err(redirect_error(server, &response));
        }
        let status = response.status().as_u16();
        let headers = ResponseHeaders::read(response.headers(), now);
        Ok((HttpResponse { status, headers, body: Vec::new() }, response))
    }

    /// Reads the body piece by piece, up to the limit.
    async fn read_body(
        &self,
        server: &str,
        mut response: Response,
        total: Instant,
    ) -> Result<Vec<u8>, CallError> {
        let mut body = Vec::new();
        while let Some(piece) = self.next_chunk(server, &mut response, total).await? {
            if body.len() + piece.len() > BYTES_MAX {
                let server = server.into();
                return Err(CallError::ResponseTooLarge { server, bytes_max: BYTES_MAX });
            }
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }

    /// Waits for the next piece of a body; `None` at its end.
    async fn next_chunk(
        &self,
        server: &str,
        response: &mut Response,
        total: Instant,
    ) -> Result<Option<Vec<u8>>, CallError> {
        let late = |deadline, after| CallError::Timeout { server: server.into(), deadline, after };
        match timeout_at(total, timeout(self.deadlines.idle, response.chunk())).await {
            Err(_) => Err(late(Deadline::Total, self.deadlines.total)),
            Ok(Err(_)) => Err(late(Deadline::Idle, self.deadlines.idle)),
            Ok(Ok(Err(_))) => Err(CallError::ConnectionLost { server: server.into() }),
            Ok(Ok(Ok(piece))) => Ok(piece.map(Vec::from)),
        }
    }

    fn send_error(&self, server: &str, error: &reqwest::Error) -> CallError {
        let server = server.to_owned();
        if error.is_timeout() {
            let (deadline, after) = (Deadline::Connect, self.deadlines.connect);
            return CallError::Timeout { server, deadline, after };
        }
        // The error itself repeats the address; its innermost cause is what helps.
        let mut cause: &dyn std::error::Error = error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        if error.is_connect() {
            return CallError::Connect { server, reason: cause.to_string() };
        }
        // The server had received the request and may charge for it.
        CallError::ConnectionLost { server }
    }

    /// Returns the client, built on first use.
    fn connection(&self) -> Result<Arc<HttpConnection>, CallError> {
        let mut slot = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(connection) = &*slot {
            return Ok(Arc::clone(connection));
        }
        let failed =
            |e: &dyn fmt::Display| CallError::Config(format!("the HTTP client cannot start: {e}"));
        // Installed once per process; a second call changes nothing.
        drop(rustls::crypto::ring::default_provider().install_default());
        let client = Client::builder()
            .connect_timeout(self.deadlines.connect)
            // A redirect would send the key to another host.
            .redirect(redirect::Policy::none())
            // A proxy would see the key if the connection is not encrypted.
            .no_proxy()
            .user_agent(concat!("memoird/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|e| failed(&e))?;
        let runtime = Builder::new_current_thread().enable_all().build().map_err(|e| failed(&e))?;
        let connection = Arc::new(HttpConnection { client, runtime });
        *slot = Some(Arc::clone(&connection));
        drop(slot);
        Ok(connection)
    }
}

impl HttpResponse {
    /// Returns whether the status is one of success.
    pub fn is_ok(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Returns the body as JSON.
    ///
    /// Returns what the body is instead, in a few words.
    pub(crate) fn json(&self) -> Result<serde_json::Value, &'static str> {
        let text = std::str::from_utf8(&self.body).map_err(|_| "bytes that are not text")?;
        let start = text.trim_start();
        if start.is_empty() {
            return Err("an empty body");
        }
        if start.starts_with('<') {
            return Err("a page of HTML");
        }
        serde_json::from_str(text).map_err(|_| "text that is not JSON")
    }
}

impl ResponseHeaders {
    fn read(map: &HeaderMap, now: DateTime<Utc>) -> Self {
        let text = |name: &str| Some(map.get(name)?.to_str().ok()?.trim().to_owned());
        let id = ["request-id", "x-request-id"].into_iter().find_map(text);
        let is_plain = |it: &String| {
            it.len() <= 100 && it.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
        };
        let exact = text("retry-after-ms").and_then(|it| it.parse().ok());
        let retry_after = exact
            .map(Duration::from_millis)
            .or_else(|| text("retry-after").and_then(|it| parse_retry_after(&it, now)));
        Self { request_id: id.filter(is_plain), retry_after }
    }
}

/// Reads `Retry-After`: seconds, or a date (RFC 9110, section 10.2.3). A date in the past is a pause
/// of zero; anything else is `None`.
fn parse_retry_after(text: &str, now: DateTime<Utc>) -> Option<Duration> {
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = DateTime::parse_from_rfc2822(text).ok()?.with_timezone(&Utc);
    Some((date - now).to_std().unwrap_or(Duration::ZERO))
}

/// Returns the headers of a request as they are sent.
fn header_map(headers: &[RequestHeader]) -> Result<HeaderMap, CallError> {
    let mut map = HeaderMap::new();
    for header in headers {
        let value = HeaderValue::from_str(&header.value);
        let mut value = value.map_err(|_| invalid_header(header.name))?;
        value.set_sensitive(header.is_secret);
        map.insert(HeaderName::from_static(header.name), value);
    }
    Ok(map)
}

fn invalid_header(name: &str) -> CallError {
    CallError::Config(format!("the header {name} cannot be sent"))
}

fn redirect_error(server: &str, response: &Response) -> CallError {
    let to = response.headers().get(LOCATION).and_then(|it| it.to_str().ok());
    let url = to.and_then(|it| response.url().join(it).ok());
    let host = url.and_then(|it| Some(it.host_str()?.to_owned()));
    let host = host.unwrap_or_else(|| "an unnamed address".to_owned());
    CallError::Redirect { server: server.to_owned(), host }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_read_in_all_its_forms() {
        let now = DateTime::parse_from_rfc3339("2026-05-04T09:00:00Z").unwrap().to_utc();
        for (text, seconds) in [
            ("0", Some(0)),
            ("7", Some(7)),
            ("99999", Some(99_999)),
            ("Mon, 04 May 2026 09:00:30 GMT", Some(30)),
            ("Mon, 04 May 2026 08:00:00 GMT", Some(0)),
            ("-3", None),
            ("soon", None),
            ("NaN", None),
            ("1e300", None),
        ] {
            assert_eq!(parse_retry_after(text, now).map(|it| it.as_secs()), seconds, "{text:?}");
        }
    }
}
