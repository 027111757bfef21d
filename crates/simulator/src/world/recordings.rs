//! Recordings with a guaranteed rate: rounds of writes, each due when the last period has passed.
//! Rounds of a disk that wait at the same time become one write. A recording that ends keeps its
//! time until all of it is written.

use super::{Event, World};
use crate::checks::{Keeping, RecordedBytes};
use crate::disks::Work;
use engine::{DiskNumber, PermitId, ReadOutcome, RecordingId};
use scheduler::{WriteDemand, WriteJob};
use std::time::Duration;
use units::{ByteCount, Moment, align_down, nanos};

/// A recording, from when it is admitted until all of it is written.
#[derive(Debug)]
pub(super) struct Recording {
    disk: usize,
    /// Whether its rate varies.
    varies: bool,
    /// `None`: before it is admitted, and when all of it is written.
    id: Option<RecordingId>,
    /// Nothing comes any more.
    ends: bool,
    /// When its last round was due.
    last_due: Moment,
    bytes: RecordedBytes,
    /// The rounds of the present part.
    rounds: u32,
    /// Parts that have ended, and the last round of which is due: they are made titles.
    sealing: u32,
}

/// One write of a round of several recordings, from the request for its permit to its end.
#[derive(Debug)]
pub(super) struct GroupWrite {
    disk: usize,
    permit: PermitId,
    job: WriteJob,
    /// The recordings whose rounds it has.
    members: Vec<usize>,
    /// The recording whose part it ends; then it has no rounds.
    seals: Option<usize>,
    /// Parts that are in the device.
    parts: u32,
    /// Whether no part has failed so far.
    is_good: bool,
}

impl World<'_> {
    pub(super) fn schedule_recordings(&mut self) {
        let (viewers, background) = (&self.scenario.viewers, &self.scenario.background);
        let arrivals = viewers.every * viewers.count;
        for number in 0..background.recordings as usize {
            let disk = self.rng.usize(..self.disks.len());
            let at = Moment::ZERO + arrivals.mul_f64(self.rng.f64());
            // Without the share nothing is drawn, so that other worlds keep their seed.
            let share = background.recordings_vary;
            let varies = share > 0.0 && self.rng.f64() < share;
            let (last_due, bytes) = (at, RecordedBytes::default());
            self.recordings.push(Recording {
                disk,
                varies,
                id: None,
                ends: false,
                last_due,
                bytes,
                rounds: 0,
                sealing: 0,
            });
            self.schedule(at, Event::StartRecording(number));
        }
        let power_fails_at = background.power_fails_at;
        if !background.keep.is_zero() {
            for number in 0..self.titles.len() {
                if let Some(end) = self.titles[number].recorded_at() {
                    self.schedule(end, Event::PartEnds(number));
                }
            }
        }
        if !power_fails_at.is_zero() {
            self.schedule(Moment::ZERO + power_fails_at, Event::FailPower);
        }
    }

    pub(super) fn start_recording(&mut self, number: usize) {
        // Without this end the world would never come to rest.
        if self.present == 0 {
            return;
        }
        let period = self.scenario.background.recording_period;
        let disk = self.recordings[number].disk;
        let write = round_of(self.scenario.background.recording_round.0);
        let demand =
            WriteDemand { period: nanos(period), write, joins: true, shared: Some(COMMIT) };
        let on = DiskNumber(u16::try_from(disk).expect("few disks"));
        self.refusals.changed();
        let admitted = self.engine.admit_recording(self.now, on, demand);
        let word = admitted.map_or(0, |id| id.0 + 1);
        self.note("recording: disk, admitted", [disk as u64, word, 0, 0]);
        let Ok(id) = admitted else {
            self.outcome.refused_recordings += 1;
            return;
        };
        self.outcome.recordings += 1;
        self.recordings[number].id = Some(id);
        self.schedule(self.now + period, Event::RecordingRound(number));
        if self.rng.bool() {
            let after = self.exponential(Duration::from_secs(20));
            self.schedule(self.now + after, Event::EndRecording(number));
        }
    }

    pub(super) fn recording_round(&mut self, number: usize) {
        if self.recordings[number].ends {
            return;
        }
        if self.present == 0 {
            return self.end_recording(number);
        }
        let keeping = self.keeping();
        self.schedule(self.now + keeping.period, Event::RecordingRound(number));
        let recording = &mut self.recordings[number];
        recording.last_due = self.now;
        let all = keeping.round.0;
        // One round in four of a rate that varies has nothing, and one all that it may have.
        let bytes = match recording.varies.then(|| self.rng.u8(..4)) {
            Some(0) => return,
            Some(1 | 2) => align_down(self.rng.u64(1..=all), 512).max(512),
            _ => all,
        };
        self.outcome.rounds += 1;
        let has_room = recording.bytes.comes(self.now, bytes, &keeping);
        if !has_room {
            self.break_guarantee("the buffer of a recording has room", || {
                format!("recording {number}: {bytes} bytes more")
            });
        }
        let recording = &mut self.recordings[number];
        recording.rounds += 1;
        if recording.rounds == self.scenario.background.part_rounds {
            (recording.rounds, recording.sealing) = (0, recording.sealing + 1);
        }
        self.write_next(self.recordings[number].disk);
    }

    pub(super) fn end_recording(&mut self, number: usize) {
        let recording = &mut self.recordings[number];
        if recording.ends || recording.id.is_none() {
            return;
        }
        recording.ends = true;
        if self.scenario.background.part_rounds > 0 && recording.rounds > 0 {
            (recording.rounds, recording.sealing) = (0, recording.sealing + 1);
        }
        self.write_next(self.recordings[number].disk);
        self.end_if_written(number);
    }

    /// A title is complete, as a part of a series. If there is no room for it, the oldest one is
    /// removed, which may be played.
    pub(super) fn part_ends(&mut self, title: usize) {
        self.parts.push_back(title);
        let most = self.scenario.background.most_parts as usize;
        while most > 0 && self.parts.len() > most {
            let oldest = self.parts.pop_front().expect("more than one");
            self.remove_part(oldest, false);
        }
        // At its place in the order of age.
        self.schedule(self.now + self.scenario.background.keep, Event::PartExpires(title));
    }

    pub(super) fn part_expires(&mut self, title: usize) {
        if let Some(place) = self.parts.iter().position(|part| *part == title) {
            self.parts.remove(place);
            self.remove_part(title, true);
        }
    }

    fn remove_part(&mut self, title: usize, is_expired: bool) {
        self.outcome.removed_parts[usize::from(!is_expired)] += 1;
        let is_used = self.withdraw(title);
        self.outcome.removed_in_use += u64::from(is_used);
    }

    fn end_if_written(&mut self, number: usize) {
        let recording = &mut self.recordings[number];
        if !recording.ends || recording.bytes.waits() || recording.sealing > 0 {
            return;
        }
        if let Some(id) = recording.id.take() {
            self.note("recording ends: id", [id.0, 0, 0, 0]);
            self.refusals.changed();
            self.engine.end_recording(self.now, id);
        }
    }

    /// Whether all recordings have ended.
    pub(super) fn has_recorded_all(&self) -> bool {
        self.recordings.iter().all(|recording| recording.id.is_none())
    }

    /// Compares what has come with what is on the disks when the world has come to rest.
    pub(super) fn check_recordings(&mut self) {
        for (number, Recording { bytes, .. }) in self.recordings.iter().enumerate() {
            self.outcome.recorded += bytes.written;
            self.outcome.not_recorded += bytes.dropped;
            self.violations.require(
                bytes.balances() && !bytes.waits(),
                "each byte of a recording is written or was dropped",
                || format!("recording {number}: {bytes:?}"),
            );
        }
    }

    /// The power fails: what is not on the disks of what has come is lost.
    pub(super) fn fail_power(&mut self) {
        if self.present == 0 {
            return;
        }
        let keeping = self.keeping();
        self.power_has_failed = true;
        self.outcome.power_failures += 1;
        self.note("the power fails", [0; 4]);
        for number in 0..self.recordings.len() {
            let Recording { id, ends, bytes, last_due, .. } = &self.recordings[number];
            if id.is_none() || (*ends && !bytes.waits()) {
                continue;
            }
            let lost = bytes.at_risk(self.now, *last_due, &keeping);
            self.outcome.most_lost = self.outcome.most_lost.max(lost);
            if lost > keeping.longest() + keeping.period {
                self.break_guarantee("a power cut takes little of a recording", || {
                    format!("recording {number}: {lost:?}")
                });
            }
        }
    }

    // Asks for the next write of a disk, if rounds are due and none is under way.
    fn write_next(&mut self, disk: usize) {
        if self.group_writes.iter().any(|write| write.disk == disk) {
            return;
        }
        // What ends a part comes after all of its rounds, before further ones of any recording.
        let is_sealing = |it: &Recording| it.disk == disk && it.sealing > 0 && !it.bytes.waits();
        if let Some(number) = self.recordings.iter().position(is_sealing) {
            return self.request_write(disk, self.recordings[number].id, SEAL, &[], Some(number));
        }
        let waits = |it: &Recording| it.disk == disk && it.bytes.waits();
        let members: Vec<usize> =
            (0..self.recordings.len()).filter(|it| waits(&self.recordings[*it])).collect();
        if members.is_empty() {
            return;
        }
        let id = self.recordings[members[0]].id;
        let rounds = members.iter().map(|it| round_of(self.recordings[*it].bytes.next()));
        let job = rounds.fold(COMMIT, |job, round| WriteJob {
            places: job.places + round.places,
            bytes: ByteCount(job.bytes.0 + round.bytes.0),
        });
        self.request_write(disk, id, job, &members, None);
    }

    fn request_write(
        &mut self,
        disk: usize,
        id: Option<RecordingId>,
        job: WriteJob,
        members: &[usize],
        seals: Option<usize>,
    ) {
        let number = DiskNumber(u16::try_from(disk).expect("few disks"));
        let permit = self.engine.request_write(self.now, number, id, job);
        let (members, parts) = (members.to_vec(), 0);
        self.group_writes.push(GroupWrite {
            disk,
            permit,
            job,
            members,
            seals,
            parts,
            is_good: true,
        });
        self.liveness.permit_requested(permit, &mut self.violations);
        let word = id.map_or(0, |id| id.0 + 1);
        self.note("requests a write: permit, recording", [permit.0, word, job.bytes.0, 0]);
    }

    /// Makes a write whose permit was granted; false: it is no permit of a write.
    pub(super) fn write_granted(&mut self, permit: PermitId) -> bool {
        let Some(write) = self.group_writes.iter_mut().find(|it| it.permit == permit) else {
            return false;
        };
        let (disk, job) = (write.disk, write.job);
        write.parts = job.places;
        let len = align_down((job.bytes.0 / u64::from(job.places)).max(4096), 4096);
        let end = self.disks[disk].capacity() - len;
        let places = 0..job.places;
        let mut offsets: Vec<u64> = places.map(|_| align_down(self.rng.u64(..end), 4096)).collect();
        // Written in order of place, as a batch of reads is.
        offsets.sort_unstable();
        for offset in offsets {
            let len = u32::try_from(len).expect("less than a read");
            self.disks[disk].submit(Work::Write(permit), offset, len);
        }
        self.feed(disk);
        true
    }

    /// A part of a write has ended.
    pub(super) fn write_done(&mut self, permit: PermitId, outcome: ReadOutcome) {
        let number = self.group_writes.iter().position(|it| it.permit == permit);
        let number = number.expect("it was granted");
        let write = &mut self.group_writes[number];
        write.parts -= 1;
        write.is_good &= outcome == ReadOutcome::Good;
        if write.parts > 0 {
            return;
        }
        let write = self.group_writes.swap_remove(number);
        // What has come is written after the last viewer, too, and no more comes.
        if self.present == 0 {
            self.last_progress = self.now;
        }
        self.note("write done: permit", [permit.0, 0, 0, 0]);
        self.engine.best_effort_done(self.now, permit);
        write.members.iter().for_each(|member| self.round_done(*member, write.is_good));
        if let Some(number) = write.seals {
            self.recordings[number].sealing -= 1;
            self.outcome.parts += u64::from(write.is_good);
            self.end_if_written(number);
        }
        self.write_next(write.disk);
    }

    // Compares a round that is complete with the time when it was due.
    fn round_done(&mut self, number: usize, is_good: bool) {
        let keeping = self.keeping();
        let due = self.recordings[number].bytes.written(is_good).expect("it was written");
        self.end_if_written(number);
        let took = self.now.since(due);
        let periods = took.as_secs_f64() / keeping.period.as_secs_f64();
        self.outcome.slowest_round = self.outcome.slowest_round.max(periods);
        if took > keeping.longest() {
            self.break_guarantee("a recording keeps its rate", || {
                format!("recording {number}: a round took {took:?}, {keeping:?}")
            });
        }
    }

    fn keeping(&self) -> Keeping {
        let background = &self.scenario.background;
        let (period, round) = (background.recording_period, background.recording_round);
        Keeping { period, round, slot: self.scenario.slot }
    }
}

/// The write of a round of so many bytes.
fn round_of(bytes: u64) -> WriteJob {
    WriteJob { places: 2, bytes: ByteCount(bytes) }
}

/// What makes a title of a part, and begins the next one: an index, and two entries.
const SEAL: WriteJob = WriteJob { places: 5, bytes: ByteCount(64 << 10) };

/// What the rounds of one write have once.
const COMMIT: WriteJob = WriteJob { places: 2, bytes: ByteCount(8192) };
