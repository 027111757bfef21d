//! The driver's side: carries out what the engine says, and tells it what came of it.

use super::{Event, World};
use crate::checks::Piece;
use crate::disks::Work;
use scheduler::PolicyKind;
use server::engine::{
    Action, DiskNumber, ReadId, ReadOutcome, RequestId, SessionId, SessionSummary, TitleKey,
    TrackNumber,
};
use std::ops::Range;
use std::time::Duration;
use units::nanos;

impl World<'_> {
    pub(super) fn execute(&mut self, action: Action) {
        // Said before the request was cancelled: the engine knows by now.
        let about = match &action {
            Action::Deliver { request, .. }
            | Action::Complete { request }
            | Action::Refused { request, .. }
            | Action::Declined { request, .. }
            | Action::Failed { request, .. } => Some(*request),
            _ => None,
        };
        if about.is_some_and(|request| self.cancelled.contains(&request)) {
            return;
        }
        match action {
            Action::Read { read, disk, device_offset, len, title, track, start } => {
                let piece = self.piece_at(title, track, start);
                self.read(read, usize::from(disk.0), piece, (device_offset, len));
            }
            Action::Deliver { request, read, bytes } => self.deliver(request, read, &bytes),
            Action::Complete { request } => {
                self.note("complete: request", [request.0, 0, 0, 0]);
                self.deliveries.complete(request, &mut self.violations);
                self.settled(request);
            }
            Action::Forget { read } => {
                self.note("forget: read", [read.0, 0, 0, 0]);
                self.memory.forget(read, &mut self.violations);
            }
            Action::Refused { request, refusal } => {
                let resource = refusal.resource as u64;
                let wait = nanos(refusal.retry_after);
                self.note("refused: request, resource, for", [request.0, resource, wait, 0]);
                self.request_refused(request, refusal.retry_after);
            }
            Action::Declined { request, .. } => {
                self.note("declined: request", [request.0, 0, 0, 0]);
                self.request_refused(request, Duration::ZERO);
            }
            Action::Failed { request, outcome } => self.failed(request, outcome),
            Action::Rescheduled { session, change } => self.rescheduled(session, &change),
            Action::Ended { session, summary } => self.ended(session, &summary),
            Action::Granted { permit } => self.granted(permit),
            Action::DiskLost { disk, moved, ended } => {
                self.note("lost: disk, moved, ended", [disk.0.into(), moved, ended, 0]);
                self.at(self.now + FIRST_PROBE, Event::Probe(usize::from(disk.0), FIRST_PROBE));
            }
            Action::DiskBack { disk } => {
                self.note("back: disk", [disk.0.into(), 0, 0, 0]);
                self.outcome.disks_restored += 1;
            }
            Action::TitleIdle { title } => self.title_idle(title),
        }
    }

    /// A lost disk is looked at; it may be back.
    pub(super) fn probe(&mut self, disk: usize, pause: Duration) {
        if self.present == 0 {
            return;
        }
        let number = DiskNumber(u16::try_from(disk).expect("few disks"));
        if !self.disks[disk].is_readable(self.now) || !self.engine.restore_disk(self.now, number) {
            let pause = (pause * 2).min(LAST_PROBE);
            self.at(self.now + pause, Event::Probe(disk, pause));
        }
    }

    fn piece_at(&self, title: TitleKey, track: TrackNumber, start: u64) -> Piece {
        let layout = &self.titles[usize::try_from(title.0).expect("few titles")].layout;
        let of_track = &layout.tracks[usize::from(track)];
        let stored = start / u64::from(of_track.piece);
        let shown = of_track.stored.iter().position(|piece| u64::from(*piece) == stored);
        let number = shown.map_or(stored, |shown| shown as u64);
        Piece { title, track, piece: u32::try_from(number).expect("pieces are counted in u32") }
    }

    fn read(&mut self, read: ReadId, disk: usize, piece: Piece, (offset, len): (u64, u32)) {
        self.note(
            "read: id, title, track, piece",
            [read.0, piece.title.0, piece.track.into(), piece.piece.into()],
        );
        let title = &self.titles[usize::try_from(piece.title.0).expect("few titles")];
        let here = title.layout_on(disk);
        let layout = here.unwrap_or(&title.layout);
        self.memory.read((read, piece, offset, len), layout, &mut self.violations);
        self.violations
            .require(here.is_some(), "a read is of its piece's place", || format!("{piece:?}"));
        self.liveness.reads(piece.title, &mut self.violations);
        self.disks[disk].offer(Work::Read(read), offset, len);
        self.feed(disk);
    }

    /// Keeps as many reads in the device as it is said to hold.
    pub(super) fn feed(&mut self, disk: usize) {
        while let Some((done, work, outcome)) = self.disks[disk].begin(self.now) {
            self.at(done, Event::DiskDone(disk, work, outcome.into()));
        }
    }

    pub(super) fn disk_done(&mut self, disk: usize, work: Work, done: super::Done) {
        self.disks[disk].ended();
        match work {
            Work::Read(read) => self.read_done(read, done),
            Work::BestEffort(ticket) => self.best_effort_done(ticket),
        }
        self.feed(disk);
    }

    fn read_done(&mut self, read: ReadId, done: super::Done) {
        self.note("read done: id, how", [read.0, done as u64, 0, 0]);
        self.memory.done(read, done.into());
        self.engine.read_done(self.now, read, done.into());
    }

    fn deliver(&mut self, request: RequestId, read: ReadId, bytes: &Range<u32>) {
        let numbers = [request.0, read.0, bytes.start.into(), bytes.end.into()];
        self.note_progress("deliver: request, read, bytes", numbers);
        let Some((piece, len)) = self.memory.pin(read, &mut self.violations) else { return };
        let layout = &self.titles[usize::try_from(piece.title.0).expect("few titles")].layout;
        let track = &layout.tracks[usize::from(piece.track)];
        let size = track.piece;
        let end = u64::from(piece.piece) * u64::from(size) + u64::from(bytes.end);
        let whole = bytes.end == size || end == track.bytes;
        self.deliveries.deliver(request, (piece, size, len), bytes, &mut self.violations);
        let Some(open) = self.requests.get_mut(&request) else {
            self.memory.unpin(read);
            return;
        };
        open.queue.push_back((read, bytes.end - bytes.start));
        // In order: not before what comes before it in the same request.
        let could_take = open.asked.max(open.last_sent).max(open.promised.unwrap_or_default());
        // And not before the session's sockets have room for it.
        let could_take = could_take.max(self.deadlines.had_room(open.session));
        let promise = self.deadlines.got(request, (piece, whole, end), could_take);
        self.deadlines.given(open.session, len);
        open.promised = open.promised.and_then(|before| Some(promise?.max(before)));
        let late = open.promised.map_or(Duration::ZERO, |at| self.now.since(at.max(could_take)));
        if !late.is_zero() {
            self.outcome.late_deliveries += 1;
            let promised = self.scenario.guarantees_deadlines();
            let session = open.session;
            self.violations.require(!promised, "what is promised is handed over in time", || {
                format!("{request:?} of {session:?}: {piece:?} is {late:?} late")
            });
        }
        self.transmit(request);
    }

    fn failed(&mut self, request: RequestId, outcome: ReadOutcome) {
        self.note("failed: request", [request.0, super::Done::from(outcome) as u64, 0, 0]);
        self.outcome.failed += 1;
        let tried = self.deliveries.owed(request).is_none_or(|piece| self.tried_twice(piece));
        self.violations
            .require(tried, "only what was tried twice fails", || format!("{request:?}"));
        self.deliveries.over(request);
        self.request_failed(request);
    }

    fn tried_twice(&self, (title, track, offset): (TitleKey, u16, u64)) -> bool {
        let layout = &self.titles[usize::try_from(title.0).expect("few titles")].layout;
        let size = u64::from(layout.tracks[usize::from(track)].piece);
        let piece = u32::try_from(offset / size).expect("pieces are counted in u32");
        self.memory.failures(Piece { title, track, piece }) >= 2
    }

    fn ended(&mut self, session: SessionId, summary: &SessionSummary) {
        self.note_progress(
            "ended: session",
            [session.0, summary.deadlines_met, summary.deadline_misses, 0],
        );
        self.liveness.ended(session, &mut self.violations);
        let lost = summary.lost && self.scenario.guarantees_deadlines();
        self.violations.require(!lost, "no session ends with its disk", || format!("{session:?}"));
        let differ = self.deadlines.ended(session, summary);
        let kept = |times| times == 0;
        let told = || {
            let SessionSummary {
                guaranteed_slack,
                observed_slack,
                violations_by_scheduler: broken,
                violations_by_disk: void,
                ..
            } = summary;
            format!(
                "{guaranteed_slack:?} promised, {observed_slack:?} seen, {broken} + {void} late"
            )
        };
        let by_its_disk = "a disk that keeps its model breaks no certificate";
        // One that is a little slower for long need not be seen to take too long for any one sweep.
        let slows = self.scenario.disks.iter().any(|disk| !disk.slows_for.is_zero());
        self.violations.require(kept(summary.violations_by_scheduler) || slows, by_its_disk, told);
        let all = kept(summary.violations_by_disk) || !self.keeps_its_model(session);
        self.violations.require(
            all,
            "every certificate is kept where disks keep their models",
            told,
        );
        if let (Some(_), Some(least)) = (summary.guaranteed_slack, summary.observed_slack) {
            self.outcome.with_guarantee += 1;
            self.outcome.least_slack =
                Some(self.outcome.least_slack.map_or(least, |before| before.min(least)));
        }
        // Without a policy nothing is held for anybody, and without reading there is no time.
        let sound = self.scenario.policy != PolicyKind::None
            && self
                .scenario
                .disks
                .iter()
                .all(|d| d.failing == 0.0 && d.damaged == 0.0 && d.dies_at.is_zero());
        let late = summary.violations_by_scheduler + summary.violations_by_disk;
        let told = summary.deadline_misses == 0 || summary.guaranteed_slack.is_none() || late > 0;
        // Who was moved has none any more.
        let moves = self.scenario.disks.iter().any(|disk| !disk.stalls_for.is_zero());
        self.violations.require(
            told || !sound || moves,
            "a certificate that is not kept is broken",
            || format!("{session:?}: {summary:?}"),
        );
        self.outcome.violations_by_scheduler += summary.violations_by_scheduler;
        self.outcome.violations_by_disk += summary.violations_by_disk;
        if let Some((seen, counted)) = differ.filter(|_| sound) {
            self.violations.add("the engine counts its deadline misses right", || {
                format!("{session:?}: {seen} seen, {counted} counted")
            });
        }
        self.drop_session(session);
    }

    /// Whether every disk with a copy of the session's title keeps its guarantee to the end. Then
    /// the fault of another disk excuses no violation.
    fn keeps_its_model(&self, session: SessionId) -> bool {
        if self.scenario.guarantees_deadlines() {
            return true;
        }
        let Some(viewer) = self.sessions.get(&session) else { return false };
        let title = &self.titles[self.viewers[*viewer].profile.title];
        let on = |disk: &usize| title.layout_on(*disk).is_some();
        let mut disks = (0..self.scenario.disks.len()).filter(on);
        disks.all(|disk| self.scenario.keeps_guarantee(disk))
    }

    fn title_idle(&mut self, title: TitleKey) {
        self.note("title idle: title", [title.0, 0, 0, 0]);
        let being_read = self.memory.being_read(title);
        self.liveness.title_idle(title, being_read, &mut self.violations);
    }
}

/// Between two looks at a lost disk, as the server's shell has it.
const FIRST_PROBE: Duration = Duration::from_secs(1);
const LAST_PROBE: Duration = Duration::from_secs(60);
