//! A machine that remembers every number it was given, and can be told to fail or to be slow.

use bytes::{BufMut, Bytes, BytesMut};
use petuum_consensus::{Machine, MachineError, MachineFactory, SnapshotView};
use petuum_types::LogIndex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What a test sees and steers of one node's machine.
#[derive(Default)]
pub(crate) struct Probe {
    pub(crate) values: Mutex<Vec<u64>>,
    pub(crate) fail_once: AtomicBool,
    pub(crate) fail_always: AtomicBool,
    pub(crate) panic_once: AtomicBool,
    pub(crate) install_millis: AtomicU64,
    pub(crate) installs: AtomicU64,
    pub(crate) views: AtomicU64,
}

impl Probe {
    pub(crate) fn values(&self) -> Vec<u64> {
        self.values.lock().unwrap().clone()
    }
}

struct Numbers {
    values: Vec<u64>,
    next: Option<u64>,
    probe: Arc<Probe>,
}

pub(crate) fn factory(probe: &Arc<Probe>) -> MachineFactory {
    let probe = probe.clone();
    Arc::new(move || {
        probe.values.lock().unwrap().clear();
        Box::new(Numbers { values: Vec::new(), next: None, probe: probe.clone() })
    })
}

/// An entry of a number and some padding.
pub(crate) fn entry(value: u64, padding: usize) -> Bytes {
    let mut out = BytesMut::with_capacity(8 + padding);
    out.put_u64(value);
    out.put_bytes(0x5a, padding);
    out.freeze()
}

pub(crate) fn sum(answer: &Bytes) -> u64 {
    u64::from_be_bytes(answer[..].try_into().unwrap())
}

impl Numbers {
    fn at(&mut self, index: LogIndex) {
        if let Some(next) = self.next {
            assert_eq!(index.0, next, "entries come one after the other");
        }
        self.next = Some(index.0 + 1);
    }
}

impl Machine for Numbers {
    fn apply(&mut self, index: LogIndex, entry: Bytes) -> Result<Bytes, MachineError> {
        if self.probe.fail_always.load(Ordering::SeqCst) || self.probe.fail_once.swap(false, Ordering::SeqCst) {
            return Err(MachineError::new("told to fail"));
        }
        assert!(!self.probe.panic_once.swap(false, Ordering::SeqCst), "told to panic");
        self.at(index);
        let value = u64::from_be_bytes(entry[..8].try_into().unwrap());
        self.values.push(value);
        self.probe.values.lock().unwrap().push(value);
        let sum: u64 = self.values.iter().sum();
        Ok(Bytes::copy_from_slice(&sum.to_be_bytes()))
    }

    fn skip(&mut self, index: LogIndex) {
        self.at(index);
    }

    fn view(&self) -> Box<dyn SnapshotView> {
        self.probe.views.fetch_add(1, Ordering::SeqCst);
        Box::new(View { values: self.values.clone() })
    }

    #[expect(clippy::disallowed_methods, reason = "an install that really takes its time")]
    fn install(&mut self, pieces: &mut dyn Iterator<Item = Result<Bytes, MachineError>>) -> Result<(), MachineError> {
        std::thread::sleep(Duration::from_millis(self.probe.install_millis.load(Ordering::SeqCst)));
        self.values.clear();
        for piece in pieces {
            let piece = piece?;
            self.values.extend(piece.chunks(8).map(|value| u64::from_be_bytes(value.try_into().unwrap())));
        }
        self.next = None;
        *self.probe.values.lock().unwrap() = self.values.clone();
        self.probe.installs.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

struct View {
    values: Vec<u64>,
}

impl SnapshotView for View {
    fn next_piece(&mut self, max_bytes: usize) -> Option<Bytes> {
        if self.values.is_empty() {
            return None;
        }
        let count = (max_bytes / 8).clamp(1, self.values.len());
        let mut out = BytesMut::with_capacity(count * 8);
        self.values.drain(..count).for_each(|value| out.put_u64(value));
        Some(out.freeze())
    }
}
