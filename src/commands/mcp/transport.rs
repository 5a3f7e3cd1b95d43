//! The output stream, which detects a closed connection.
//!
//! A client that has closed its end wants no response, even if its other end stays open. The server
//! then ends.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use tokio::{io::AsyncWrite, sync::Notify};

/// A writer, and whom to notify when writing fails.
#[derive(Debug)]
pub(super) struct CloseNotifyingWriter<W> {
    inner: W,
    closed: Arc<Notify>,
}

impl<W> CloseNotifyingWriter<W> {
    /// Returns a writer to `inner` that notifies `closed` once when writing fails.
    pub(super) fn new(inner: W, closed: Arc<Notify>) -> Self {
        Self { inner, closed }
    }

    fn notify_on_error<T>(&self, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if matches!(polled, Poll::Ready(Err(_))) {
            self.closed.notify_one();
        }
        polled
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for CloseNotifyingWriter<W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.notify_on_error(polled)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.inner).poll_flush(context);
        self.notify_on_error(polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
