//! A store on a block device for `park-figures --emulated`: file titles, read by the library in the
//! scheduler's sweeps, or as files of the store's mount.
//!
//! ```text
//!   streams ◀── verified reads, two buffers each ── one thread: Sweeps ─▶ TitleReader ─▶ device
//! ```

use super::sweeps::{BUFFERS, READ, StreamTitle, Sweeps};
use media::{LduIndex, TitleKind, TrackDescription, TrackKind};
use meter::MeterError;
use meter::emulated::{TitlesOnDisk, TitlesPlan};
use mount::{StoreMount, StoreMountOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use store::{
    FormatOptions, SoleOwner, Store, StoreAccess, StoreError, TitleOwner, TitleReader,
    VerifiedBytes,
};
use units::{ByteCount, Hinted, Timescale};

/// A store that nobody else has.
struct StoreOnDisk {
    owner: Arc<dyn TitleOwner>,
    /// Names of the titles in the order of writing.
    names: Vec<String>,
    mount: Option<(StoreMount, PathBuf)>,
    /// The thread that reads for the streams.
    reading: Option<JoinHandle<()>>,
}

/// Makes a store with file titles on a block device, and opens it.
///
/// # Errors
/// Those of the store; an error if `go_on` returns false.
pub fn make_titles(
    device: &Path,
    plan: TitlesPlan,
    go_on: &mut dyn FnMut(u32) -> bool,
) -> Result<Box<dyn TitlesOnDisk>, MeterError> {
    Store::format(device, &FormatOptions { destroy: true, ..FormatOptions::default() })
        .map_err(failed)?;
    let store = Store::open(device).map_err(failed)?;
    let mut names = Vec::new();
    for number in 0..plan.count {
        if !go_on(number) {
            return Err(MeterError::new("interrupted"));
        }
        let name = format!("film-{number:02}");
        write(&store, &name, plan.len).map_err(failed)?;
        names.push(name);
    }
    let owner: Arc<dyn TitleOwner> = Arc::new(SoleOwner(store));
    Ok(Box::new(StoreOnDisk { owner, names, mount: None, reading: None }))
}

/// Writes a file title of `len` bytes.
pub(super) fn write(store: &Store, name: &str, len: ByteCount) -> Result<(), StoreError> {
    let mut noise = vec![0; PART];
    fastrand::Rng::with_seed(len.0).fill(&mut noise);
    let mut writer = store.begin(name, TitleKind::File)?;
    writer.declare(&[len])?;
    let mut left = len.0;
    while left > 0 {
        let part = usize::try_from(left).unwrap_or(PART).min(PART);
        writer.write(0, &noise[..part])?;
        left -= part as u64;
    }
    let track = TrackDescription::plain(TrackKind::File, Timescale(1));
    writer.seal(vec![(track, LduIndex::default())]).map(drop)
}

/// Where a file title lies.
pub(super) fn place(store: &Store, name: &str) -> Result<StreamTitle, StoreError> {
    let record = store.find(name)?;
    let runs = store.runs(record.id, 0).unwrap_or_default();
    // A title on a new store is in one piece. Of another, this is its order beside others.
    let begins = runs.first().map_or(0, |run| run.start);
    Ok(StreamTitle { begins, len: ByteCount(record.tracks[0].bytes) })
}

fn failed(error: impl Hinted) -> MeterError {
    MeterError::of(&error)
}

impl TitlesOnDisk for StoreOnDisk {
    fn readers(&mut self, titles: &[u32]) -> Result<Vec<Box<dyn Read + Send>>, MeterError> {
        self.end_reading();
        let (mut readers, mut places) = (Vec::new(), Vec::new());
        for number in titles {
            let name = &self.names[*number as usize];
            let id = self.owner.store().find(name).map_err(failed)?.id;
            readers.push(TitleReader::open(Arc::clone(&self.owner), id).map_err(failed)?);
            places.push(place(self.owner.store(), name).map_err(failed)?);
        }
        let (free, freed) = channel();
        let (mut streams, mut outputs): (Vec<Box<dyn Read + Send>>, _) = (Vec::new(), Vec::new());
        for (number, title) in places.iter().enumerate() {
            let (output, input) = channel();
            outputs.push(output);
            streams.push(Box::new(TitleStream {
                number,
                left: title.len.0,
                free: free.clone(),
                has_begun: false,
                input,
                current: None,
            }));
        }
        let sweeps = Sweeps::new(places);
        self.reading = Some(std::thread::spawn(move || serve(sweeps, &readers, &freed, &outputs)));
        Ok(streams)
    }

    fn mount_cold(&mut self, at: &Path) -> Result<(), MeterError> {
        self.unmount();
        let options = StoreMountOptions {
            read_only: true,
            spool: std::env::temp_dir(),
            rate: None,
            tell: Arc::new(|_| {}),
        };
        let owner = Arc::clone(&self.owner);
        // Its threads have the priority of the thread that starts it: that of the streams.
        let start = || {
            let _ = device::enter_realtime();
            StoreMount::start(owner, at, options)
        };
        let mount = std::thread::scope(|scope| {
            scope.spawn(start).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        self.mount = Some((mount.map_err(failed)?, at.to_owned()));
        Ok(())
    }

    fn file(&self, title: u32) -> PathBuf {
        let at = self.mount.as_ref().map(|(_, at)| at.clone()).unwrap_or_default();
        at.join(&self.names[title as usize])
    }
}

impl StoreOnDisk {
    /// Waits for the thread that reads, which ends with its streams.
    fn end_reading(&mut self) {
        if let Some(reading) = self.reading.take() {
            reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    }

    fn unmount(&mut self) {
        let Some((mount, _)) = self.mount.take() else { return };
        // A file that was closed may still be in use for a moment.
        let mut looks = 0..LOOKS;
        while mount.unmount().is_err() {
            if looks.next().is_none() {
                // There is no further remedy.
                let _ = mount.detach();
                break;
            }
            std::thread::sleep(LOOK_AGAIN);
        }
        mount.join();
    }
}

impl Drop for StoreOnDisk {
    fn drop(&mut self) {
        self.unmount();
        self.end_reading();
    }
}

/// What a stream gets for a read.
type FilledBuffer = Result<VerifiedBytes, StoreError>;

/// Reads for streams until all of them are dropped.
fn serve(
    mut sweeps: Sweeps,
    readers: &[TitleReader<Arc<dyn TitleOwner>>],
    freed: &Receiver<usize>,
    outputs: &[Sender<FilledBuffer>],
) {
    let _ = device::enter_realtime();
    let most = usize::try_from(READ.0).expect("a read fits into memory");
    loop {
        freed.try_iter().for_each(|stream| sweeps.free(stream));
        let Some(read) = sweeps.next() else {
            let Ok(stream) = freed.recv() else { return };
            sweeps.free(stream);
            continue;
        };
        let piece = readers[read.stream].piece(0, read.at, most);
        // A stream may end before its title.
        let _ = outputs[read.stream].send(piece);
    }
}

/// A stream that takes its title's bytes out of the buffers that were filled for it.
struct TitleStream {
    number: usize,
    left: u64,
    free: Sender<usize>,
    has_begun: bool,
    input: Receiver<FilledBuffer>,
    /// The buffer that it takes bytes out of, and how many it has taken.
    current: Option<(VerifiedBytes, usize)>,
}

impl TitleStream {
    fn offer(&self, buffers: u32) {
        // Without a reading thread there is no input either, which is an error.
        for _ in 0..buffers {
            let _ = self.free.send(self.number);
        }
    }
}

impl Read for TitleStream {
    fn read(&mut self, memory: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 || memory.is_empty() {
            return Ok(0);
        }
        if !std::mem::replace(&mut self.has_begun, true) {
            self.offer(BUFFERS);
        }
        let (bytes, taken) = match self.current.take() {
            Some(current) => current,
            None => {
                let piece = self.input.recv().map_err(io::Error::other)?;
                (piece.map_err(io::Error::other)?, 0)
            }
        };
        let now = memory.len().min(bytes.len() - taken);
        memory[..now].copy_from_slice(&bytes[taken..taken + now]);
        self.left -= now as u64;
        if taken + now < bytes.len() {
            self.current = Some((bytes, taken + now));
        } else {
            drop(bytes);
            self.offer(1);
        }
        Ok(now)
    }
}

/// Bytes of one write.
const PART: usize = 1 << 20;

/// Looks whether a mount is still in use, and the time between two.
const LOOKS: u32 = 100;
const LOOK_AGAIN: Duration = Duration::from_millis(20);
