//! How connections are made and accepted: TCP in production, a simulated network under test.
//!
//! Everything above takes a [`Connector`] and a [`Listener`] as arguments and never names TCP.

use hyper_util::rt::TokioIo;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tonic::transport::server::Connected;
use tonic::transport::{Channel, Endpoint, Uri};

/// A connection, whatever carries it.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> Io for T {}

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Opens connections.
pub trait Connector: Send + Sync + 'static {
    /// Connects to `host:port`.
    fn connect(&self, address: String) -> BoxFuture<'static, io::Result<Box<dyn Io>>>;
}

/// Accepts connections.
pub trait Listener: Send + 'static {
    /// The next connection. An error concerns one connection only; the caller goes on.
    fn accept(&mut self) -> BoxFuture<'_, io::Result<Box<dyn Io>>>;
    /// The address it listens on, `host:port`.
    fn address(&self) -> String;
}

/// TCP without delays.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tcp;

impl Connector for Tcp {
    fn connect(&self, address: String) -> BoxFuture<'static, io::Result<Box<dyn Io>>> {
        Box::pin(async move {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as Box<dyn Io>)
        })
    }
}

/// A TCP listener.
#[derive(Debug)]
pub struct TcpAcceptor {
    listener: TcpListener,
    address: String,
}

impl TcpAcceptor {
    /// Listens on `host:port`; port 0 takes a free one.
    ///
    /// # Errors
    /// What the system says, with the address.
    pub async fn bind(address: &str) -> io::Result<Self> {
        let at = |e: io::Error| io::Error::new(e.kind(), format!("cannot listen on {address}: {e}"));
        let listener = TcpListener::bind(address).await.map_err(at)?;
        let address = listener.local_addr().map_err(at)?.to_string();
        Ok(Self { listener, address })
    }
}

impl Listener for TcpAcceptor {
    fn accept(&mut self) -> BoxFuture<'_, io::Result<Box<dyn Io>>> {
        Box::pin(async {
            let (stream, _) = self.listener.accept().await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as Box<dyn Io>)
        })
    }

    fn address(&self) -> String {
        self.address.clone()
    }
}

/// An accepted connection as tonic's server wants it.
pub struct ServerIo(Box<dyn Io>);

impl fmt::Debug for ServerIo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerIo")
    }
}

impl Connected for ServerIo {
    type ConnectInfo = ();
    fn connect_info(&self) {}
}

impl AsyncRead for ServerIo {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for ServerIo {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// The connections a listener accepts, for `serve_with_incoming`. One failed accept does not end it.
pub fn incoming(listener: Box<dyn Listener>) -> impl tokio_stream::Stream<Item = io::Result<ServerIo>> {
    /// The listener comes back with each connection.
    type Accepted = (Box<dyn Listener>, io::Result<Box<dyn Io>>);
    struct Incoming {
        pending: Option<BoxFuture<'static, Accepted>>,
    }
    impl tokio_stream::Stream for Incoming {
        type Item = io::Result<ServerIo>;
        fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
            let Some(pending) = self.pending.as_mut() else { return Poll::Ready(None) };
            let (listener, result) = std::task::ready!(pending.as_mut().poll(cx));
            self.pending = Some(next(listener));
            Poll::Ready(Some(result.map(ServerIo)))
        }
    }
    fn next(mut listener: Box<dyn Listener>) -> BoxFuture<'static, Accepted> {
        Box::pin(async move {
            let mut accepted = listener.accept().await;
            while let Err(error) = accepted {
                // One connection was reset before it was accepted, or file descriptors ran out: go on, not in a spin.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(10)).await;
                accepted = listener.accept().await;
            }
            (listener, accepted)
        })
    }
    Incoming { pending: Some(next(listener)) }
}

/// Bytes that may be on their way on one HTTP/2 stream; both ends say so.
pub const STREAM_WINDOW_BYTES: u32 = 4 * 1024 * 1024;
/// The same for all streams of a connection.
pub const CONNECTION_WINDOW_BYTES: u32 = 16 * 1024 * 1024;
/// Bytes of an HTTP/2 frame; both ends say so. A part of a row fits: cut into the usual 16 KiB it cost a tenth of
/// throughput. Larger ones would hold up other streams.
pub const FRAME_BYTES: u32 = 256 * 1024;

/// Timeouts of a channel.
#[derive(Clone, Copy, Debug)]
pub struct ChannelSettings {
    /// For connecting.
    pub connect_timeout: Duration,
    /// HTTP/2 pings when nothing else arrives, and how long an answer may take: a silently dead peer is found so.
    pub keep_alive: Duration,
}

impl Default for ChannelSettings {
    fn default() -> Self {
        Self { connect_timeout: Duration::from_secs(1), keep_alive: Duration::from_secs(2) }
    }
}

/// Checks that an address is `host:port`; whether somebody listens there is another question.
///
/// # Errors
/// A sentence that names the address and what was expected.
pub fn check_address(address: &str) -> Result<(), String> {
    let uri: Option<Uri> = format!("http://{address}").parse().ok();
    let valid = uri.as_ref().and_then(Uri::authority).is_some_and(|at| {
        let whole = at.as_str() == address && !address.contains('@');
        whole && !at.host().is_empty() && at.port_u16().is_some_and(|port| port > 0)
    });
    if valid {
        Ok(())
    } else {
        Err(format!("{address:?} is no address; expected host:port, with a port of 1 to 65535"))
    }
}

/// A lazily connecting channel to `host:port`, which reconnects by itself. Keep one per peer and purpose: each failed
/// connect costs a socket.
///
/// # Errors
/// If the address is no `host:port`.
pub fn channel(connector: &Arc<dyn Connector>, address: &str, settings: ChannelSettings) -> Result<Channel, String> {
    check_address(address)?;
    let endpoint = Endpoint::from_shared(format!("http://{address}"))
        .map_err(|e| format!("{address:?} is no host:port address: {e}"))?
        .http2_keep_alive_interval(settings.keep_alive)
        .keep_alive_timeout(settings.keep_alive)
        .keep_alive_while_idle(true)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_frame_size(FRAME_BYTES);
    let connector = connector.clone();
    let timeout = settings.connect_timeout;
    Ok(endpoint.connect_with_connector_lazy(tower::service_fn(move |uri: Uri| {
        let address = uri.authority().map(ToString::to_string).unwrap_or_default();
        let connecting = connector.connect(address.clone());
        async move {
            match tokio::time::timeout(timeout, connecting).await {
                Ok(result) => result.map(TokioIo::new),
                Err(_) => {
                    Err(io::Error::new(io::ErrorKind::TimedOut, format!("{address} did not answer within {timeout:?}")))
                }
            }
        }
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_and_a_port() {
        for address in ["127.0.0.1:7070", "[::1]:7070", "localhost:1", "node-1.example:65535"] {
            check_address(address).unwrap();
        }
        for address in ["", "localhost", "localhost:", ":7070", "localhost:0", "localhost:65536", "localhost:x"] {
            assert!(check_address(address).unwrap_err().contains("expected host:port"), "{address}");
        }
        for address in ["http://localhost:7070", "localhost:7070/", "localhost:7070/x", "me@localhost:7070", "a b:1"] {
            assert!(check_address(address).unwrap_err().contains("expected host:port"), "{address}");
        }
    }
}
