//! Conversions from internal types to the documented ones, field by field.

use super::*;
use crate::plan::{PlanResult, Popularity, SharedCapacity};
use media::{SoundPurposes, TextDescription, Thumbnails, TitleIndex, TitleKind, TrackKind};
use scheduler::{CapacityResult, Resource};
use std::time::Duration;
use units::{BitRate, ByteCount, Hinted, Reason};

impl StoreInfo {
    /// An open store, with its recordings and its device's calibration.
    pub fn of(store: &store::Store) -> Self {
        let recordings = store.recordings().into_iter().map(Recording::from).collect();
        let (write_failure, scrub) = (store.write_failure().map(str::to_owned), Scrub::of(store));
        Self {
            write_failure,
            recordings,
            scrub,
            ..Self::new(&store.info(), store.calibration().as_ref())
        }
    }

    /// A store without recordings, and its device's calibration.
    pub fn new(info: &store::StoreInfo, calibration: Option<&disk::Calibration>) -> Self {
        let bytes = |chunks: u64| chunks * info.chunk.0;
        Self {
            uuid: info.uuid.to_string(),
            label: info.label.clone(),
            kind: match info.kind {
                device::DeviceKind::File => "file",
                device::DeviceKind::Block => "block",
                device::DeviceKind::Memory => "memory",
            }
            .to_owned(),
            size: info.size.0,
            chunk: info.chunk.0,
            data_bytes: bytes(info.data_chunks),
            free_bytes: bytes(info.free_chunks),
            largest_free_bytes: bytes(info.largest_free),
            titles: info.titles,
            sparse: info.sparse,
            write_failure: None,
            recordings: Vec::new(),
            scrub: None,
            calibration: calibration.map(Calibration::from),
        }
    }
}

impl From<store::RunningRecording> for Recording {
    fn from(it: store::RunningRecording) -> Self {
        Self { title: it.title, since: it.since, bytes: it.bytes }
    }
}

impl From<store::TrimReport> for TrimReport {
    fn from(report: store::TrimReport) -> Self {
        Self { bytes: report.bytes.0, sparse: report.sparse }
    }
}

impl Scrub {
    /// The scrub of a store, as it is kept with it.
    pub fn of(store: &store::Store) -> Option<Self> {
        let state = store.scrub_state()?;
        Some(Self {
            begun: state.begun,
            bytes: state.bytes,
            bytes_left: store.bytes_to_scrub(state.next),
            damage: state.found,
            last: state.last.map(|last| last.finished),
            last_damage: state.last.map(|last| last.found),
        })
    }
}

impl From<&store::TitleRecord> for ListedTitle {
    fn from(record: &store::TitleRecord) -> Self {
        Self {
            name: record.name.clone(),
            kind: kind_word(record.kind).to_owned(),
            duration: record.duration.as_secs_f64(),
            bytes: record.bytes,
            bit_rate: BitRate::of(ByteCount(record.bytes), record.duration).0,
            tracks: record.tracks.len(),
            created: record.created,
            content: record.content().to_string(),
            growing: false,
            // Known to the library only, which adds copies and URLs for the titles that it serves.
            copies: None,
            hls: None,
            dash: None,
            mp4: None,
        }
    }
}

impl ListedTitle {
    /// A title that is being recorded, at a time in Unix seconds.
    pub fn growing(recording: &store::RunningRecording, now: u64) -> Self {
        let duration = Duration::from_secs(now.saturating_sub(recording.since));
        let (id, bytes) = (recording.id.0, recording.bytes);
        Self {
            name: recording.title.clone(),
            kind: MEDIA_KIND.to_owned(),
            duration: duration.as_secs_f64(),
            bytes,
            bit_rate: BitRate::of(ByteCount(bytes), duration).0,
            tracks: recording.tracks,
            created: recording.since,
            content: format!("{id:x}-{bytes:x}"),
            growing: true,
            copies: None,
            hls: None,
            dash: None,
            mp4: None,
        }
    }
}

impl TitleDetail {
    /// A title and its tracks.
    pub fn new(record: &store::TitleRecord, index: &TitleIndex) -> Self {
        let tracks = record.tracks.iter().zip(&index.tracks).enumerate();
        let track_list = tracks.map(|(number, (place, track))| {
            let description = &track.description;
            ListedTrack {
                number,
                kind: match description.kind {
                    TrackKind::Video => "video",
                    TrackKind::Audio => "audio",
                    TrackKind::File => "file",
                }
                .to_owned(),
                codec: description.codec.clone(),
                language: description.language.clone(),
                title: description.title.clone(),
                purposes: purposes(description.purposes),
                width: description.width,
                height: description.height,
                sample_rate: description.sample_rate,
                channels: description.channels,
                ldus: track.ldus.len() as u64,
                bytes: track.data_len,
                bit_rate: BitRate::of(ByteCount(track.data_len), record.duration).0,
                extents: place
                    .extents
                    .iter()
                    .map(|extent| Extent { start: extent.start.0, chunks: extent.chunks })
                    .collect(),
            }
        });
        let texts = index.texts.iter().enumerate().map(|(number, text)| {
            let TextDescription { language, title, default, forced, hearing_impaired } =
                text.description.clone();
            let cues = text.cues().len() as u64;
            ListedText { number, language, title, default, forced, hearing_impaired, cues }
        });
        Self {
            title: ListedTitle::from(record),
            track_list: track_list.collect(),
            text_list: texts.collect(),
            thumbnails: index.thumbnails.as_ref().map(ListedThumbnails::from),
            index_bytes: record.index_bytes,
        }
    }
}

/// The purposes of a sound by their names.
fn purposes(purposes: SoundPurposes) -> Vec<String> {
    let SoundPurposes { visual_impaired, hearing_impaired, comment, dub } = purposes;
    let names = [
        (visual_impaired, "visual_impaired"),
        (hearing_impaired, "hearing_impaired"),
        (comment, "comment"),
        (dub, "dub"),
    ];
    names.iter().filter(|(is, _)| *is).map(|(_, name)| (*name).to_owned()).collect()
}

impl From<&Thumbnails> for ListedThumbnails {
    fn from(thumbnails: &Thumbnails) -> Self {
        let (width, height) = thumbnails.size();
        Self {
            count: thumbnails.count(),
            interval: thumbnails.interval().as_secs(),
            width,
            height,
            bytes: thumbnails.bytes(),
        }
    }
}

impl From<&store::FileOutcome> for IngestedFile {
    fn from(outcome: &store::FileOutcome) -> Self {
        let file = outcome.file.clone();
        match &outcome.result {
            Ok(report) => Self {
                file,
                title: Some(ListedTitle::from(&report.title)),
                left_out: report.left_out.clone(),
                notes: report.notes.clone(),
                error: None,
            },
            Err(error) => Self {
                file,
                title: None,
                left_out: Vec::new(),
                notes: Vec::new(),
                error: Some(Failure::from(error)),
            },
        }
    }
}

impl From<&[store::FileOutcome]> for IngestReport {
    fn from(outcomes: &[store::FileOutcome]) -> Self {
        Self { files: outcomes.iter().map(IngestedFile::from).collect() }
    }
}

impl From<&store::RepairReport> for RepairReport {
    fn from(report: &store::RepairReport) -> Self {
        let all = |findings: &[store::Finding]| findings.iter().map(Finding::from).collect();
        Self {
            repaired: all(&report.repaired),
            left: all(&report.left),
            copied: report.copied.iter().map(ListedTitle::from).collect(),
            not_copied: report.not_copied.iter().map(NotCopied::from).collect(),
            titles: report.titles,
            bytes_read: report.bytes_read,
        }
    }
}

impl From<&store::NotCopied> for NotCopied {
    fn from(store::NotCopied { title, text }: &store::NotCopied) -> Self {
        Self { title: title.clone(), text: text.clone() }
    }
}

/// The word for the end of a recording, and its failure.
fn end_of(end: &store::RecordingEnd) -> (&'static str, Option<Failure>) {
    match end {
        store::RecordingEnd::Complete => ("complete", None),
        store::RecordingEnd::Stopped => ("stopped", None),
        store::RecordingEnd::Failed(reason) => {
            let (message, hint) = (reason.message.clone(), reason.hint.clone());
            let failure = Failure { code: "recording-ended".to_owned(), message, hint };
            ("failed", Some(failure))
        }
    }
}

impl SeriesReport {
    /// The result of recording into this folder.
    pub fn new(folder: &str, report: &store::SeriesReport) -> Self {
        let (end, error) = end_of(&report.end);
        Self {
            folder: folder.to_owned(),
            parts: report.parts,
            removed: report.removed,
            bytes: report.bytes,
            duration: report.duration.as_secs_f64(),
            end: end.to_owned(),
            ended_by: None,
            left_out: report.left_out.clone(),
            notes: report.notes.clone(),
            error,
        }
    }
}

impl From<&store::RecordingReport> for RecordingReport {
    fn from(report: &store::RecordingReport) -> Self {
        let (end, error) = end_of(&report.end);
        Self {
            title: ListedTitle::from(&report.title),
            end: end.to_owned(),
            ended_by: None,
            left_out: report.left_out.clone(),
            notes: report.notes.clone(),
            error,
        }
    }
}

impl From<&store::StoreError> for Failure {
    fn from(error: &store::StoreError) -> Self {
        Self { code: error.code().to_owned(), message: error.to_string(), hint: error.hint() }
    }
}

impl From<bucket::BucketError> for Failure {
    fn from(error: bucket::BucketError) -> Self {
        Self { code: error.code().to_owned(), message: error.to_string(), hint: error.hint() }
    }
}

impl PushedTitle {
    /// The result of a push.
    pub(crate) fn new(title: &str, pushed: &bucket::Pushed, verified: bool) -> Self {
        Self {
            title: title.to_owned(),
            bytes: pushed.bytes,
            parts: pushed.parts,
            written: pushed.written,
            keeps_conditions: pushed.keeps_conditions,
            verified: Some(verified),
        }
    }
}

impl From<&store::ExportReport> for ExportReport {
    fn from(report: &store::ExportReport) -> Self {
        Self {
            title: report.title.clone(),
            out: report.out.clone(),
            bytes: report.bytes,
            texts: report.texts.clone(),
            notes: report.notes.clone(),
        }
    }
}

impl From<&store::CheckReport> for CheckReport {
    fn from(report: &store::CheckReport) -> Self {
        let all = |findings: &[store::Finding]| findings.iter().map(Finding::from).collect();
        Self {
            clean: report.is_clean(),
            findings: all(&report.findings),
            healed: all(&report.healed),
            titles: report.titles,
            bytes_read: report.bytes_read,
        }
    }
}

impl From<&store::Finding> for Finding {
    fn from(finding: &store::Finding) -> Self {
        use store::FindingKind as Kind;
        let kind = match finding.kind {
            Kind::Superblock => "superblock",
            Kind::Journal => "journal",
            Kind::Checkpoint => "checkpoint",
            Kind::Extents => "extents",
            Kind::Index => "index",
            Kind::Data => "data",
            Kind::Recording => "recording",
        };
        Self { kind: kind.to_owned(), title: finding.title.clone(), text: finding.text.clone() }
    }
}

impl From<&disk::Calibration> for Calibration {
    fn from(calibration: &disk::Calibration) -> Self {
        Self {
            slot: calibration.slot.as_secs_f64(),
            guarantees: calibration.guarantees.iter().map(ReadGuarantee::from).collect(),
            queue_depth: calibration.queue_depth,
            r0: calibration.r0.0,
            t0: calibration.t0.as_secs_f64(),
            zones: calibration
                .zones
                .iter()
                .map(|(offset, rate)| Zone { offset: offset.0, bit_rate: rate.0 })
                .collect(),
            writing: calibration.writing.map(|cost| WriteCost {
                write_size: cost.write_size.0,
                mean: cost.mean.as_secs_f64(),
                slowest: cost.slowest.as_secs_f64(),
            }),
            actuator: calibration.actuator.map(|actuator| Actuator {
                capacity: actuator.capacity.0,
                revolution: actuator.revolution.as_secs_f64(),
                shortest_seek: (actuator.seek.settle_ms + actuator.seek.track_ms) / 1e3,
                seek_root: actuator.seek.root_ms / 1e3,
                knee: actuator.seek.knee,
                full_seek: actuator.seek.full_ms / 1e3,
                following: actuator.following.map(|time| time.as_secs_f64()),
            }),
            method: calibration.method.clone(),
            measured_at: calibration.measured_at,
            measured: calibration
                .measured
                .map(|part| MeasuredPart { bytes: part.bytes.0, whole: part.whole.0 }),
            provisional: calibration.is_provisional(),
            outliers: calibration
                .outliers
                .iter()
                .map(|outlier| Outlier {
                    read_size: outlier.read_size.0,
                    at: outlier.at.as_secs_f64(),
                    delay: outlier.delay.as_secs_f64(),
                })
                .collect(),
        }
    }
}

impl From<&disk::ReadGuarantee> for ReadGuarantee {
    fn from(guarantee: &disk::ReadGuarantee) -> Self {
        Self {
            read_size: guarantee.read_size.0,
            min_read: guarantee.min_read,
            mean_read: guarantee.mean_read,
            longest_read: guarantee.longest_read.as_secs_f64(),
            longer: guarantee.longer,
            pace: ReadPace {
                once: guarantee.pace.once.as_secs_f64(),
                each: guarantee.pace.each.as_secs_f64(),
            },
        }
    }
}

impl From<&Calibration> for disk::Calibration {
    fn from(calibration: &Calibration) -> Self {
        let guarantee = |g: &ReadGuarantee| disk::ReadGuarantee {
            read_size: ByteCount(g.read_size),
            min_read: g.min_read,
            mean_read: g.mean_read,
            longest_read: seconds(g.longest_read),
            longer: g.longer,
            pace: disk::ReadPace { once: seconds(g.pace.once), each: seconds(g.pace.each) },
        };
        Self {
            slot: seconds(calibration.slot),
            guarantees: calibration.guarantees.iter().map(guarantee).collect(),
            queue_depth: calibration.queue_depth,
            r0: BitRate(calibration.r0),
            t0: seconds(calibration.t0),
            zones: calibration
                .zones
                .iter()
                .map(|zone| (ByteCount(zone.offset), BitRate(zone.bit_rate)))
                .collect(),
            writing: calibration.writing.map(|cost| disk::WriteCost {
                write_size: ByteCount(cost.write_size),
                mean: seconds(cost.mean),
                slowest: seconds(cost.slowest),
            }),
            actuator: calibration.actuator.map(|actuator| disk::Actuator {
                capacity: ByteCount(actuator.capacity),
                revolution: seconds(actuator.revolution),
                seek: disk::SeekTimes {
                    // The record has only the sum of both, the shortest seek.
                    settle_ms: 0.0,
                    track_ms: actuator.shortest_seek * 1e3,
                    root_ms: actuator.seek_root * 1e3,
                    knee: actuator.knee,
                    full_ms: actuator.full_seek * 1e3,
                },
                following: actuator.following.map(seconds),
            }),
            method: calibration.method.clone(),
            measured_at: calibration.measured_at,
            measured: calibration.measured.map(|part| disk::MeasuredPart {
                bytes: ByteCount(part.bytes),
                whole: ByteCount(part.whole),
            }),
            outliers: calibration
                .outliers
                .iter()
                .map(|outlier| disk::Outlier {
                    read_size: ByteCount(outlier.read_size),
                    at: seconds(outlier.at),
                    delay: seconds(outlier.delay),
                })
                .collect(),
        }
    }
}

impl Progress {
    /// Progress of work that is not counted in bytes: `part` from 0 to 1, kept in thousandths.
    pub fn of_part(stage: &str, part: f64) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "from 0 to 1,000"
        )]
        let done = (part.clamp(0.0, 1.0) * 1000.0) as u64;
        Self { stage: stage.to_owned(), done, total: Some(1000), event: None }
    }

    /// The completed part, from 0 to 1, of work that is not counted in bytes.
    pub fn part(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "below a thousand")]
        let part = self.done as f64 / self.total.unwrap_or(1000).max(1) as f64;
        part
    }
}

impl From<store::JobProgress> for Progress {
    fn from(progress: store::JobProgress) -> Self {
        let (stage, done, total) = (progress.stage.to_owned(), progress.done, progress.total);
        Self { stage, done, total, event: None }
    }
}

impl From<store::RecordingEvent> for RecordingEvent {
    fn from(event: store::RecordingEvent) -> Self {
        match event {
            store::RecordingEvent::Part(title) => {
                Self::Part { title: Box::new(ListedTitle::from(&*title)) }
            }
            store::RecordingEvent::Removed { title, is_expired } => {
                let why = if is_expired { "expired" } else { "full" };
                Self::PartRemoved { title, why: why.to_owned() }
            }
            store::RecordingEvent::Short { kept, wanted } => {
                Self::KeptShort { kept: kept.as_secs_f64(), wanted: wanted.as_secs_f64() }
            }
            store::RecordingEvent::LeftOut { streams } => Self::StreamsLeftOut { streams },
            store::RecordingEvent::Lost { reason, wait } => {
                let Reason { message, hint } = reason;
                Self::InputLost { message, hint, wait: wait.as_secs_f64() }
            }
        }
    }
}

impl<A> PlanReport<A> {
    /// A plan; `admitted` tells the streams of the question's policies, in their order.
    pub fn of(plan: &PlanResult, admitted: impl Fn(&[CapacityResult]) -> A) -> Self {
        let PlanResult { question, bounds, .. } = plan;
        let row = |(row, held): (&disk::plan::PlanRow, &Option<Vec<CapacityResult>>)| PlanRow {
            read_size: row.read.0,
            lasts: row.lasts.as_secs_f64(),
            ozden: row.ozden,
            any_place: row.any_place,
            zone_exact: row.zone_exact,
            usual: row.usual,
            in_memory: row.in_memory,
            admitted: held.as_deref().map(&admitted),
        };
        Self {
            disk: plan.disk.clone(),
            slot: plan.slot.as_secs_f64(),
            bit_rate: question.audience.rate().0,
            memory: question.memory.map(|memory| memory.0),
            disks: question.disks,
            ratio: bounds.ratio,
            s_max: bounds.s_max,
            r0: bounds.cost.r0.0,
            t0: bounds.cost.t0.as_secs_f64(),
            rows: bounds.rows.iter().zip(&plan.admitted).map(row).collect(),
            best: BestPlan::of(plan),
            shared: question.popularity.as_ref().zip(plan.shared).map(SharedPlan::of),
        }
    }
}

impl SharedPlan {
    fn of((popularity, shared): (&Popularity, SharedCapacity)) -> Self {
        let short = if shared.short_of_memory { Resource::Memory } else { Resource::Disk };
        Self {
            titles: popularity.titles,
            zipf: popularity.exponent,
            within: popularity.within.as_secs_f64(),
            read_size: shared.read.0,
            viewers: shared.viewers,
            streams: shared.streams,
            short_of: short.word().to_owned(),
        }
    }
}

impl BestPlan {
    fn of(plan: &PlanResult) -> Option<Self> {
        let (row, held) = plan.held()?;
        let (question, cycle) = (&plan.question, plan.cycle());
        Some(Self {
            read_size: plan.bounds.rows[row].read.0,
            streams: held.streams,
            streams_in_all: held.streams * question.disks,
            short_of: held.short_of.map(|resource| resource.word().to_owned()),
            cycle: cycle.map(|(cycle, _)| cycle.as_secs_f64()),
            buffer: cycle.map(|(_, buffer)| buffer.0),
            memory_needed: plan.memory_needed().map(|needed| needed.0),
            memory_booked: held.memory.saturating_mul(question.disks),
            startup: question.startup.as_secs_f64(),
            startup_in_rounds: plan.bounds.rows[row].lasts.as_secs_f64() * 2.0,
        })
    }
}

impl From<CapacityResult> for AdmittedStreams {
    fn from(held: CapacityResult) -> Self {
        Self {
            streams: held.streams,
            short_of: held.short_of.map(|resource| resource.word().to_owned()),
            memory_booked: held.memory,
            late_reads: held.late,
        }
    }
}

fn kind_word(kind: TitleKind) -> &'static str {
    match kind {
        TitleKind::Media => MEDIA_KIND,
        TitleKind::File => "file",
    }
}

/// Seconds from another program; an invalid number is zero.
fn seconds(value: f64) -> Duration {
    Duration::try_from_secs_f64(value).unwrap_or_default()
}
