//! A device in memory whose power can be cut, written before the format that it tests.
//!
//! It guarantees exactly what a disk with a volatile cache guarantees, and nothing more:
//!
//! ```text
//!   write ──▶ cache (visible to reads) ──flush──▶ durable
//!                │ power cut
//!                └──▶ any subset of the writes since the last flush survives, in any
//!                     combination, each whole or torn: any subset of its 512-byte sectors,
//!                     some of them only up to some byte
//! ```
//!
//! A workload runs once, and every write, flush and acknowledgement is recorded; a power cut is
//! then a position in that recording and a seed.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]

pub mod titles;

use device::{BlockDevice, DeviceError, DeviceKind, Geometry, Pool, Queue};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use units::ByteCount;

/// An operation that reached the device.
#[derive(Clone, Debug)]
pub enum DeviceEvent {
    Write(u64, Vec<u8>),
    Flush,
    /// A mark of the test: everything before it was acknowledged as part of this step.
    Acknowledged(usize),
}

#[derive(Debug)]
struct DeviceState {
    bytes: Vec<u8>,
    events: Vec<DeviceEvent>,
    /// The number of writes and flushes that succeed before all others fail.
    allowance: Option<u64>,
}

/// A device in memory that records its operations.
#[derive(Debug)]
pub struct PowerCutDevice {
    state: Mutex<DeviceState>,
    /// Flushes wait while a test holds it.
    gate: Mutex<()>,
    /// The number of flushes that have begun.
    flushes: AtomicU64,
    reads: AtomicU64,
}

impl PowerCutDevice {
    pub fn new(size: ByteCount) -> Arc<Self> {
        Self::from_image(vec![0; usize::try_from(size.0).unwrap()])
    }

    pub fn from_image(bytes: Vec<u8>) -> Arc<Self> {
        let state = DeviceState { bytes, events: Vec::new(), allowance: None };
        Arc::new(Self {
            state: Mutex::new(state),
            gate: Mutex::new(()),
            flushes: AtomicU64::new(0),
            reads: AtomicU64::new(0),
        })
    }

    /// Runs `act` in another thread as far as its first flush, then `meanwhile`, then the rest of
    /// `act`.
    pub fn during_a_flush<T: Send>(
        &self,
        act: impl FnOnce() -> T + Send,
        meanwhile: impl FnOnce(),
    ) -> T {
        let before = self.flushes.load(Ordering::SeqCst);
        let closed = self.gate.lock().unwrap();
        std::thread::scope(|scope| {
            let acting = scope.spawn(act);
            while self.flushes.load(Ordering::SeqCst) == before && !acting.is_finished() {
                std::thread::yield_now();
            }
            meanwhile();
            drop(closed);
            acting.join().unwrap()
        })
    }

    /// The number of reads so far.
    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::SeqCst)
    }

    /// The bytes as reads see them.
    pub fn image(&self) -> Vec<u8> {
        self.state.lock().unwrap().bytes.clone()
    }

    /// Changes bytes without a write of the store.
    pub fn tamper(&self, change: impl FnOnce(&mut [u8])) {
        change(&mut self.state.lock().unwrap().bytes);
    }

    pub fn acknowledge(&self, step: usize) {
        self.state.lock().unwrap().events.push(DeviceEvent::Acknowledged(step));
    }

    /// Lets `operations` more writes and flushes succeed; all later ones fail.
    pub fn fail_after(&self, operations: u64) {
        self.state.lock().unwrap().allowance = Some(operations);
    }

    /// The operations since the last call.
    pub fn take_events(&self) -> Vec<DeviceEvent> {
        std::mem::take(&mut self.state.lock().unwrap().events)
    }

    fn admit(state: &mut DeviceState, action: &'static str) -> Result<(), DeviceError> {
        match &mut state.allowance {
            None => Ok(()),
            Some(0) => Err(DeviceError::Io {
                action,
                path: PathBuf::from("test"),
                offset: 0,
                length: 0,
                source: io::Error::other("the disk is broken"),
            }),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
        }
    }
}

/// The number of events up to the last flush, which made them durable.
pub fn flushed(events: &[DeviceEvent]) -> usize {
    events.iter().rposition(|event| matches!(event, DeviceEvent::Flush)).map_or(0, |i| i + 1)
}

/// Makes these writes in `image`.
pub fn apply(image: &mut [u8], events: &[DeviceEvent]) {
    for event in events {
        if let DeviceEvent::Write(offset, data) = event {
            let at = usize::try_from(*offset).unwrap();
            image[at..at + data.len()].copy_from_slice(data);
        }
    }
}

/// The remains of `image` (durable before `events`) after a power cut that follows `events`.
pub fn cut(image: &[u8], events: &[DeviceEvent], random: &mut fastrand::Rng) -> Vec<u8> {
    let flushed = flushed(events);
    let mut bytes = image.to_vec();
    // Some cuts lose nearly everything, some nearly nothing, some half.
    let survival = [0.05, 0.5, 0.95][random.usize(..3)];
    for (i, event) in events.iter().enumerate() {
        let DeviceEvent::Write(offset, data) = event else { continue };
        let torn = i >= flushed && random.f64() < 0.5;
        if i >= flushed && !torn && random.f64() >= survival {
            continue;
        }
        for (s, sector) in data.chunks(512).enumerate() {
            let written = match random.u32(..8) {
                _ if !torn => 512,
                0 => random.usize(..512),
                _ if random.f64() < survival => 512,
                _ => 0,
            };
            let at = usize::try_from(*offset).unwrap() + s * 512;
            bytes[at..at + written].copy_from_slice(&sector[..written]);
        }
    }
    bytes
}

/// Cuts power so many times at each event and after the last; `check` gets what is left, the number
/// of events before the cut, and words that name it.
pub fn cut_at_every_event(
    image: &[u8],
    events: &[DeviceEvent],
    times: u64,
    mut check: impl FnMut(Vec<u8>, usize, &str),
) {
    for until in 0..=events.len() {
        for again in 0..times {
            let mut random = fastrand::Rng::with_seed((until as u64) << 8 | again);
            let left = cut(image, &events[..until], &mut random);
            check(left, until, &format!("cut {again} at {until} of {}", events.len()));
        }
    }
}

impl BlockDevice for PowerCutDevice {
    fn geometry(&self) -> Geometry {
        Geometry {
            size: ByteCount(self.state.lock().unwrap().bytes.len() as u64),
            block: 512,
            rotational: false,
            kind: DeviceKind::Memory,
        }
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        assert_eq!((offset % 512, into.len() % 512), (0, 0), "unaligned read");
        self.reads.fetch_add(1, Ordering::SeqCst);
        let state = self.state.lock().unwrap();
        let at = usize::try_from(offset).unwrap();
        into.copy_from_slice(&state.bytes[at..at + into.len()]);
        Ok(())
    }

    fn write_at(&self, offset: u64, from: &[u8]) -> Result<(), DeviceError> {
        assert_eq!((offset % 512, from.len() % 512), (0, 0), "unaligned write");
        let mut state = self.state.lock().unwrap();
        Self::admit(&mut state, "writing")?;
        let at = usize::try_from(offset).unwrap();
        state.bytes[at..at + from.len()].copy_from_slice(from);
        state.events.push(DeviceEvent::Write(offset, from.to_vec()));
        Ok(())
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.flushes.fetch_add(1, Ordering::SeqCst);
        drop(self.gate.lock().unwrap());
        let mut state = self.state.lock().unwrap();
        Self::admit(&mut state, "flushing")?;
        state.events.push(DeviceEvent::Flush);
        Ok(())
    }

    /// As a write of other bytes: a device may do it at any time, or partly.
    fn discard(&self, area: std::ops::Range<u64>) -> Result<bool, DeviceError> {
        let length = usize::try_from(area.end - area.start).unwrap();
        self.write_at(area.start, &vec![0xDD; length])?;
        Ok(true)
    }

    fn queue(&self, _depth: u32, _pool: &Pool) -> Result<Box<dyn Queue>, DeviceError> {
        Err(DeviceError::Unusable {
            path: PathBuf::from("test"),
            reason: "no queue in this test device".into(),
        })
    }
}
