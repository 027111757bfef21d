//! Titles from a store into the bucket, and back.
//!
//! Some connections are used at the same time, because one waits for the server most of the time.
//! Parts are made, and written into a store, in their order. A fill that is cancelled ends at once,
//! also where the server is silent: its downloads are not waited for.
//!
//! ```text
//!   part ──▶ a peer has it ─┬─ its hash is right ─────────────────────────┬─▶ store
//!                           └─ no peer, no room, wrong bytes ─▶ bucket ───┘
//! ```

use crate::{BucketError, DamagedPlace, Manifest, PARTS, Part, TitleBucket, check_name, tried};
use media::TitleIndex;
use s3::{S3Client, S3Error, S3ErrorKind};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::thread::scope;
use std::time::Duration;
use store::{JobProgress, StoreAccess, StoreError, TitleReader, TitleRecord};
use units::ByteCount;

/// The result of a push.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pushed {
    /// Bytes of the title.
    pub bytes: u64,
    /// Number of parts, the index among them.
    pub parts: u64,
    /// Number of parts that were written; the others were there.
    pub written: u64,
    /// Whether the bucket keeps a client from replacing a manifest that another one has written at
    /// the same time. `None`: the title was there, and no manifest was written.
    pub keeps_conditions: Option<bool>,
}

/// How a title is pushed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PushOptions {
    /// Whether the content of parts that are there is read and verified. Those with other content
    /// are written again.
    pub verify: bool,
}

/// How a title is filled.
#[derive(Clone, Default)]
pub struct FillOptions {
    /// Whether it takes the place of the title of the store that has its name, if there is one.
    pub replaces: bool,
    /// Who is asked for a part before the bucket is.
    pub peers: Option<Arc<dyn PartPeers>>,
}

/// A title that was filled.
#[derive(Clone, Debug)]
pub struct FilledTitle {
    /// The title.
    pub title: TitleRecord,
    /// The title whose place it took: its space is to be given back.
    pub replaced: Option<TitleRecord>,
    /// Bytes of its parts that came from peers; the others came from the bucket.
    pub peer_bytes: u64,
}

/// Stores elsewhere that may have a title, and are asked for its parts.
pub trait PartPeers: Send + Sync {
    /// The bytes of a part; `None` where no peer has them, or has time for them now. `is_right`:
    /// whether bytes are those of the part. May be called by several threads at a time, for
    /// different parts.
    fn part(&self, wanted: &WantedPart, is_right: &dyn Fn(&[u8]) -> bool) -> Option<Vec<u8>>;
}

/// A part of a title, as a peer that has the title can find it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedPart {
    /// The name of the title.
    pub title: String,
    /// The identity of its content.
    pub content: String,
    /// The track, in the order of the index.
    pub track: u16,
    /// The bytes of the track's data.
    pub range: Range<u64>,
}

impl TitleBucket {
    /// Writes a title of a store into the bucket. Of a title that is there with the same content,
    /// parts are written that are missing or of another size.
    ///
    /// # Errors
    /// [`BucketError::Exists`] for a title of this name with other content,
    /// [`BucketError::Damaged`] for one whose manifest cannot be read, and failures of the store
    /// and the bucket. The title is not in the bucket then; parts of it may be, and are not written
    /// again the next time.
    pub fn push(
        &self,
        source: &dyn StoreAccess,
        title: &str,
        progress: &mut dyn FnMut(JobProgress),
        cancel: &AtomicBool,
    ) -> Result<Pushed, BucketError> {
        self.push_with(source, title, PushOptions::default(), progress, cancel)
    }

    /// Writes a title of a store into the bucket like [`Self::push`], also parts whose content is
    /// damaged.
    ///
    /// # Errors
    /// Those of [`Self::push`].
    pub fn push_with(
        &self,
        source: &dyn StoreAccess,
        title: &str,
        options: PushOptions,
        progress: &mut dyn FnMut(JobProgress),
        cancel: &AtomicBool,
    ) -> Result<Pushed, BucketError> {
        check_name(title)?;
        let record = source.store().find(title)?;
        let is_there = match self.manifest(title) {
            Ok(there) => {
                let pushed = already(&record, &there)?;
                if !options.verify && self.has_parts(&there, cancel)? {
                    return Ok(pushed);
                }
                true
            }
            Err(BucketError::NoTitle { .. }) => false,
            Err(error) => return Err(error),
        };
        let reader = source.store().reader(record.id, source.background_io())?;
        let index = reader.index().encode();
        let mut manifest = Manifest::of(&record, Part::of(&index));
        let mut pushed = Pushed { bytes: record.bytes, ..Pushed::default() };
        let clients = self.clients()?;
        scope(|scope| {
            let (done, results) = channel();
            let mut uploads = Vec::new();
            for client in &clients {
                let (upload, parts): (_, Receiver<(Part, Vec<u8>)>) = sync_channel(0);
                let done = done.clone();
                scope.spawn(move || {
                    for (part, content) in parts {
                        let result = self.put_part(client, &part, &content, title, options);
                        let failed = result.is_err();
                        if done.send(result).is_err() || failed {
                            break;
                        }
                    }
                });
                uploads.push(upload);
            }
            drop(done);
            let uploads = Uploads { uploads, next: 0, results, pushed: &mut pushed };
            uploads.all(&reader, index, &mut manifest, progress, cancel)
        })?;
        if !is_there {
            pushed.keeps_conditions = Some(self.put_manifest(&clients[0], &manifest)?);
        }
        Ok(pushed)
    }

    /// Whether all parts of a title are there and of the right size.
    fn has_parts(&self, manifest: &Manifest, cancel: &AtomicBool) -> Result<bool, BucketError> {
        let client = self.client()?;
        for part in manifest.parts() {
            if cancel.load(Ordering::Relaxed) {
                return Err(StoreError::Cancelled.into());
            }
            if tried(|| client.size(&self.key(PARTS, &part.sha256)))? != Some(part.bytes) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Copies a title of the bucket into a store that has none of its name. The copy has the
    /// content and the time of the one that was pushed.
    ///
    /// # Errors
    /// [`BucketError::NoTitle`], [`BucketError::Damaged`] for a part with other content than its
    /// name says, and failures of the store and the bucket. Nothing of the title is left then.
    ///
    /// `progress` is called also while nothing arrives, so that it can cancel.
    pub fn fill(
        &self,
        target: &dyn StoreAccess,
        title: &str,
        progress: &mut dyn FnMut(JobProgress),
        cancel: &AtomicBool,
    ) -> Result<TitleRecord, BucketError> {
        let filled = self.fill_with(target, title, FillOptions::default(), progress, cancel)?;
        Ok(filled.title)
    }

    /// Copies a title of the bucket into a store like [`Self::fill`], also in the place of one of
    /// its name, and with parts that peers have.
    ///
    /// # Errors
    /// Those of [`Self::fill`]. The title whose place it was to take is left as it was then.
    pub fn fill_with(
        &self,
        target: &dyn StoreAccess,
        title: &str,
        options: FillOptions,
        progress: &mut dyn FnMut(JobProgress),
        cancel: &AtomicBool,
    ) -> Result<FilledTitle, BucketError> {
        let FillOptions { replaces, peers } = options;
        let mut waiting = |done, total| {
            progress(JobProgress { stage: "filling", done, total });
            !cancel.load(Ordering::Relaxed)
        };
        let (bucket, named) = (self.clone(), title.to_owned());
        let opening = requested(move || bucket.open(&named));
        let (manifest, index) = received(&opening, || waiting(0, None))??;
        let damaged = |what: String| BucketError::Damaged {
            title: title.to_owned(),
            what,
            place: DamagedPlace::Manifest,
        };
        let sizes = index.tracks.iter().map(|track| track.data_len);
        let named = manifest
            .tracks
            .iter()
            .map(|parts| parts.iter().fold(0, |sum: u64, part| sum.saturating_add(part.bytes)));
        if !sizes.clone().eq(named) {
            return Err(damaged("its index is another title's".to_owned()));
        }
        let writer = match replaces {
            true => target.store().begin_beside(title, index.kind)?,
            false => target.store().begin(title, index.kind)?,
        };
        let mut writer = writer.with_io(target.background_io()).created(manifest.created);
        writer.declare(&sizes.map(ByteCount).collect::<Vec<_>>())?;
        writer.declare_index(ByteCount(manifest.index.bytes))?;
        let parts = placed(&manifest);
        let from = PartSources { bucket: self.clone(), title, content: &manifest.content, peers };
        let downloads = from.downloads(&parts)?;
        let total = Some(manifest.bytes);
        let (mut done, mut peer_bytes) = (0, 0);
        for (part, download) in parts.iter().zip(downloads.iter().cycle()) {
            let (content, is_of_peer) = received(download, || waiting(done, total))??;
            writer.write(part.track, &content)?;
            done += part.part.bytes;
            peer_bytes += if is_of_peer { part.part.bytes } else { 0 };
            if !waiting(done, total) {
                return Err(StoreError::Cancelled.into());
            }
        }
        writer.set_texts(index.texts);
        if let Some(thumbnails) = index.thumbnails {
            writer.set_thumbnails(thumbnails);
        }
        let tracks = index.tracks.into_iter().map(|track| (track.description, track.ldus));
        let (title, replaced) = writer.seal_in_place(tracks.collect())?;
        Ok(FilledTitle { title, replaced, peer_bytes })
    }

    /// What the bucket knows of a title, and its index.
    fn open(&self, title: &str) -> Result<(Manifest, TitleIndex), BucketError> {
        let client = self.client()?;
        let manifest = self.read_manifest(&client, title)?;
        let index = self.get_part(&client, title, &manifest.index)?;
        let index = TitleIndex::decode(&index).map_err(|error| BucketError::Damaged {
            title: title.to_owned(),
            what: format!("its index cannot be read: {error}"),
            place: DamagedPlace::Manifest,
        })?;
        Ok((manifest, index))
    }

    /// What the bucket knows of a title, as [`Self::manifest`]; not waited for when `ends` is set.
    ///
    /// # Errors
    /// Those of [`Self::manifest`], and [`StoreError::Cancelled`].
    pub fn manifest_until(&self, title: &str, ends: &AtomicBool) -> Result<Manifest, BucketError> {
        let (bucket, title) = (self.clone(), title.to_owned());
        let reading = requested(move || bucket.manifest(&title));
        received(&reading, || !ends.load(Ordering::Relaxed))?
    }

    fn clients(&self) -> Result<Vec<S3Client>, S3Error> {
        (0..self.connections).map(|_| self.client()).collect()
    }

    /// Writes a part if it is not there, or verified and damaged; whether it was written.
    fn put_part(
        &self,
        client: &S3Client,
        part: &Part,
        content: &[u8],
        title: &str,
        options: PushOptions,
    ) -> Result<bool, BucketError> {
        let key = self.key(PARTS, &part.sha256);
        if tried(|| client.size(&key))? == Some(part.bytes) {
            if !options.verify {
                return Ok(false);
            }
            match self.get_part(client, title, part) {
                Ok(_) => return Ok(false),
                Err(BucketError::Damaged { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        tried(|| client.put(&key, content))?;
        Ok(true)
    }

    /// Reads a part and compares it with its name.
    pub(crate) fn get_part(
        &self,
        client: &S3Client,
        title: &str,
        part: &Part,
    ) -> Result<Vec<u8>, BucketError> {
        let key = self.key(PARTS, &part.sha256);
        let damaged = |what: &str| BucketError::Damaged {
            title: title.to_owned(),
            what: format!("{} {what}", client.place(&key)),
            place: DamagedPlace::Part,
        };
        let read = tried(|| client.get(&key, part.bytes));
        let content = read.map_err(|error| match error.kind {
            S3ErrorKind::NoSuchKey => damaged("is not there"),
            S3ErrorKind::TooLarge => damaged("is longer than its manifest says"),
            _ => error.into(),
        })?;
        if Part::of(&content) == *part {
            Ok(content)
        } else {
            Err(damaged("has other content than its name says"))
        }
    }

    /// Writes a manifest where there is none of this title; whether the bucket keeps to conditions.
    fn put_manifest(&self, client: &S3Client, manifest: &Manifest) -> Result<bool, BucketError> {
        let json = serde_json::to_vec(manifest).expect("a manifest is JSON");
        let keeps = self.keeps_conditions(client)?;
        let key = self.manifest_key(&manifest.title);
        // A repeated request may find its own first one; then the content is the same.
        let is_new = tried(|| client.put_new(&key, &json))?;
        if !is_new && self.read_manifest(client, &manifest.title)?.content != manifest.content {
            return Err(BucketError::Exists { title: manifest.title.clone() });
        }
        Ok(keeps)
    }

    /// Whether the bucket refuses to write an object that is there, where the client asks for that.
    fn keeps_conditions(&self, client: &S3Client) -> Result<bool, BucketError> {
        let key = self.key("", PROBE);
        tried(|| client.put_new(&key, b"1"))?;
        Ok(!tried(|| client.put_new(&key, b"1"))?)
    }
}

/// The result of a push of a title that the bucket has.
fn already(record: &TitleRecord, there: &Manifest) -> Result<Pushed, BucketError> {
    if there.content != record.content().to_string() {
        return Err(BucketError::Exists { title: record.name.clone() });
    }
    let parts = there.parts().count() as u64;
    Ok(Pushed { bytes: record.bytes, parts, ..Pushed::default() })
}

/// A part of a track, with its place in the track.
struct PlacedPart<'a> {
    track: u16,
    offset: u64,
    part: &'a Part,
}

/// The parts of all tracks in their order.
fn placed(manifest: &Manifest) -> Vec<PlacedPart<'_>> {
    let mut all = Vec::new();
    for (track, parts) in (0..).zip(&manifest.tracks) {
        let mut offset = 0;
        for part in parts {
            all.push(PlacedPart { track, offset, part });
            offset += part.bytes;
        }
    }
    all
}

/// Where the parts of a title come from.
struct PartSources<'a> {
    bucket: TitleBucket,
    title: &'a str,
    content: &'a str,
    peers: Option<Arc<dyn PartPeers>>,
}

impl PartSources<'_> {
    /// Starts a thread for each connection, with each its share of the parts, in their order. The
    /// threads end when nobody receives any more.
    fn downloads(&self, parts: &[PlacedPart<'_>]) -> Result<Vec<Receiver<Download>>, BucketError> {
        let clients = self.bucket.clients()?;
        let connections = clients.len();
        let start = |(number, client): (usize, S3Client)| {
            let (done, download) = sync_channel(0);
            let own = parts.iter().skip(number).step_by(connections).map(|placed| {
                let PlacedPart { track, offset, part } = *placed;
                let range = offset..offset + part.bytes;
                let (title, content) = (self.title.to_owned(), self.content.to_owned());
                (WantedPart { title, content, track, range }, part.clone())
            });
            let own: Vec<(WantedPart, Part)> = own.collect();
            let (bucket, peers) = (self.bucket.clone(), self.peers.clone());
            std::thread::spawn(move || {
                for (wanted, part) in own {
                    let is_right = |content: &[u8]| Part::of(content) == part;
                    let of_peer = peers.as_ref().and_then(|all| all.part(&wanted, &is_right));
                    let content = match of_peer {
                        Some(content) => Ok((content, true)),
                        None => {
                            let content = bucket.get_part(&client, &wanted.title, &part);
                            content.map(|content| (content, false))
                        }
                    };
                    let failed = content.is_err();
                    if done.send(content).is_err() || failed {
                        break;
                    }
                }
            });
            download
        };
        Ok(clients.into_iter().enumerate().map(start).collect())
    }
}

/// The content of a part and whether it is of a peer, or why it cannot be had.
type Download = Result<(Vec<u8>, bool), BucketError>;

/// Makes a request on a thread of its own, which ends when the request does.
fn requested<T: Send + 'static>(request: impl FnOnce() -> T + Send + 'static) -> Receiver<T> {
    let (done, result) = sync_channel(1);
    std::thread::spawn(move || {
        // Whoever has asked may not wait any more.
        let _ = done.send(request());
    });
    result
}

/// Waits for a result for as long as `goes_on`.
fn received<T>(result: &Receiver<T>, mut goes_on: impl FnMut() -> bool) -> Result<T, BucketError> {
    loop {
        match result.recv_timeout(LOOK) {
            Ok(result) => return Ok(result),
            Err(RecvTimeoutError::Timeout) if goes_on() => {}
            Err(RecvTimeoutError::Timeout) => return Err(StoreError::Cancelled.into()),
            Err(RecvTimeoutError::Disconnected) => {
                unreachable!("a thread sends a result for each of its requests")
            }
        }
    }
}

/// The threads that write parts, each at its turn.
struct Uploads<'a> {
    uploads: Vec<SyncSender<(Part, Vec<u8>)>>,
    next: usize,
    results: Receiver<Result<bool, BucketError>>,
    pushed: &'a mut Pushed,
}

impl Uploads<'_> {
    /// Writes all parts of a title, and waits for the last.
    fn all<A: StoreAccess>(
        mut self,
        reader: &TitleReader<A>,
        index: Vec<u8>,
        manifest: &mut Manifest,
        progress: &mut dyn FnMut(JobProgress),
        cancel: &AtomicBool,
    ) -> Result<(), BucketError> {
        self.upload(manifest.index.clone(), index)?;
        let mut done = 0;
        for (number, track) in (0..).zip(&reader.record().tracks) {
            let mut parts = Vec::new();
            let mut at = 0;
            while at < track.bytes {
                let mut content = Vec::with_capacity(PART);
                while content.len() < PART && at < track.bytes {
                    let piece = reader.piece(number, at, PART - content.len())?;
                    at += piece.len() as u64;
                    content.extend_from_slice(&piece);
                }
                let part = Part::of(&content);
                parts.push(part.clone());
                done += part.bytes;
                self.upload(part, content)?;
                progress(JobProgress { stage: "pushing", done, total: Some(manifest.bytes) });
                if cancel.load(Ordering::Relaxed) {
                    return Err(StoreError::Cancelled.into());
                }
            }
            manifest.tracks.push(parts);
        }
        self.uploads.clear();
        while let Ok(result) = self.results.recv() {
            self.pushed.written += u64::from(result?);
        }
        Ok(())
    }

    fn upload(&mut self, part: Part, content: Vec<u8>) -> Result<(), BucketError> {
        while let Ok(result) = self.results.try_recv() {
            self.pushed.written += u64::from(result?);
        }
        let upload = &self.uploads[self.next % self.uploads.len()];
        self.next += 1;
        self.pushed.parts += 1;
        if upload.send((part, content)).is_err() {
            // The thread has ended, after it sent why.
            while let Ok(result) = self.results.recv() {
                result?;
            }
        }
        Ok(())
    }
}

/// Time between looks at whether a fill is cancelled.
const LOOK: Duration = Duration::from_millis(100);

/// Bytes of a part, except for the last of a track.
const PART: usize = 16 << 20;

/// An object by which conditions are tried out.
const PROBE: &str = "conditions";
