//! Durable changes of the catalogue: journal entries, checkpoints, superblocks.
//!
//! Invariants that hold at any moment, also after a power cut:
//! 1. At least two superblock copies are whole and equal; they refer to two checkpoints.
//! 2. At least one of these checkpoints is whole (both, except while one is being rewritten).
//! 3. The ring holds all entries since the *older* checkpoint, so that either one, with the
//!    entries after it, gives the complete catalogue.
//! 4. An entry is written only after everything that it refers to is durable, and acknowledged
//!    only after it is durable itself.
//!
//! To keep invariant 3, a checkpoint is written whenever the entries since the newest one would
//! take more than half of the ring.

use crate::catalogue::Catalogue;
use crate::format::bytes::Malformed;
use crate::format::journal::{self, JournalPosition};
use crate::format::layout::{StoreLayout, superblock_places};
use crate::format::record::Record;
use crate::format::superblock::{CheckpointRef, SIZE, Superblock, SuperblockCopy};
use crate::format::{BLOCK, VERSION, checkpoint};
use crate::{Finding, FindingKind, StoreError};
use device::{BlockDevice, DeviceError};
use media::checksum;
use std::ops::Range;
use std::sync::Arc;
use units::{ByteCount, Hinted, align_up};
use uuid::Uuid;

/// The head of the journal of an open store.
#[derive(Debug)]
pub(crate) struct Log {
    device: Arc<dyn BlockDevice>,
    pub(crate) superblock: Superblock,
    pub(crate) head: JournalPosition,
}

impl Log {
    /// Starts a new store: writes `catalogue` to both checkpoints, then the superblocks.
    pub(crate) fn create(
        device: Arc<dyn BlockDevice>,
        superblock: Superblock,
        catalogue: &Catalogue,
    ) -> Result<Self, StoreError> {
        let head = superblock.checkpoints[0].next;
        let mut log = Self { device, superblock, head };
        for slot in [0, 1] {
            // The slots are crossed (1 first) because the two checkpoints must never share one.
            log.superblock.checkpoints[slot] =
                log.write_checkpoint(1 - slot, &catalogue.encode())?;
        }
        log.device.flush()?;
        // The superblock is last: a power cut before it leaves a device without a store, not a
        // broken one.
        log.write_superblocks()?;
        Ok(log)
    }

    /// Whether an entry with this many bytes of records needs a checkpoint first.
    pub(crate) fn needs_checkpoint(&self, records: usize) -> bool {
        let ring = self.ring();
        let bytes = journal::footprint(records);
        // Counts the bytes skipped at the ring's end too, which are lost to other entries.
        let end = self.head.start_for(bytes, ring) + bytes;
        // Half for the entries since the newest checkpoint and half for those between the two, so
        // that no entry since the older one is overwritten (invariant 3).
        end - self.superblock.checkpoints[0].next.place > ring / 2
    }

    /// Writes one entry and flushes: when this returns, the change is durable.
    pub(crate) fn append(&mut self, records: &[u8]) -> Result<(), StoreError> {
        assert!(records.len() <= journal::MAX_ENTRY, "the caller makes several entries of more");
        let entry = journal::encode(&self.head, self.ring(), self.superblock.uuid, records);
        // Positions grow for ever; the place on the disk goes round.
        let at = self.superblock.layout.journal.start + entry.start % self.ring();
        self.device.write_at(at, &entry.bytes)?;
        self.device.flush()?;
        // Only after the flush: until then the entry may be lost, and nothing may count on it.
        self.head = entry.after;
        Ok(())
    }

    /// Writes a checkpoint of `catalogue` (its records) at the head, in place of the older one.
    pub(crate) fn checkpoint(&mut self, catalogue: &[u8]) -> Result<(), StoreError> {
        let [newest, before] = self.superblock.checkpoints;
        // The older slot is the one that may be lost; the newest stays whole if the power fails
        // here.
        let written = self.write_checkpoint(before.slot, catalogue)?;
        // The checkpoint must be durable before a superblock refers to it.
        self.device.flush()?;
        // Taken before the fields change: the parent is the superblock that is on the disk now.
        self.superblock.parent = self.superblock.checksum();
        self.superblock.sequence += 1;
        self.superblock.checkpoints = [written, newest];
        self.write_superblocks()
    }

    /// Makes `uuid` the store's identity. A power cut leaves the identity before it or the new one.
    pub(crate) fn relabel(&mut self, uuid: Uuid) -> Result<(), StoreError> {
        self.superblock.parent = self.superblock.checksum();
        self.superblock.sequence += 1;
        self.superblock.given = Some(uuid);
        self.write_superblocks()
    }

    /// Makes `layout`, which is larger, the store's. `catalogue`: its records. A power cut leaves
    /// the old or the new layout.
    pub(crate) fn grow(&mut self, layout: StoreLayout, catalogue: &[u8]) -> Result<(), StoreError> {
        self.superblock.parent = self.superblock.checksum();
        self.superblock.sequence += 1;
        let before = std::mem::replace(&mut self.superblock.layout, layout);
        let ring = self.superblock.layout.journal.clone();
        if ring != before.journal {
            // What was in the new ring before must not look like entries of this store.
            for at in ring.clone().step_by(WRITE) {
                let length = usize_of(ring.end - at).min(WRITE);
                self.device.write_at(at, &vec![0; length])?;
            }
            // Both hold everything, so that no entry of the old ring is needed.
            for (place, slot) in [1, 0].into_iter().enumerate() {
                self.superblock.checkpoints[place] = self.write_checkpoint(slot, catalogue)?;
            }
        }
        let bytes = self.superblock.encode();
        let places = self.superblock.layout.superblocks();
        // The last copy is in added space and does not count before a second one is there. After
        // the first one, they are two; until then the other three are the old ones.
        for copy in [3, 0, 1, 2] {
            self.device.write_at(places[copy], &bytes)?;
            self.device.flush()?;
        }
        Ok(())
    }

    fn write_checkpoint(&self, slot: usize, catalogue: &[u8]) -> Result<CheckpointRef, StoreError> {
        let room = &self.superblock.layout.checkpoints[slot];
        let mut bytes = checkpoint::encode(self.superblock.uuid, self.head.sequence, catalogue);
        let length = bytes.len() as u64;
        let (needed, holds) = (ByteCount(length), ByteCount(room.end - room.start));
        if needed > holds {
            return Err(StoreError::CatalogueFull { needed, holds });
        }
        // Before the padding: the reference names the length without it.
        let checksum = checksum(&bytes);
        bytes.resize(usize_of(align_up(length, BLOCK)), 0);
        for (i, piece) in bytes.chunks(WRITE).enumerate() {
            self.device.write_at(room.start + (i * WRITE) as u64, piece)?;
        }
        Ok(CheckpointRef { slot, checksum, bytes: length, next: self.head })
    }

    pub(crate) fn write_superblocks(&self) -> Result<(), StoreError> {
        write_superblocks(self.device.as_ref(), &self.superblock)
    }

    fn ring(&self) -> u64 {
        self.superblock.layout.journal.end - self.superblock.layout.journal.start
    }
}

/// Writes all four copies, two at a time.
pub(crate) fn write_superblocks(
    device: &dyn BlockDevice,
    superblock: &Superblock,
) -> Result<(), StoreError> {
    let bytes = superblock.encode();
    let places = superblock.layout.superblocks();
    // A flush between the pairs keeps two whole copies of the old or the new superblock at any
    // moment, one of them at the front, where it is found on a device of any size.
    for pair in [[0, 2], [1, 3]] {
        for copy in pair {
            device.write_at(places[copy], &bytes)?;
        }
        // A crash during the writes damages at most two copies.
        device.flush()?;
    }
    Ok(())
}

/// The state read from a device with a store.
#[derive(Debug)]
pub(crate) struct LoadedLog {
    pub(crate) log: Log,
    pub(crate) catalogue: Catalogue,
    /// Defects without loss of data.
    pub(crate) findings: Vec<Finding>,
    /// Whether the newest checkpoint could not be read, and the one before it and the journal
    /// replaced it.
    pub(crate) newest_is_bad: bool,
}

/// Reads superblocks, checkpoints and journal. Writes nothing.
pub(crate) fn load(device: Arc<dyn BlockDevice>) -> Result<LoadedLog, StoreError> {
    let mut findings = Vec::new();
    let superblock = read_superblock(device.as_ref(), &mut findings)?;
    load_from(device, superblock, findings)
}

/// Reads the checkpoints and the journal to which a superblock refers. Writes nothing. `findings`:
/// those of the superblock.
pub(crate) fn load_from(
    device: Arc<dyn BlockDevice>,
    superblock: Superblock,
    mut findings: Vec<Finding>,
) -> Result<LoadedLog, StoreError> {
    let found = device.geometry().size;
    let formatted = ByteCount(superblock.layout.size);
    // Positions beyond the end would fail one by one later; nothing can be healed on a shorter
    // device.
    if found < formatted {
        return Err(StoreError::Shrunk { formatted, found });
    }
    let mut catalogue = None;
    for (from, place) in superblock.checkpoints.iter().enumerate() {
        // Both are read although one is enough: damage to the other must be found while it can be
        // healed. The catalogue is made of one: with many titles that is most of the work.
        let loaded = match catalogue {
            None => load_checkpoint(device.as_ref(), &superblock, place)
                .map(|loaded| catalogue = Some((from, loaded))),
            Some(_) => with_checkpoint(device.as_ref(), &superblock, place, |_| Ok(())),
        };
        if let Err(error) = loaded {
            let text = format!("checkpoint in slot {}: {error}", place.slot);
            findings.push(Finding::of_store(FindingKind::Checkpoint, text));
        }
    }
    // Of the older one, too, the journal still holds the changes since.
    let Some((from, mut catalogue)) = catalogue else {
        return Err(StoreError::Damaged { what: "neither checkpoint can be read".to_owned() });
    };
    let ring = read_range(device.as_ref(), &superblock.layout.journal)?;
    let mut head = superblock.checkpoints[from].next;
    replay(&ring, &mut head, &mut catalogue, &superblock, &mut findings)?;
    // Acknowledged changes are missing: opening would lose them silently.
    if head.sequence < superblock.checkpoints[0].next.sequence {
        let what = format!("the journal ends at entry {}, before the checkpoint", head.sequence);
        return Err(StoreError::Damaged { what });
    }
    let log = Log { device, superblock, head };
    Ok(LoadedLog { log, catalogue, findings, newest_is_bad: from == 1 })
}

fn load_checkpoint(
    device: &dyn BlockDevice,
    superblock: &Superblock,
    place: &CheckpointRef,
) -> Result<Catalogue, Malformed> {
    let mut catalogue = Catalogue::default();
    with_checkpoint(device, superblock, place, |records| {
        Record::decode_all(records, |record| catalogue.apply(record))
    })?;
    Ok(catalogue)
}

/// Reads and verifies a checkpoint, and passes on its encoded records.
fn with_checkpoint(
    device: &dyn BlockDevice,
    superblock: &Superblock,
    place: &CheckpointRef,
    then: impl FnOnce(&[u8]) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    let start = superblock.layout.checkpoints[place.slot].start;
    let range = start..start + align_up(place.bytes, BLOCK);
    let bytes = read_range(device, &range).map_err(|error| Malformed(error.one_line()))?;
    then(checkpoint::records(&bytes, place, superblock.uuid)?)
}

fn replay(
    ring: &[u8],
    head: &mut JournalPosition,
    catalogue: &mut Catalogue,
    superblock: &Superblock,
    findings: &mut Vec<Finding>,
) -> Result<(), StoreError> {
    while let Some(entry) = journal::read(ring, head, superblock.uuid) {
        let sequence = head.sequence;
        let damaged = |error: Malformed| StoreError::Damaged {
            what: format!("journal entry {sequence} makes no sense: {error}"),
        };
        // One good copy is enough to count; the finding makes the store write both anew.
        if !entry.whole {
            let text = format!("one of the two copies of journal entry {sequence} is not whole");
            findings.push(Finding::of_store(FindingKind::Journal, text));
        }
        Record::decode_all(entry.records, |record| catalogue.apply(record)).map_err(damaged)?;
        *head = entry.after;
    }
    // An entry beyond the end of the journal proves that one before it was lost.
    match journal::newest_beyond(ring, head.sequence, superblock.uuid) {
        None => Ok(()),
        Some(newest) => Err(StoreError::Damaged {
            what: format!(
                "journal entry {} cannot be read, although there are entries up to {newest}",
                head.sequence
            ),
        }),
    }
}

/// The newest superblock with two valid copies. Copies that differ from it are findings.
pub(crate) fn read_superblock(
    device: &dyn BlockDevice,
    findings: &mut Vec<Finding>,
) -> Result<Superblock, StoreError> {
    let (copies, error) = read_copies(device);
    let chosen = choose(&copies, error)?;
    findings.extend(differences(&copies, &chosen));
    Ok(chosen)
}

/// The superblock that opening the store uses; if there is none, the newest valid copy, and why it
/// is not used. Copies that differ from it are findings.
pub(crate) fn read_any_superblock(
    device: &dyn BlockDevice,
    findings: &mut Vec<Finding>,
) -> Result<(Superblock, Option<String>), StoreError> {
    let (copies, error) = read_copies(device);
    let (chosen, damage) = match choose(&copies, error) {
        Ok(chosen) => (chosen, None),
        Err(StoreError::Damaged { what }) => match valid(&copies).max_by_key(|it| it.sequence) {
            Some(newest) => (newest.clone(), Some(what)),
            None => return Err(StoreError::Damaged { what }),
        },
        Err(other) => return Err(other),
    };
    findings.extend(differences(&copies, &chosen));
    Ok((chosen, damage))
}

/// The copies, and the last error of a read.
fn read_copies(device: &dyn BlockDevice) -> ([SuperblockCopy; 4], Option<DeviceError>) {
    let (size, mut failed) = (device.geometry().size.0, None);
    let mut read = |place: u64| {
        let mut block = vec![0; SIZE];
        if place + SIZE as u64 > size {
            return SuperblockCopy::Nothing;
        }
        if let Err(error) = device.read_at(place, &mut block) {
            failed = Some(error);
            return SuperblockCopy::Nothing;
        }
        Superblock::decode(&block)
    };
    // A store may be smaller than its device, or grown: the first copy that can be read gives the
    // places of the others. If the front is lost, the device's size gives that of the last one.
    let first = superblock_places(size).map(&mut read);
    let said = valid(&first).next().map(|superblock| superblock.layout.superblocks());
    let copies = match said {
        Some(places) if places != superblock_places(size) => places.map(&mut read),
        _ => first,
    };
    (copies, failed)
}

fn valid(copies: &[SuperblockCopy; 4]) -> impl Iterator<Item = &Superblock> {
    copies.iter().filter_map(|copy| match copy {
        SuperblockCopy::Valid(superblock) => Some(superblock.as_ref()),
        _ => None,
    })
}

/// A finding for each copy that is not this superblock.
fn differences(copies: &[SuperblockCopy; 4], chosen: &Superblock) -> Vec<Finding> {
    let text = |(i, copy): (usize, &SuperblockCopy)| match copy {
        SuperblockCopy::Valid(other) if **other == *chosen => None,
        SuperblockCopy::Valid(other) => Some(format!("copy {i} is of update {}", other.sequence)),
        SuperblockCopy::OtherVersion(version) => {
            Some(format!("copy {i} says it is of version {version}"))
        }
        SuperblockCopy::Broken(error) => Some(format!("copy {i}: {error}")),
        SuperblockCopy::Nothing => Some(format!("copy {i} is no superblock")),
    };
    let texts = copies.iter().enumerate().filter_map(text);
    texts.map(|text| Finding::of_store(FindingKind::Superblock, text)).collect()
}

/// `error`: of reading a copy.
fn choose(
    copies: &[SuperblockCopy; 4],
    error: Option<DeviceError>,
) -> Result<Superblock, StoreError> {
    let valid: Vec<&Superblock> = valid(copies).collect();
    // One valid copy alone may be stale or from a torn update, so a copy counts only with its twin.
    let twice = |it: &&&Superblock| valid.iter().filter(|other| *other == *it).count() >= 2;
    if let Some(newest) = valid.iter().filter(twice).max_by_key(|it| it.sequence) {
        return Ok((*newest).clone());
    }
    // Only without a usable superblock: a store of this version may have a stale copy of another.
    let version = copies.iter().find_map(|copy| match copy {
        SuperblockCopy::OtherVersion(version) => Some(*version),
        _ => None,
    });
    if let Some(found) = version {
        return Err(StoreError::Version { found, known: VERSION });
    }
    if copies.iter().all(|copy| *copy == SuperblockCopy::Nothing) {
        // What cannot be read may be a store.
        if let Some(error) = error {
            return Err(error.into());
        }
        return Err(StoreError::NotAStore { what: "this".to_owned() });
    }
    let what =
        format!("{} of the 4 superblock copies can be read, 2 alike are needed", valid.len());
    Err(StoreError::Damaged { what })
}

pub(crate) fn read_range(
    device: &dyn BlockDevice,
    range: &Range<u64>,
) -> Result<Vec<u8>, StoreError> {
    let mut bytes = vec![0; usize_of(range.end - range.start)];
    for (i, piece) in bytes.chunks_mut(WRITE).enumerate() {
        device.read_at(range.start + (i * WRITE) as u64, piece)?;
    }
    Ok(bytes)
}

fn usize_of(bytes: u64) -> usize {
    usize::try_from(bytes).expect("metadata fits in memory")
}

/// The size of the pieces in which metadata is read and written.
const WRITE: usize = 1 << 20;
