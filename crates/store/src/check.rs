//! The search for damage: everything that is on the disk twice is compared, and everything with a
//! checksum is verified. Nothing is written; repairs are made when the store is opened.

use crate::format::bytes::Malformed;
use crate::format::label;
use crate::log;
use crate::scrub::read_title;
use crate::writer::BLOCK_SIZE;
use crate::{
    BackgroundIo, Finding, FindingKind, JobProgress, ScrubPosition, ScrubStep, Store, StoreError,
    TitleRecord, Unthrottled,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use units::Hinted;

/// The extent of a check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckOptions {
    /// Also read all data and compare it with its checksums.
    pub scrub: bool,
}

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Damage found now.
    pub findings: Vec<Finding>,
    /// Damage that was repaired from a good copy when the store was opened. A power cut during a
    /// write causes it, and so does a bad sector.
    pub healed: Vec<Finding>,
    /// Number of checked titles.
    pub titles: u64,
    /// Bytes of indexes and data that were read.
    pub bytes_read: u64,
}

impl CheckReport {
    /// Whether there is no damage left to repair.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }
}

impl Store {
    /// Checks the store without asking for permits.
    pub fn check(
        &self,
        options: &CheckOptions,
        progress: &mut dyn FnMut(JobProgress),
    ) -> Result<CheckReport, StoreError> {
        self.check_with(options, &Unthrottled, progress, &AtomicBool::new(false))
    }

    /// Checks the store and asks `io` for a permit before each read of titles.
    pub fn check_with(
        &self,
        options: &CheckOptions,
        io: &dyn BackgroundIo,
        progress: &mut dyn FnMut(JobProgress),
        cancel: &AtomicBool,
    ) -> Result<CheckReport, StoreError> {
        let mut report = CheckReport { healed: self.healed().to_vec(), ..CheckReport::default() };
        check_metadata(self, &mut report);
        for finding in self.unhealed() {
            // Most damage that is not repaired was found again just now.
            if !report.findings.contains(finding) {
                report.findings.push(finding.clone());
            }
        }
        let titles = self.titles();
        let data = |title: &TitleRecord| if options.scrub { title.bytes } else { 0 };
        let total = titles.iter().map(|title| title.index_bytes + data(title)).sum();
        for title in &titles {
            let mut found = Vec::new();
            let mut on_step = |step: ScrubStep| {
                found.extend(step.findings);
                report.bytes_read += step.bytes;
                progress(JobProgress {
                    stage: "checking",
                    done: report.bytes_read,
                    total: Some(total),
                });
                if cancel.load(Ordering::Relaxed) { Err(StoreError::Cancelled) } else { Ok(()) }
            };
            let from = options.scrub.then(|| ScrubPosition::before(title.id));
            read_title(self, title, from, io, &mut on_step)?;
            report.titles += 1;
            // A title removed during the check may have been overwritten by another, which is no
            // damage.
            if self.record(title.id).is_ok() {
                report.findings.extend(found);
            }
        }
        Ok(report)
    }

    /// Checks quickly that the device still holds this store: compares the metadata with memory,
    /// and three spans of each track of the first 32 titles with their checksums.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] with the first difference; read errors unchanged.
    pub fn probe(&self) -> Result<(), StoreError> {
        let mut report = CheckReport::default();
        check_metadata(self, &mut report);
        if let Some(finding) = report.findings.first() {
            return Err(StoreError::Damaged { what: finding.text.clone() });
        }
        // A file that is still cut short may have all that is read below.
        let last = self.layout().size - BLOCK_SIZE as u64;
        self.device().read_at(last, &mut [0; BLOCK_SIZE])?;
        for title in self.titles().iter().take(PROBED_TITLES) {
            let reader = match self.reader(title.id, &Unthrottled) {
                Ok(reader) => reader,
                // The title was removed during the probe.
                Err(StoreError::NoTitle { .. }) => continue,
                Err(error) => return Err(error),
            };
            for (number, track) in (0..).zip(&title.tracks) {
                // A device that came back shorter or with another disk's data differs at one of
                // these places.
                for at in [0, track.bytes / 2, track.bytes.saturating_sub(1)] {
                    if at < track.bytes {
                        reader.piece(number, at, 1)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Number of titles of which a probe reads spans.
const PROBED_TITLES: usize = 32;

/// Reads superblocks, checkpoints and journal again and compares them with memory.
fn check_metadata(store: &Store, report: &mut CheckReport) {
    // The lock keeps the log from changing during the comparison.
    let log = store.log();
    let loaded = match log::load(Arc::clone(store.device())) {
        Ok(loaded) => loaded,
        Err(error) => {
            report.findings.push(Finding::of_store(FindingKind::Superblock, error.finding_text()));
            return;
        }
    };
    report.findings.extend(loaded.findings);
    let mut wrong = |kind, text: &str| report.findings.push(Finding::of_store(kind, text));
    if loaded.log.superblock != log.superblock {
        wrong(FindingKind::Superblock, "the superblock is not the one last written");
    }
    if loaded.log.head != log.head || loaded.catalogue != store.state().catalogue {
        wrong(FindingKind::Journal, "the journal does not lead to the catalogue in memory");
    }
    if let Err(Malformed(text)) = loaded.catalogue.free_map(store.layout()) {
        wrong(FindingKind::Extents, &text);
    }
}

impl Store {
    /// The damage of a title's label. Playing does not use the label, so that otherwise its damage
    /// would only be noticed after the loss of the catalogue. `plays`: whether the title's index is
    /// whole.
    pub(crate) fn label_damage(
        &self,
        title: &TitleRecord,
        plays: bool,
        io: &dyn BackgroundIo,
    ) -> Option<String> {
        let mut bytes = vec![0; label::SIZE];
        let place = title.index.first()?.start.0 * self.layout().chunk;
        let _permit = io.acquire(units::ByteCount(label::SIZE as u64));
        if let Err(error) = self.device().read_at(place, &mut bytes) {
            return Some(error.one_line());
        }
        let found = label::decode(&bytes, self.uuid());
        // The name is not compared: a label keeps the first one.
        let whole = found.is_some_and(|it| it.id == title.id && it.index == title.index);
        (!whole).then(|| match plays {
            false => format!("the label of title '{}' is damaged", title.name),
            true => format!(
                "the label of title '{}' is damaged; it plays, but should the catalogue be lost, \
                 too, it would not be found again: export it and take it in anew",
                title.name
            ),
        })
    }
}
