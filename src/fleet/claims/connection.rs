//! The connection to PostgreSQL: opened on first use and again after it ended.
//!
//! Each call sends one statement without a name (`query_typed`), which is parsed, run and committed at once: a pooler
//! in transaction mode may give every statement another connection, so nothing may stay on one.

use std::{
    future::Future,
    io,
    net::IpAddr,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use rustls::pki_types::ServerName;
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    runtime::{Builder, Runtime},
    time::timeout,
};
use tokio_postgres::{
    Client, Config, Row,
    config::{Host, SslMode},
    error::SqlState,
    tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream},
    types::{ToSql, Type},
};
use tokio_rustls::TlsConnector;

use super::error::{ClaimsError, ClaimsErrorKind};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// No statement of ours takes longer, except for a sweep.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// The class of errors of connections, by which PgBouncer reports that it has no server, and a wrong password.
const POOLER_CLASS: &str = "08";

/// What the library says of a connection that could not be encrypted; it shows it in no other way.
const TLS_FAILED: &str = "TLS handshake";

/// A parameter of a statement, with its type.
pub(super) type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// A PostgreSQL server, for callers that wait.
pub(super) struct Connection {
    config: Config,
    /// The server and the database, without user and password.
    pub(super) server: String,
    client: Mutex<Option<Arc<Client>>>,
    runtime: Runtime,
}

impl Connection {
    /// Parses an address. Nothing is sent yet.
    pub(super) fn new(url: &str) -> Result<Self, ClaimsError> {
        let bad = |reason: &str| ClaimsError::new(ClaimsErrorKind::Address, "", reason);
        // What the parser reports may quote the password.
        let config = verified(url).parse::<Config>();
        let mut config =
            config.map_err(|_| bad("expected postgres://USER@HOST/DATABASE?sslmode=require"))?;
        if config.get_hosts().is_empty() {
            return Err(bad("it names no host"));
        }
        // The parser's default lets anybody on the way turn TLS off.
        if !url.contains("sslmode=") && !config.get_hosts().iter().all(is_on_this_machine) {
            config.ssl_mode(SslMode::Require);
        }
        config.connect_timeout(CONNECT_TIMEOUT).application_name("memoird");
        // As the programs of PostgreSQL do.
        if let Some(password) =
            std::env::var("PGPASSWORD").ok().filter(|_| config.get_password().is_none())
        {
            config.password(password);
        }
        let server = server_name(&config);
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|e| bad(&e.to_string()))?;
        Ok(Self { config, server, client: Mutex::default(), runtime })
    }

    /// Returns the ports of the servers.
    pub(super) fn ports(&self) -> Vec<u16> {
        const DEFAULT: u16 = 5432;
        let ports = self.config.get_ports();
        if ports.is_empty() { vec![DEFAULT] } else { ports.to_vec() }
    }

    /// Runs a statement in its own transaction.
    pub(super) fn query(
        &self,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, ClaimsError> {
        self.query_within(CALL_TIMEOUT, statement, parameters)
    }

    /// Runs a statement that may take longer than others.
    pub(super) fn query_within(
        &self,
        limit: Duration,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, ClaimsError> {
        self.runtime.block_on(async {
            let client = self.client().await?;
            self.limited(limit, client.query_typed(statement, parameters)).await
        })
    }

    /// Runs statements without parameters, all or none.
    pub(super) fn execute_all(&self, statements: &str) -> Result<(), ClaimsError> {
        // One message is one transaction.
        self.runtime.block_on(async {
            let client = self.client().await?;
            self.limited(CALL_TIMEOUT * 6, client.batch_execute(statements)).await
        })
    }

    async fn limited<T>(
        &self,
        limit: Duration,
        call: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, ClaimsError> {
        if let Ok(result) = timeout(limit, call).await {
            return result.map_err(|e| self.failed(&e));
        }
        // The answer may still come, to nobody.
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let reason = format!("no answer within {} s", limit.as_secs());
        Err(ClaimsError::new(ClaimsErrorKind::Unreachable, &self.server, reason))
    }

    async fn client(&self) -> Result<Arc<Client>, ClaimsError> {
        let open = self.client.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(client) = open.filter(|it| !it.is_closed()) {
            return Ok(client);
        }
        let tls = RustlsConnector::new()
            .map_err(|e| ClaimsError::new(ClaimsErrorKind::Failed, &self.server, e))?;
        let connected = timeout(CONNECT_TIMEOUT * 2, self.config.connect(tls)).await;
        let Ok(connected) = connected else {
            let server = &self.server;
            return Err(ClaimsError::new(ClaimsErrorKind::Unreachable, server, "no answer"));
        };
        let (client, connection) = connected.map_err(|e| self.failed(&e))?;
        // Ends with the connection. Its error also fails the calls that wait.
        self.runtime.spawn(async move { drop(connection.await) });
        let client = Arc::new(client);
        let mut slot = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        *slot = Some(Arc::clone(&client));
        drop(slot);
        Ok(client)
    }

    fn failed(&self, error: &tokio_postgres::Error) -> ClaimsError {
        let kind = match error.code() {
            None if error.to_string().contains(TLS_FAILED) => ClaimsErrorKind::NoTls,
            Some(
                &SqlState::INVALID_PASSWORD
                | &SqlState::INVALID_AUTHORIZATION_SPECIFICATION
                | &SqlState::INVALID_CATALOG_NAME
                | &SqlState::INSUFFICIENT_PRIVILEGE,
            ) => ClaimsErrorKind::Denied,
            Some(
                &SqlState::INVALID_SCHEMA_NAME
                | &SqlState::UNDEFINED_TABLE
                | &SqlState::UNDEFINED_FUNCTION,
            ) => ClaimsErrorKind::NoTables,
            Some(
                &SqlState::ADMIN_SHUTDOWN
                | &SqlState::CRASH_SHUTDOWN
                | &SqlState::CANNOT_CONNECT_NOW
                | &SqlState::TOO_MANY_CONNECTIONS,
            )
            | None => ClaimsErrorKind::Unreachable,
            Some(code) if code.code().starts_with(POOLER_CLASS) => match error.as_db_error() {
                Some(it) if it.message().contains("authentication failed") => {
                    ClaimsErrorKind::Denied
                }
                _ => ClaimsErrorKind::Unreachable,
            },
            Some(_) => ClaimsErrorKind::Failed,
        };
        ClaimsError::new(kind, &self.server, reason_of(error))
    }
}

/// Returns an error with its causes, in one line. PostgreSQL quotes no password.
fn reason_of(error: &tokio_postgres::Error) -> String {
    if let Some(answer) = error.as_db_error() {
        return answer.message().to_owned();
    }
    let mut text = error.to_string();
    let mut next = std::error::Error::source(error);
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

/// Certificates are always checked here, so the modes that ask for it are `require`.
fn verified(url: &str) -> String {
    url.replace("sslmode=verify-full", "sslmode=require")
        .replace("sslmode=verify-ca", "sslmode=require")
}

fn is_on_this_machine(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            name == "localhost" || name.parse::<IpAddr>().is_ok_and(|it| it.is_loopback())
        }
    }
}

fn server_name(config: &Config) -> String {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(host)) => host.clone(),
        Some(Host::Unix(path)) => path.display().to_string(),
        None => String::new(),
    };
    let port = config.get_ports().first().map(|it| format!(":{it}")).unwrap_or_default();
    let database = config.get_dbname().map(|it| format!("/{it}")).unwrap_or_default();
    format!("{host}{port}{database}")
}

/// TLS by rustls, with the certificates that this system trusts.
#[derive(Clone)]
struct RustlsConnector(TlsConnector);

impl RustlsConnector {
    fn new() -> Result<Self, rustls::Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_platform_verifier()?
            .with_no_client_auth();
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for RustlsConnector {
    type Stream = RustlsStream<S>;
    type TlsConnect = RustlsHandshake;
    type Error = rustls::pki_types::InvalidDnsNameError;

    fn make_tls_connect(&mut self, domain: &str) -> Result<RustlsHandshake, Self::Error> {
        let name = ServerName::try_from(domain.to_owned())?;
        Ok(RustlsHandshake { connector: self.0.clone(), name })
    }
}

struct RustlsHandshake {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for RustlsHandshake {
    type Stream = RustlsStream<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<RustlsStream<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        let Self { connector, name } = self;
        Box::pin(async move { Ok(RustlsStream(connector.connect(name, stream).await?)) })
    }
}

struct RustlsStream<S>(tokio_rustls::client::TlsStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for RustlsStream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        // The password is checked by SCRAM without it; the certificate of the server is verified.
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for RustlsStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for RustlsStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_without_user_and_password() {
        let connection =
            Connection::new("postgres://ada:hunter2@db.example:6432/fleet?sslmode=verify-full");
        let connection = connection.unwrap();
        assert_eq!(connection.server, "db.example:6432/fleet");
        assert_eq!(connection.ports(), [6432]);
        for bad in ["postgres://ada:hunter2@db:port/x", "postgres://ada:hunter2@", "/srv/db"] {
            let error = Connection::new(bad).err().unwrap().to_string();
            assert!(!error.contains("hunter2"), "{error}");
            assert!(error.contains("address"), "{error}");
        }
    }
}
