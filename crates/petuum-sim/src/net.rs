//! The simulated network behind the transport seams of `petuum-net`.
//!
//! turmoil's TCP does not retransmit: a lost segment stops a connection until someone closes it, so every call above
//! needs a deadline. Both ends must be made and used inside a host of the simulation.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use petuum_net::transport::{Connector, Io, Listener};
use turmoil::net::{TcpListener, TcpStream};

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// How long a failed connect waits before it says so. turmoil never gives back the port of a failed connect and refuses
/// one across a partition in no time at all: a caller that retries at once would use up a host's ports within one tick.
const CONNECT_FAILURE_DELAY: Duration = Duration::from_millis(100);

/// Connects to `host:port` over the simulated network.
#[derive(Clone, Copy, Debug, Default)]
pub struct SimConnector;

impl Connector for SimConnector {
    fn connect(&self, address: String) -> BoxFuture<'static, io::Result<Box<dyn Io>>> {
        Box::pin(async move {
            match TcpStream::connect(address.as_str()).await {
                Ok(stream) => Ok(Box::new(stream) as Box<dyn Io>),
                Err(error) => {
                    tokio::time::sleep(CONNECT_FAILURE_DELAY).await;
                    Err(io::Error::new(error.kind(), format!("{address}: {error}")))
                }
            }
        })
    }
}

/// Accepts connections of the simulated network.
pub struct SimListener {
    listener: TcpListener,
    address: String,
}

impl SimListener {
    /// Listens on `port` of the current host, which others reach as `host`.
    ///
    /// # Errors
    /// If the port is in use on this host.
    pub async fn bind(host: &str, port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind(("0.0.0.0", port)).await?;
        let port = listener.local_addr()?.port();
        Ok(Self { listener, address: format!("{host}:{port}") })
    }
}

impl Listener for SimListener {
    fn accept(&mut self) -> BoxFuture<'_, io::Result<Box<dyn Io>>> {
        Box::pin(async {
            let (stream, _) = self.listener.accept().await?;
            Ok(Box::new(stream) as Box<dyn Io>)
        })
    }

    fn address(&self) -> String {
        self.address.clone()
    }
}
