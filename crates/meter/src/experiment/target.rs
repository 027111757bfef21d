//! The target of an experiment: as the user names it, and open.
//!
//! ```text
//!   TargetSpec ── open: make, fill ──▶ OpenTarget ── port ──▶ Port      (port selection: port.rs)
//!     sim:MODEL      disk model in virtual time    Simulated
//!     null:          the meter alone               Null
//!     s3://BUCKET    objects made for the run      Bucket
//!     PATH           directory, file or device     Local
//! ```

use crate::blame::beneath;
use crate::error::MeterError;
use crate::observer::Observer;
use crate::s3::{Access, Address, TestObjects};
use crate::target::{FileSet, FillLevel, Layout, TargetStorage, Wanted, WriteAccess};
use device::Method;
use disk::DiskModel;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use units::ByteCount;

/// The target of an experiment as the user names it.
#[derive(Clone)]
pub struct TargetSpec {
    /// A path, `s3://BUCKET[/PREFIX]`, `sim:MODEL` or `null:`.
    pub target: String,
    /// The total size of the files that are made in a directory or bucket.
    pub size: ByteCount,
    /// Fill the target's file system to this percentage first.
    pub fill_level: Option<u64>,
    /// Read and write through the page cache.
    pub buffered: bool,
    /// Overwrite an existing file or device.
    pub destructive: bool,
    /// The kernel interface by which a single file is read.
    pub method: Method,
    /// Empty the page cache of the target's files before each run.
    pub drop_caches: bool,
    /// Endpoint, keys and certificates of buckets.
    pub access: Access,
}

/// A target that is made, filled and open.
pub(super) enum OpenTarget {
    /// A disk model in virtual time.
    Simulated { model: Box<DiskModel>, shape: FileSet },
    /// Files or a device of this machine, by the real clock.
    Local {
        path: PathBuf,
        place: Box<TargetStorage>,
        method: Method,
        /// Space reserved until the end of the experiment.
        #[expect(dead_code, reason = "kept, and nothing else")]
        ballast: Option<FillLevel>,
        drop_caches: bool,
    },
    /// No storage: measures the cost of the meter itself.
    Null { shape: FileSet },
    /// Objects by the S3 protocol.
    Bucket { objects: Arc<TestObjects>, shape: FileSet },
}

/// The prefix of a disk model's name or file.
const SIMULATED: &str = "sim:";

/// The name of the target without storage.
const NULL: &str = "null:";

/// The disk model that `target` names after `sim:`; `None` for other targets.
pub(super) fn disk_model(target: &str) -> Result<Option<DiskModel>, MeterError> {
    let Some(name) = target.strip_prefix(SIMULATED) else { return Ok(None) };
    let model = device::disk_model(name);
    Ok(Some(model.map_err(|error| MeterError::of(&error).into_usage())?))
}

impl TargetSpec {
    /// Refuses an address that no experiment on storage can use, and refuses local options for
    /// targets that are not local.
    pub(super) fn check(&self) -> Result<(), MeterError> {
        if self.target.contains("://") && !self.is_bucket() {
            let message = format!("{} is nothing that can be measured so", self.target);
            return Err(MeterError::usage(message)
                .hint("titles at http:// are played by `meter run` and `meter capacity`"));
        }
        let local = self.method != Method::Best
            || self.buffered
            || self.drop_caches
            || self.destructive
            || self.fill_level.is_some();
        if local && (self.is_simulated() || self.is_null() || self.is_bucket()) {
            let message = format!("{} is no file of this machine's", self.target);
            return Err(MeterError::usage(message).hint(
                "leave out --method, --buffered, --drop-caches, --destroy and --fill-level",
            ));
        }
        Ok(())
    }

    pub(super) fn is_simulated(&self) -> bool {
        self.target.starts_with(SIMULATED)
    }

    /// Whether there is no storage behind the meter.
    pub(super) fn is_null(&self) -> bool {
        self.target == NULL
    }

    pub(super) fn is_bucket(&self) -> bool {
        Address::is(&self.target)
    }

    /// Whether the target is one file or device that exists, a simulated disk, or no storage.
    pub(super) fn is_one(&self) -> bool {
        self.is_simulated()
            || self.is_null()
            || (Path::new(&self.target).exists() && !self.is_made())
    }

    /// Whether the files or objects are made for the run.
    pub(super) fn is_made(&self) -> bool {
        self.is_bucket() || Path::new(&self.target).is_dir()
    }

    /// The size of the files that are made, or the capacity of a simulated disk.
    pub(super) fn size(&self) -> Result<ByteCount, MeterError> {
        Ok(disk_model(&self.target)?.map_or(self.size, |model| model.capacity()))
    }

    /// The files and their sizes for at most `streams` streams with slots of `slot` bytes.
    pub(super) fn shape(
        &self,
        layout: Layout,
        streams: u32,
        slot: u64,
    ) -> Result<FileSet, MeterError> {
        Ok(FileSet::of(layout, self.size()?, streams, slot))
    }

    /// Makes and fills the files that are needed, and opens the target.
    pub(super) fn open(
        &self,
        shape: FileSet,
        writes: bool,
        observer: &dyn Observer,
    ) -> Result<OpenTarget, MeterError> {
        if let Some(model) = disk_model(&self.target)? {
            return Ok(OpenTarget::Simulated { model: Box::new(model), shape });
        }
        if self.is_null() {
            return Ok(OpenTarget::Null { shape });
        }
        if self.is_bucket() {
            return self.open_bucket(shape, writes, observer);
        }
        let path = Path::new(&self.target);
        if let Err(error) = path.metadata() {
            return Err(MeterError::new(format!("{}: {error}", self.target))
                .hint("name a directory, a file or a block device that is there"));
        }
        // Before the files are made, so that they are laid out as on a full file system.
        let ballast = self.ballast(path, shape.size(), observer)?;
        let writing = match (writes, self.destructive) {
            (false, _) => WriteAccess::No,
            (true, false) => WriteAccess::OwnFiles,
            (true, true) => WriteAccess::Destructive,
        };
        let wanted = Wanted { shape, direct: !self.buffered, writing };
        let place = TargetStorage::at(path, &wanted, &mut filling(shape.size(), observer))?;
        if !self.buffered && !place.is_direct() {
            observer.note(&format!(
                "{} is used through the page cache, so this may be memory's speed: its file \
                 system cannot do without",
                self.target
            ));
        }
        let method = self.method_on(path);
        let (path, place, drop_caches) = (path.to_owned(), Box::new(place), self.drop_caches);
        Ok(OpenTarget::Local { path, place, method, ballast, drop_caches })
    }

    /// Reserves space until the file system reaches the requested fill level, not counting the
    /// `size` bytes of the run.
    fn ballast(
        &self,
        path: &Path,
        size: ByteCount,
        observer: &dyn Observer,
    ) -> Result<Option<FillLevel>, MeterError> {
        let Some(percent) = self.fill_level else { return Ok(None) };
        if !path.is_dir() {
            return Err(MeterError::usage("--fill-level is for a directory")
                .hint("name one on the file system that is to be full"));
        }
        let ballast = FillLevel::make(path, percent, size)?;
        if ballast.is_none() {
            observer.note(&format!("its file system is more than {percent} % full already"));
        }
        Ok(ballast)
    }

    /// The kernel interface for files at `path`.
    ///
    /// FUSE takes twelve asynchronous requests and blocks the thread that submits one more, which
    /// would delay all streams of that thread. With one thread for each read only that read waits,
    /// as for players of different viewers.
    fn method_on(&self, path: &Path) -> Method {
        let kind = beneath(path).file_system.unwrap_or_default();
        match self.method {
            Method::Best if kind.starts_with("fuse") => Method::Threads,
            method => method,
        }
    }

    fn open_bucket(
        &self,
        shape: FileSet,
        writes: bool,
        observer: &dyn Observer,
    ) -> Result<OpenTarget, MeterError> {
        // S3 has no request that changes a part of an object.
        if writes && shape.layout != Layout::FilePerFrame {
            return Err(MeterError::usage("an object cannot be written in part")
                .hint("say --layout file-per-frame: an object for each frame"));
        }
        let address = Address::parse(&self.target)?;
        let FileSet { files, each, .. } = shape;
        let mut show = filling(shape.size(), observer);
        let made = TestObjects::make(self.access.clone(), address, files, each, &mut show)?;
        Ok(OpenTarget::Bucket { objects: Arc::new(made), shape })
    }
}

/// Reports how much of `size` bytes is filled; the callback returns false once the user stops.
fn filling(size: ByteCount, observer: &dyn Observer) -> impl FnMut(u64) -> bool {
    move |done| {
        observer.bytes("filling", done, size.0);
        !observer.is_stopped()
    }
}

impl OpenTarget {
    pub(super) fn shape(&self) -> FileSet {
        match self {
            Self::Simulated { shape, .. } => *shape,
            Self::Local { place, .. } => place.shape(),
            Self::Bucket { shape, .. } | Self::Null { shape } => *shape,
        }
    }

    /// The device and the method of a target that is a single file or device of this machine.
    fn single(&self) -> Option<(&device::FileDevice, Method)> {
        match self {
            Self::Local { place, method, .. } => match &**place {
                TargetStorage::One { device, .. } => Some((device, *method)),
                TargetStorage::Many { .. } => None,
            },
            Self::Simulated { .. } | Self::Bucket { .. } | Self::Null { .. } => None,
        }
    }

    /// Whether each operation blocks until it is complete.
    pub(super) fn is_blocking(&self) -> bool {
        let blocking = [Method::Pread, Method::Preadv2, Method::Mmap, Method::MmapAll];
        self.single().is_some_and(|(_, method)| blocking.contains(&method))
    }

    /// Whether one thread submits all operations to a queue of the kernel.
    pub(super) fn is_queued(&self) -> bool {
        self.single().is_some() && !self.is_blocking()
    }

    /// Sets the kernel interface for the following runs. Pages that a mapping has read are dropped
    /// from memory before each run; otherwise the next run would read them from there.
    pub(super) fn set_method(&mut self, new: Method) {
        if let Self::Local { place, method, drop_caches, .. } = self {
            *method = new;
            let mapped = matches!(new, Method::Mmap | Method::MmapAll);
            *drop_caches = mapped || !place.is_direct();
        }
    }

    /// All kernel interfaces for a single file or device, each with the kernel's error if it
    /// refuses; empty for any other target.
    pub(super) fn methods(&self) -> Vec<(Method, io::Result<()>)> {
        self.single().map(|(device, _)| device.methods()).unwrap_or_default()
    }

    /// The caches that may have answered, for reports.
    pub(super) fn caches(&self) -> &'static str {
        match self {
            Self::Simulated { .. } => "none: it is a model of a disk",
            Self::Null { .. } => "none: there is nothing behind the meter",
            Self::Bucket { .. } => "none here; those of the server as they were",
            Self::Local { place, .. } if place.is_direct() => {
                "past the page cache; those of the storage itself as they were"
            }
            Self::Local { drop_caches: true, .. } => {
                "cold: the page cache was emptied of the files before each run; those of the \
                 storage itself as they were"
            }
            Self::Local { .. } => {
                "warm: through the page cache, which may still have what was written or read before"
            }
        }
    }
}
