//! The target of an experiment: as the user names it, and open.
//!
//! ```text
//!   TargetSpec ── open: make, fill ──▶ OpenTarget ── port ──▶ Port      (port selection: port.rs)
//!     sim:MODEL      disk model in virtual time    Simulated
//!     null:          the meter alone               Null
//!     s3://BUCKET    objects made for the run      Bucket
//!     PATH           directory, file or device     Local
//! ```

use super::agents_page;
use super::agents_target::{AgentsConfig, AgentsTarget};
use crate::blame::{Stack, beneath};
use crate::bucket::TestObjects;
use crate::error::MeterError;
use crate::fleet::{WorkerTask, WorkerWork};
use crate::observer::Observer;
use crate::report::{Block, Page};
use crate::target::{
    FILL_PATIENCE, FileSet, FillLevel, Filling, FrameNames, Layout, NamedFiles, TargetNeeds,
    TargetStorage, Verifier, VerifyReport, WriteAccess, fill_aside,
};
use device::Method;
use disk::DiskModel;
use s3::{S3Access, S3Address};
use serde_json::{Value, json};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use units::ByteCount;
use units::show::count;

/// The target of an experiment as the user names it.
#[derive(Clone, Default)]
pub struct TargetSpec {
    /// A path, `s3://BUCKET[/PREFIX]`, `sim:MODEL` or `null:`.
    pub target: String,
    /// Whether the path may have symbolic links.
    pub path: TargetPath,
    /// The total size of the files that are made in a directory or bucket.
    pub size: ByteCount,
    /// Fill the target's file system to this percentage first.
    pub fill_level: Option<u64>,
    /// The names of files that each hold a frame; `None` for numbers.
    pub names: Option<FrameNames>,
    /// Read the files with these names that are there, instead of making any.
    pub existing: bool,
    /// Read and write through the page cache.
    pub buffered: bool,
    /// Overwrite an existing file or device.
    pub destructive: bool,
    /// The kernel interface by which a single file is read.
    pub method: Method,
    /// Empty the page cache of the target's files before each run.
    pub drop_caches: bool,
    /// Write recognisable data, and verify what is read.
    pub verify: bool,
    /// Endpoint, keys and certificates of buckets.
    pub access: S3Access,
    /// The machines on which the target is; `None` for this one.
    pub agents: Option<AgentsConfig>,
}

/// How the path of a target is understood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TargetPath {
    /// As a user types it: symbolic links are followed.
    #[default]
    Typed,
    /// Resolved and checked before: a link that is there now is refused, because it was put there
    /// after the check and may lead anywhere.
    Resolved,
}

/// What the files of a target have to be, beyond their number and size.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FileNeeds {
    /// The number of the set of files, of those that this program makes in one directory.
    pub(super) set: u32,
    /// The largest number of clips of a sequence.
    pub(super) clips: u32,
    /// The size of a frame.
    pub(super) frame: ByteCount,
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
        /// Verifies what is read, where that is wanted.
        verifier: Option<Arc<Verifier>>,
    },
    /// No storage: measures the cost of the meter itself.
    Null { shape: FileSet },
    /// Objects by the S3 protocol.
    Bucket { objects: Arc<TestObjects>, shape: FileSet },
    /// A target on other machines.
    Agents(Box<AgentsTarget>),
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
        let elsewhere = self.is_simulated() || self.is_null() || self.is_bucket();
        if elsewhere && self.agents.is_some() {
            return Err(MeterError::usage(format!("agents cannot measure {}", self.target))
                .hint("name a directory or a file on each agent"));
        }
        // An agent checks its own target.
        let makes_files = self.agents.is_some() || Path::new(&self.target).is_dir();
        if self.verify && !makes_files {
            return Err(MeterError::usage("--verify is for files that the meter makes")
                .hint("name a directory as --target"));
        }
        if self.existing && self.names.is_none() {
            return Err(MeterError::usage("--existing needs --names")
                .hint("write the pattern of the files' names, such as A001C003_%07d.dpx"));
        }
        if self.names.is_some() && !makes_files {
            return Err(MeterError::usage("--names is for files in a directory")
                .hint("name a directory as --target"));
        }
        if self.existing && self.verify {
            return Err(MeterError::usage("--verify is for files that the meter makes")
                .hint("leave out --existing, or --verify"));
        }
        let local = self.method != Method::Best
            || self.buffered
            || self.drop_caches
            || self.destructive
            || self.fill_level.is_some();
        if local && elsewhere {
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
        S3Address::is(&self.target)
    }

    /// Whether the target is one file or device that exists, a simulated disk, or no storage.
    pub(super) fn is_one(&self) -> bool {
        self.is_simulated()
            || self.is_null()
            || (self.agents.is_none() && Path::new(&self.target).exists() && !self.is_made())
    }

    /// Whether all of the target is used, whatever its `size`.
    pub fn is_used_whole(&self) -> bool {
        self.is_one() && !self.is_null()
    }

    /// Whether the files or objects are made for the run.
    pub(super) fn is_made(&self) -> bool {
        self.is_bucket() || (self.agents.is_none() && Path::new(&self.target).is_dir())
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
        files: FileNeeds,
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
        let path = &self.resolved().map_err(|error| {
            MeterError::new(format!("{}: {error}", self.target))
                .hint("name a directory, a file or a block device that is there")
        })?;
        note_left_behind(path, observer);
        // Before the files are made, so that they are laid out as on a full file system.
        let ballast = self.ballast(path, shape.size(), observer)?;
        let writing = match (writes, self.destructive) {
            (false, _) => WriteAccess::No,
            (true, false) => WriteAccess::OwnFiles,
            (true, true) => WriteAccess::Destructive,
        };
        let (set, named) = (files.set, self.named(shape, files, writes)?);
        let (direct, left) = (!self.buffered, observer.left_behind());
        let wanted = TargetNeeds { shape, set, named, direct, writing, left };
        let at = path.to_owned();
        let make = move |go_on: &mut dyn FnMut(u64) -> bool| TargetStorage::at(&at, &wanted, go_on);
        let place = fill_aside(FILL_PATIENCE, make, &mut |state| {
            state.note(&self.target).iter().for_each(|note| observer.note(note));
            if let Filling::Bytes(done) = state {
                observer.bytes("filling", done, shape.size().0);
            }
            !observer.is_stopped()
        })?;
        if !self.buffered && !place.is_direct() {
            observer.note(&format!(
                "{} is used through the page cache, so this may be memory's speed: its file \
                 system cannot do without",
                self.target
            ));
        }
        let method = self.method_on(path);
        let (path, place, drop_caches) = (path.to_owned(), Box::new(place), self.drop_caches);
        let verifier = self.verify.then(Arc::default);
        Ok(OpenTarget::Local { path, place, method, ballast, drop_caches, verifier })
    }

    /// The names of the files, if they are not numbers.
    fn named(
        &self,
        shape: FileSet,
        files: FileNeeds,
        writes: bool,
    ) -> Result<Option<NamedFiles>, MeterError> {
        let Some(names) = &self.names else { return Ok(None) };
        if shape.layout != Layout::FilePerFrame {
            return Err(MeterError::usage("--names is for a file per frame")
                .hint("`meter run --profile dpx10-2k` or --layout file-per-frame has one"));
        }
        if self.existing && writes {
            return Err(MeterError::usage("frames that are there are only read")
                .hint("leave out --existing: the meter then makes frames of its own"));
        }
        let (names, clips) = (names.clone(), files.clips);
        let existing = self.existing.then_some(files.frame);
        Ok(Some(NamedFiles { names, clips, existing }))
    }

    /// The path without symbolic links.
    fn resolved(&self) -> io::Result<PathBuf> {
        let path = Path::new(&self.target);
        match self.path {
            TargetPath::Typed => path.canonicalize(),
            TargetPath::Resolved => path.metadata().map(|_| path.to_owned()),
        }
    }

    /// Has agents open the target for `work`.
    pub(super) fn open_on(
        &self,
        agents: &AgentsConfig,
        work: WorkerWork,
        observer: &dyn Observer,
    ) -> Result<OpenTarget, MeterError> {
        let target = AgentsTarget::open(agents, &[self.task(work)], observer)?;
        Ok(OpenTarget::Agents(Box::new(target)))
    }

    /// What a worker of an agent prepares for `work`.
    pub(super) fn task(&self, work: WorkerWork) -> WorkerTask {
        WorkerTask {
            target: self.target.clone(),
            size: self.size.0,
            fill_level: self.fill_level,
            buffered: self.buffered,
            drop_caches: self.drop_caches,
            verify: self.verify,
            method: self.method.name().to_owned(),
            work,
        }
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
        let address = S3Address::parse(&self.target)?;
        let FileSet { files, each, .. } = shape;
        let mut show = filling(shape.size(), observer);
        let (access, left) = (self.access.clone(), observer.left_behind());
        let made = TestObjects::make(access, address, files, each, left, &mut show)?;
        Ok(OpenTarget::Bucket { objects: Arc::new(made), shape })
    }
}

/// Refuses storage that returned other data than was written.
pub(super) fn verified_whole(report: &VerifyReport) -> Result<(), MeterError> {
    if report.differ == 0 {
        return Ok(());
    }
    let first = report.lines().into_iter().next().unwrap_or_default();
    let pages = count(report.differ, "page");
    let differ = if report.differ == 1 { "differs" } else { "differ" };
    Err(MeterError::damaged(format!("{pages} {differ} from what was written: {first}"))
        .hint("`verify` in --json lists the places; is the storage's own check clean?"))
}

/// Tells the user what meters that were killed have left in the directory `dir`.
pub(super) fn note_left_behind(dir: &Path, observer: &dyn Observer) {
    let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let notes = observer.left_behind().of_ended_meters(&dir, !beneath(&dir).is_local());
    notes.iter().for_each(|note| observer.note(note));
}

/// Reports how much of `size` bytes is filled; the callback returns false once the user stops.
fn filling(size: ByteCount, observer: &dyn Observer) -> impl FnMut(u64) -> bool {
    move |done| {
        observer.bytes("filling", done, size.0);
        !observer.is_stopped()
    }
}

impl OpenTarget {
    /// The agents of a target on other machines.
    pub(super) fn agents(&self) -> Option<&AgentsTarget> {
        match self {
            Self::Agents(agents) => Some(agents),
            _ => None,
        }
    }

    /// What was verified until now, where that is wanted.
    pub(super) fn verified(&self) -> Option<VerifyReport> {
        match self {
            Self::Local { verifier, .. } => verifier.as_deref().map(Verifier::report),
            Self::Agents(agents) => agents.verified(),
            _ => None,
        }
    }

    /// Refuses results of which a part was lost, and storage that returned other data than was
    /// written.
    pub(super) fn check_whole(&self) -> Result<(), MeterError> {
        self.verified().as_ref().map_or(Ok(()), verified_whole)?;
        self.agents().map_or(Ok(()), AgentsTarget::check)
    }

    /// The directory of a run's log: agents keep none.
    pub(super) fn log_dir<'a>(&self, dir: Option<&'a Path>) -> Option<&'a Path> {
        dir.filter(|_| self.agents().is_none())
    }

    /// Adds to a page what each agent measured, if agents did.
    pub(super) fn extend(&self, mut page: Page) -> Result<Page, MeterError> {
        if let Some(report) = self.verified() {
            page.blocks.push(Block::Heading("Verified".into()));
            page.blocks.push(Block::Text(format!("{report}.")));
            page.blocks.extend(report.lines().into_iter().map(Block::Text));
        }
        match self.agents() {
            Some(agents) => agents.extend(page),
            None => Ok(page),
        }
    }

    /// What each agent measured and what was verified, as text before a report.
    pub(super) fn text(&self) -> String {
        let verified = self.verified().map(|report| format!("verified: {report}\n\n"));
        let agents = self.agents().map(|agents| agents_page::text(&agents.last()) + "\n");
        verified.unwrap_or_default() + &agents.unwrap_or_default()
    }

    /// Adds to a summary which agents measured what, if agents did.
    pub(super) fn describe(&self, summary: &mut Value) {
        if let Some(report) = self.verified() {
            summary["verify"] = json!(report);
        }
        self.agents().into_iter().for_each(|agents| agents.describe(summary));
    }

    /// This target for streams beside those that use its file or device already; `None` for files
    /// that are made for one use.
    pub(super) fn shared(&self, method: Method) -> Option<Self> {
        let Self::Local { path, place, drop_caches, verifier, .. } = self else { return None };
        let TargetStorage::One { device, layout, made: false } = &**place else { return None };
        let (device, layout, made) = (Arc::clone(device), *layout, false);
        Some(Self::Local {
            path: path.clone(),
            place: Box::new(TargetStorage::One { device, layout, made }),
            method,
            ballast: None,
            drop_caches: *drop_caches,
            verifier: verifier.clone(),
        })
    }

    pub(super) fn shape(&self) -> FileSet {
        match self {
            Self::Simulated { shape, .. } => *shape,
            Self::Local { place, .. } => place.shape(),
            Self::Bucket { shape, .. } | Self::Null { shape } => *shape,
            // Of one worker: each has such files of its own.
            Self::Agents(agents) => agents.facts().shape,
        }
    }

    /// What lies beneath the target, which is at `path`.
    pub(super) fn beneath(&self, path: &str) -> Stack {
        match self {
            Self::Agents(agents) => agents.facts().stack.clone(),
            _ => beneath(Path::new(path)),
        }
    }

    /// The largest number of streams with room for `slot` bytes each in `within`.
    pub(super) fn most_streams(&self, within: FileSet, slot: u64) -> u32 {
        within.most_streams(slot).saturating_mul(self.agents().map_or(1, AgentsTarget::workers))
    }

    /// The device and the method of a target that is a single file or device of this machine.
    fn single(&self) -> Option<(&device::FileDevice, Method)> {
        match self {
            Self::Local { place, method, .. } => match &**place {
                TargetStorage::One { device, .. } => Some((device, *method)),
                TargetStorage::Many { .. } => None,
            },
            _ => None,
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
    pub(super) fn caches(&self) -> &str {
        match self {
            Self::Agents(agents) => &agents.facts().caches,
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
