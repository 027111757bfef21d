//! Recordings with a guaranteed rate: rounds of writes, each due when the last period has passed.
//! Rounds of a disk that wait at the same time become one write.

use super::{Event, World};
use crate::disks::Work;
use scheduler::{WriteDemand, WriteJob};
use server::engine::{DiskNumber, PermitId, RecordingId};
use std::collections::VecDeque;
use std::time::Duration;
use units::{ByteCount, Moment, align_down, nanos};

/// A recording, from when it is admitted to when it ends.
#[derive(Debug, Default)]
pub(super) struct Recording {
    disk: usize,
    id: Option<RecordingId>,
    /// When the rounds were due that are not complete, oldest first.
    due: VecDeque<Moment>,
}

/// One write of a round of several recordings, from the request for its permit to its end.
#[derive(Debug)]
pub(super) struct GroupWrite {
    disk: usize,
    permit: PermitId,
    job: WriteJob,
    /// The recordings whose rounds it has.
    members: Vec<usize>,
    /// Parts that are in the device.
    parts: u32,
}

impl World<'_> {
    pub(super) fn schedule_recordings(&mut self) {
        let viewers = &self.scenario.viewers;
        let arrivals = viewers.every * viewers.count;
        for number in 0..self.scenario.background.recordings as usize {
            let disk = self.rng.usize(..self.disks.len());
            self.recordings.push(Recording { disk, ..Recording::default() });
            let at = Moment::ZERO + arrivals.mul_f64(self.rng.f64());
            self.schedule(at, Event::StartRecording(number));
        }
    }

    pub(super) fn start_recording(&mut self, number: usize) {
        // Without this end the world would never come to rest.
        if self.present == 0 {
            return;
        }
        let background = &self.scenario.background;
        let period = background.recording_period;
        let disk = self.recordings[number].disk;
        let demand =
            WriteDemand { period: nanos(period), joined: self.round(), shared: Some(COMMIT) };
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
        if self.recordings[number].id.is_none() {
            return;
        }
        if self.present == 0 {
            return self.end_recording(number);
        }
        self.schedule(
            self.now + self.scenario.background.recording_period,
            Event::RecordingRound(number),
        );
        self.recordings[number].due.push_back(self.now);
        self.outcome.rounds += 1;
        self.write_next(self.recordings[number].disk);
    }

    pub(super) fn end_recording(&mut self, number: usize) {
        if let Some(id) = self.recordings[number].id.take() {
            self.note("recording ends: id", [id.0, 0, 0, 0]);
            self.refusals.changed();
            self.engine.end_recording(self.now, id);
        }
    }

    // Asks for the next write of a disk, if rounds are due and none is under way.
    fn write_next(&mut self, disk: usize) {
        if self.group_writes.iter().any(|write| write.disk == disk) {
            return;
        }
        let waits = |it: &Recording| it.disk == disk && it.id.is_some() && !it.due.is_empty();
        let members: Vec<usize> =
            (0..self.recordings.len()).filter(|it| waits(&self.recordings[*it])).collect();
        let Some(id) = members.first().and_then(|it| self.recordings[*it].id) else { return };
        let (round, count) = (self.round(), members.len() as u64);
        let job = WriteJob {
            places: round.places * u32::try_from(count).expect("few") + COMMIT.places,
            bytes: ByteCount(round.bytes.0 * count + COMMIT.bytes.0),
        };
        let number = DiskNumber(u16::try_from(disk).expect("few disks"));
        let permit = self.engine.request_write(self.now, number, Some(id), job);
        self.group_writes.push(GroupWrite { disk, permit, job, members, parts: 0 });
        self.liveness.permit_requested(permit, &mut self.violations);
        self.note("requests a write: permit, recording", [permit.0, id.0, job.bytes.0, 0]);
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
    pub(super) fn write_done(&mut self, permit: PermitId) {
        let number = self.group_writes.iter().position(|it| it.permit == permit);
        let number = number.expect("it was granted");
        self.group_writes[number].parts -= 1;
        if self.group_writes[number].parts > 0 {
            return;
        }
        let write = self.group_writes.swap_remove(number);
        self.note("write done: permit", [permit.0, 0, 0, 0]);
        self.engine.best_effort_done(self.now, permit);
        write.members.iter().for_each(|member| self.round_done(*member));
        self.write_next(write.disk);
    }

    // Compares a round that is complete with the time when it was due.
    fn round_done(&mut self, number: usize) {
        let recording = &mut self.recordings[number];
        let due = recording.due.pop_front().expect("it was written");
        if recording.id.is_none() {
            return;
        }
        let period = self.scenario.background.recording_period;
        let took = self.now.since(due);
        let periods = took.as_secs_f64() / period.as_secs_f64();
        self.outcome.slowest_round = self.outcome.slowest_round.max(periods);
        let longest = period * MOST_PERIODS + self.scenario.slot * MOST_SLOTS;
        if took > longest {
            self.break_guarantee("a recording keeps its rate", || {
                format!("recording {number}: a round took {took:?}, period {period:?}")
            });
        }
    }

    fn round(&self) -> WriteJob {
        WriteJob { places: 2, bytes: self.scenario.background.recording_round }
    }
}

/// What the rounds of one write have once.
const COMMIT: WriteJob = WriteJob { places: 2, bytes: ByteCount(8192) };

/// From when it is due, a round takes the time in which its tokens come, that of the write in front
/// of it, and what the device is at.
const MOST_PERIODS: u32 = 3;
const MOST_SLOTS: u32 = 2;
