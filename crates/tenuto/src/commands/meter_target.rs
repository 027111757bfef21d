//! What the meter's commands measure, as the command line names it.

use super::trust::{identity, trust};
use crate::WHOLE;
use crate::cli::Args;
use crate::failure::{Code, Failure};
use crate::out::{self, Bar};
use device::Method;
use disk::DiskModel;
use meter::blame::beneath;
use meter::s3::{Access, Address, MadeObjects, S3Error};
use meter::target::{Ballast, Layout, Place, PlaceError, Shape, Wanted, Writing};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use units::ByteCount;

/// What is asked for.
#[derive(Clone)]
pub(super) struct Spot {
    pub(super) target: String,
    pub(super) size: ByteCount,
    pub(super) fill_level: Option<u64>,
    pub(super) buffered: bool,
    pub(super) destructive: bool,
    pub(super) method: Method,
    pub(super) drop_caches: bool,
    /// Where buckets are.
    access: Access,
}

/// What is there: made, filled and open.
pub(super) enum Target {
    /// In virtual time.
    Simulated { model: Box<DiskModel>, shape: Shape },
    /// By the clock on the wall.
    Real {
        path: PathBuf,
        place: Box<Place>,
        method: Method,
        /// Holds its space until the end.
        #[expect(dead_code, reason = "kept, and nothing else")]
        ballast: Option<Ballast>,
        drop_caches: bool,
    },
    /// Nothing: what the meter itself takes.
    Nothing { shape: Shape },
    /// Objects by the S3 protocol.
    Bucket { objects: Arc<MadeObjects>, shape: Shape },
}

/// What stands before a model's name.
pub(super) const SIMULATED: &str = "sim:";

/// The name of the target that is nothing.
const NULL: &str = "null:";

impl Spot {
    pub(super) fn new(args: &Args<'_>, method: Method) -> Result<Self, Failure> {
        let Some(target) = args.maybe::<String>("target") else {
            return Err(Failure::usage("--target is missing").hint(
                "a directory, a file, a block device, s3://BUCKET, a title's address, sim:MODEL, or \
                 null:",
            ));
        };
        if target.contains("://") && !Address::is(&target) {
            return Err(Failure::usage(format!("{target} is nothing that can be measured so"))
                .hint("titles at http:// are played by `meter run` and `meter capacity`"));
        }
        let destructive = args.maybe::<String>("destructive");
        if destructive.as_ref().is_some_and(|named| *named != target) {
            return Err(Failure::usage("--destructive names something else than --target")
                .hint("what is written over is named twice, so that no slip of the pen does it"));
        }
        let spot = Self {
            target,
            size: args.get("size"),
            fill_level: args.maybe("fill-level"),
            buffered: args.has("buffered"),
            destructive: destructive.is_some(),
            method,
            drop_caches: args.has("drop-caches"),
            access: access(args)?,
        };
        let local = spot.method != Method::Best
            || spot.buffered
            || spot.drop_caches
            || spot.destructive
            || spot.fill_level.is_some();
        if local && (spot.is_simulated() || spot.is_null() || Address::is(&spot.target)) {
            return Err(Failure::usage(format!("{} is no file of this machine's", spot.target))
                .hint(
                    "leave out --method, --buffered, --drop-caches, --destructive and --fill-level",
                ));
        }
        Ok(spot)
    }

    pub(super) fn is_simulated(&self) -> bool {
        self.target.starts_with(SIMULATED)
    }

    /// Whether nothing is measured but the meter.
    pub(super) fn is_null(&self) -> bool {
        self.target == NULL
    }

    /// Whether it is there and is one file or device, or a simulated disk, or nothing.
    pub(super) fn is_one(&self) -> bool {
        self.is_simulated()
            || self.is_null()
            || (Path::new(&self.target).exists() && !self.is_made())
    }

    /// What `--size` makes, or what a simulated disk has.
    pub(super) fn size(&self) -> Result<ByteCount, Failure> {
        Ok(self.model()?.map_or(self.size, |model| model.capacity()))
    }

    pub(super) fn is_bucket(&self) -> bool {
        Address::is(&self.target)
    }

    /// Whether what is measured is made first.
    pub(super) fn is_made(&self) -> bool {
        Address::is(&self.target) || Path::new(&self.target).is_dir()
    }

    /// What `--size` makes, for so many streams at most; what there is, if it is there already.
    pub(super) fn shape(&self, layout: Layout, streams: u32, slot: u64) -> Result<Shape, Failure> {
        Ok(Shape::of(layout, self.size()?, streams, slot))
    }

    /// Makes and fills what is to be used, if there is nothing.
    pub(super) fn open(
        &self,
        shape: Shape,
        writes: bool,
        stop: &AtomicBool,
        bar: &Bar,
    ) -> Result<Target, Failure> {
        if let Some(model) = self.model()? {
            return Ok(Target::Simulated { model: Box::new(model), shape });
        }
        if self.is_null() {
            return Ok(Target::Nothing { shape });
        }
        if WHOLE && Address::is(&self.target) {
            return self.bucket(shape, writes, stop, bar);
        }
        let path = Path::new(&self.target);
        if let Err(error) = path.metadata() {
            return Err(Failure::new(format!("{}: {error}", self.target))
                .hint("name a directory, a file or a block device that is there"));
        }
        let size = shape.size();
        let ballast = match self.fill_level {
            Some(_) if !path.is_dir() => {
                return Err(Failure::usage("--fill-level is for a directory")
                    .hint("name one on the file system that is to be full"));
            }
            Some(percent) => {
                let ballast = Ballast::make(path, percent, size)?;
                if ballast.is_none() {
                    out::note(&format!("its file system is more than {percent} % full already"));
                }
                ballast
            }
            None => None,
        };
        let mut show = |done| {
            bar.bytes("filling", done, Some(size.0));
            !stop.load(Ordering::Relaxed)
        };
        let writing = match (writes, self.destructive) {
            (false, _) => Writing::No,
            (true, false) => Writing::OwnFiles,
            (true, true) => Writing::Destructive,
        };
        let wanted = Wanted { shape, direct: !self.buffered, writing };
        let place = Place::at(path, &wanted, &mut show)?;
        if !self.buffered && !place.is_direct() {
            out::note(&format!(
                "{} is used through the page cache, so this may be memory's speed: its file \
                 system cannot do without",
                self.target
            ));
        }
        let method = self.method_on(path);
        let (path, place, drop_caches) = (path.to_owned(), Box::new(place), self.drop_caches);
        Ok(Target::Real { path, place, method, ballast, drop_caches })
    }

    /// FUSE lets twelve pieces of asynchronous reads be under way and puts who asks for more to sleep,
    /// and with one thread for all streams all of them. Each in a thread of its own waits for itself, as
    /// players do.
    fn method_on(&self, path: &Path) -> Method {
        let kind = beneath(path).file_system.unwrap_or_default();
        match self.method {
            Method::Best if kind.starts_with("fuse") => Method::Threads,
            method => method,
        }
    }

    fn bucket(
        &self,
        shape: Shape,
        writes: bool,
        stop: &AtomicBool,
        bar: &Bar,
    ) -> Result<Target, Failure> {
        if writes && shape.layout != Layout::FilePerFrame {
            return Err(Failure::usage("an object cannot be written in part")
                .hint("say --layout file-per-frame: an object for each frame"));
        }
        let address = Address::parse(&self.target)?;
        let size = shape.size();
        let mut show = |done| {
            bar.bytes("filling", done, Some(size.0));
            !stop.load(Ordering::Relaxed)
        };
        let Shape { files, each, .. } = shape;
        let made = MadeObjects::make(self.access.clone(), address, files, each, &mut show)?;
        Ok(Target::Bucket { objects: Arc::new(made), shape })
    }

    fn model(&self) -> Result<Option<DiskModel>, Failure> {
        let Some(name) = self.target.strip_prefix(SIMULATED) else { return Ok(None) };
        let model = DiskModel::preset(name).ok_or_else(|| {
            Failure::usage(format!("there is no disk model '{name}'"))
                .hint("`tenuto disk models` lists them")
        })?;
        Ok(Some(model))
    }
}

impl Target {
    pub(super) fn shape(&self) -> Shape {
        match self {
            Self::Simulated { shape, .. } => *shape,
            Self::Real { place, .. } => place.shape(),
            Self::Bucket { shape, .. } | Self::Nothing { shape } => *shape,
        }
    }

    /// Whether operations are made one after another, each to its end.
    pub(super) fn is_blocking(&self) -> bool {
        let one_by_one = [Method::Pread, Method::Preadv2, Method::Mmap, Method::MmapAll];
        match self {
            Self::Real { place, method, .. } => {
                matches!(**place, Place::One { .. }) && one_by_one.contains(method)
            }
            Self::Simulated { .. } | Self::Bucket { .. } | Self::Nothing { .. } => false,
        }
    }

    /// From now on by this of the kernel's ways. What a mapping has read is dropped from memory before
    /// each run, or it would be read from there.
    pub(super) fn read_by(&mut self, by: Method) {
        if let Self::Real { place, method, drop_caches, .. } = self {
            *method = by;
            let mapped = matches!(by, Method::Mmap | Method::MmapAll);
            *drop_caches = mapped || !place.is_direct();
        }
    }

    /// The kernel's ways of reading a single file or device, and why it refuses those that it
    /// refuses; of anything else there are none to choose from.
    pub(super) fn methods(&self) -> Vec<(Method, io::Result<()>)> {
        match self {
            Self::Real { place, .. } => match &**place {
                Place::One { device, .. } => device.methods(),
                Place::Many { .. } => Vec::new(),
            },
            Self::Simulated { .. } | Self::Bucket { .. } | Self::Nothing { .. } => Vec::new(),
        }
    }

    /// Whether one thread hands all operations to a file's or a device's queue.
    pub(super) fn is_queued(&self) -> bool {
        match self {
            Self::Real { place, .. } => matches!(**place, Place::One { .. }) && !self.is_blocking(),
            Self::Simulated { .. } | Self::Bucket { .. } | Self::Nothing { .. } => false,
        }
    }

    /// How much of what comes may come from memory, for reports.
    pub(super) fn caches(&self) -> &'static str {
        match self {
            Self::Simulated { .. } => "none: it is a model of a disk",
            Self::Nothing { .. } => "none: there is nothing behind the meter",
            Self::Bucket { .. } => "none here; those of the server as they were",
            Self::Real { place, .. } if place.is_direct() => {
                "past the page cache; those of the storage itself as they were"
            }
            Self::Real { drop_caches: true, .. } => {
                "cold: the page cache was emptied of the files before each run; those of the \
                 storage itself as they were"
            }
            Self::Real { .. } => {
                "warm: through the page cache, which may still have what was written or read before"
            }
        }
    }
}

/// What the command line says, and where it says nothing the environment.
fn access(args: &Args<'_>) -> Result<Access, Failure> {
    let mut access = Access::from_variables(&|name| std::env::var(name).ok());
    if let Some(endpoint) = args.maybe("endpoint") {
        access.endpoint = endpoint;
    }
    if let Some(region) = args.maybe("region") {
        access.region = region;
    }
    access.trust = trust(args)?;
    access.identity = identity(args)?;
    Ok(access)
}

impl From<S3Error> for Failure {
    fn from(error: S3Error) -> Self {
        let code = match error {
            S3Error::Address(_)
            | S3Error::NoEndpoint
            | S3Error::Endpoint(_)
            | S3Error::Trust(_)
            | S3Error::Identity(_) => Code::Usage,
            _ => return Self::of(&error.to_string()),
        };
        Self::of(&error.to_string()).code(code)
    }
}

impl From<PlaceError> for Failure {
    fn from(error: PlaceError) -> Self {
        let code = match error {
            PlaceError::WouldDestroy(_) | PlaceError::OneFile { .. } => Code::Usage,
            _ => return Self::of(&error.to_string()),
        };
        Self::of(&error.to_string()).code(code)
    }
}
