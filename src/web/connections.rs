//! The connections of the server: how many there are at once, and how long one may wait with its request.
//!
//! Every program of this machine can connect, whatever the guard answers. So a connection has one request, whose head
//! must arrive within [`HEAD_TIME_MAX`]; and when there are [`CONNECTIONS_MAX`], a new one takes the place of the one
//! that has waited longest without a request. One with a request is never closed for another.
//!
//! One task accepts connections, and each has a task of its own. All end with the runtime.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::{body::Body, extract::Request, response::Response};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::oneshot,
    time::sleep,
};

/// How many connections there are at once. A browser has a few; the rest is for its tabs and for a busy moment.
const CONNECTIONS_MAX: usize = 128;
/// A connection without a whole head of a request is closed after this time.
const HEAD_TIME_MAX: Duration = Duration::from_secs(10);
/// How long nothing is accepted after the system has refused it, as without free descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Accepts connections and answers the request of each, without an end.
pub(super) async fn answer_all<F, A>(listener: TcpListener, answer: F) -> Infallible
where
    F: Fn(Request) -> A + Clone + Send + 'static,
    A: Future<Output = Response> + Send + 'static,
{
    let table = Arc::new(ConnectionTable::default());
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        // Without a place, the connection is closed at once.
        if let Some(place) = ConnectionTable::enter(&table, CONNECTIONS_MAX) {
            tokio::spawn(answer_one(stream, place, answer.clone()));
        }
    }
}

/// Answers the request of one connection.
async fn answer_one<F, A>(stream: TcpStream, (place, replaced): PlaceAndSignal, answer: F)
where
    F: Fn(Request) -> A,
    A: Future<Output = Response> + Send + 'static,
{
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        place.begin_request();
        let answered = answer(request.map(Body::new));
        async { Ok::<_, Infallible>(answered.await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME_MAX)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        // A browser that left, or did not speak HTTP, is no error of ours.
        _ = connection => {}
        Ok(()) = replaced => {}
    }
}

/// The open connections, in the order in which they came.
#[derive(Default)]
struct ConnectionTable(Mutex<OpenConnections>);

#[derive(Default)]
struct OpenConnections {
    /// With the signal that ends a connection that has no request yet.
    open: BTreeMap<u64, Option<oneshot::Sender<()>>>,
    next: u64,
}

/// The place of one connection, free again when this is dropped.
struct ConnectionPlace {
    table: Arc<ConnectionTable>,
    number: u64,
}

/// A place, and the signal that another connection got it.
type PlaceAndSignal = (ConnectionPlace, oneshot::Receiver<()>);

impl ConnectionTable {
    /// Returns a place for a new connection; `None` if all `max` have a request.
    fn enter(table: &Arc<Self>, max: usize) -> Option<PlaceAndSignal> {
        let mut connections = table.lock();
        if connections.open.len() >= max {
            let waiting = connections.open.iter().find(|it| it.1.is_some());
            let oldest = *waiting?.0;
            if let Some(signal) = connections.open.remove(&oldest).flatten() {
                // It may have ended by itself just now.
                let _ended = signal.send(());
            }
        }
        let number = connections.next;
        connections.next += 1;
        let (signal, replaced) = oneshot::channel();
        connections.open.insert(number, Some(signal));
        drop(connections);
        Some((ConnectionPlace { table: Arc::clone(table), number }, replaced))
    }

    fn lock(&self) -> MutexGuard<'_, OpenConnections> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionPlace {
    /// Keeps the place until the request is answered.
    fn begin_request(&self) {
        if let Some(signal) = self.table.lock().open.get_mut(&self.number) {
            *signal = None;
        }
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        self.table.lock().open.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use axum::response::IntoResponse as _;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        time::timeout,
    };

    use super::*;

    /// Starts a server that answers everything with `here`.
    async fn start() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(answer_all(listener, async |_| "here".into_response()));
        address
    }

    /// Sends a text and returns all that is answered until the connection ends.
    async fn exchange(address: SocketAddr, sent: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(sent.as_bytes()).await.unwrap();
        let mut answer = String::new();
        // The time is that of the test: it passes when nothing else is left to do.
        let ended = timeout(HEAD_TIME_MAX * 60, stream.read_to_string(&mut answer)).await;
        ended.expect("the connection ends").unwrap();
        answer
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_that_does_not_end_is_not_waited_for() {
        let address = start().await;
        for sent in ["", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: "] {
            assert!(!exchange(address, sent).await.contains("here"), "{sent:?}");
        }
    }

    #[tokio::test]
    async fn a_connection_has_one_request() {
        let request = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
        let answer = exchange(start().await, &request.repeat(2)).await;
        assert_eq!(answer.matches("HTTP/1.1 200 OK").count(), 1, "{answer}");
        assert!(answer.ends_with("here"), "{answer}");
    }

    #[tokio::test]
    async fn connections_without_a_request_make_room() {
        let address = start().await;
        let mut idle = Vec::new();
        for _ in 0..3 * CONNECTIONS_MAX {
            idle.push(TcpStream::connect(address).await.unwrap());
        }
        let request = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
        assert!(exchange(address, request).await.ends_with("here"));
        // The oldest were closed for the others.
        let mut byte = [0];
        assert_eq!(idle[0].read(&mut byte).await.unwrap(), 0);
    }

    #[test]
    fn a_connection_with_a_request_keeps_its_place() {
        let table = Arc::new(ConnectionTable::default());
        let enter = || ConnectionTable::enter(&table, 2);
        let (first, mut first_replaced) = enter().unwrap();
        let (second, mut second_replaced) = enter().unwrap();
        first.begin_request();
        let (third, mut third_replaced) = enter().unwrap();
        assert_eq!(second_replaced.try_recv(), Ok(()));
        third.begin_request();
        assert!(enter().is_none());
        // What is left of a replaced connection frees no place of another one.
        drop(second);
        assert!(enter().is_none());
        drop(first);
        assert!(enter().is_some());
        assert!(first_replaced.try_recv().is_err() && third_replaced.try_recv().is_err());
    }
}
