//! TCP that can be cut, and that counts.

use petuum_net::transport::{Connector, Io, Tcp};
use std::collections::BTreeSet;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The connections one node opens.
#[derive(Clone, Default)]
pub(crate) struct Wires {
    cut: Arc<Mutex<BTreeSet<String>>>,
    pub(crate) connects: Arc<AtomicUsize>,
}

impl Wires {
    pub(crate) fn cut(&self, address: &str) {
        self.cut.lock().unwrap().insert(address.to_owned());
    }

    pub(crate) fn heal(&self) {
        self.cut.lock().unwrap().clear();
    }

    fn check(&self, address: &str) -> io::Result<()> {
        if self.cut.lock().unwrap().contains(address) {
            return Err(io::Error::new(io::ErrorKind::ConnectionReset, "cut by the test"));
        }
        Ok(())
    }
}

impl Connector for Wires {
    fn connect(&self, address: String) -> Pin<Box<dyn Future<Output = io::Result<Box<dyn Io>>> + Send>> {
        self.connects.fetch_add(1, Ordering::SeqCst);
        let wires = self.clone();
        Box::pin(async move {
            wires.check(&address)?;
            let inner = Tcp.connect(address.clone()).await?;
            Ok(Box::new(Wire { inner, wires, address }) as Box<dyn Io>)
        })
    }
}

struct Wire {
    inner: Box<dyn Io>,
    wires: Wires,
    address: String,
}

impl AsyncRead for Wire {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.wires.check(&self.address)?;
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.wires.check(&self.address)?;
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
