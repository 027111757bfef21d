//! The driver's part: executes the engine's actions, and reports completed work to the engine.

use super::audience::{LONGEST_WAIT, NO_RESOURCE};
use super::{Event, World};
use crate::checks::{DeliveredBytes, Delivery, IssuedRead, Piece};
use crate::disks::Work;
use crate::titles::Title;
use crate::viewers::UnsentBuffer;
use engine::{
    Action, CutShort, DiskNumber, ReadId, ReadOutcome, RequestId, SessionId, SessionSummary,
    TitleKey, TrackNumber,
};
use scheduler::PolicyKind;
use std::ops::Range;
use std::time::Duration;
use units::nanos;

impl World<'_> {
    pub(super) fn execute(&mut self, action: Action) {
        // The engine emitted this action before it was told of the cancellation.
        if request_of(&action).is_some_and(|request| self.cancelled.contains(&request)) {
            return;
        }
        match action {
            Action::Read { read, disk, device_offset, len, title, track, start } => {
                let piece = self.piece_at(title, track, start);
                let issued = IssuedRead { id: read, piece, offset: device_offset, len };
                self.read(usize::from(disk.0), &issued);
            }
            Action::Deliver { request, read, bytes } => self.deliver(request, read, &bytes),
            Action::Complete { request } => {
                self.note("complete: request", [request.0, 0, 0, 0]);
                let request = self.response(request);
                if !self.window_delivered(request) {
                    return self.advance_request(request);
                }
                self.deliveries.complete(request, &mut self.violations);
                self.close_request(request);
            }
            Action::Forget { read } => {
                self.note("released: read", [read.0, 0, 0, 0]);
                self.memory.release(read, &mut self.violations);
            }
            Action::Refused { request, refusal } => {
                let resource = refusal.resource.map_or(NO_RESOURCE as u64, |short| short as u64);
                let wait = refusal.retry.after().unwrap_or(LONGEST_WAIT);
                self.note("refused: request, resource, for", [request.0, resource, nanos(wait), 0]);
                self.request_refused(self.response(request), wait);
            }
            Action::Declined { request, .. } => {
                self.note("declined: request", [request.0, 0, 0, 0]);
                self.request_refused(self.response(request), Duration::ZERO);
            }
            Action::Failed { request, outcome } => self.failed(request, outcome),
            Action::Rescheduled { session, change } => self.rescheduled(session, &change),
            Action::Ended { session, summary } => self.session_ended(session, &summary),
            Action::Granted { permit } => self.permit_granted(permit),
            Action::DiskLost { disk, moved, ended } => {
                self.note("lost: disk, moved, ended", [disk.0.into(), moved, ended, 0]);
                let probe = Event::Probe { disk: usize::from(disk.0), pause: FIRST_PROBE };
                self.schedule(self.now + FIRST_PROBE, probe);
            }
            Action::DiskBack { disk } => {
                self.note("restored: disk", [disk.0.into(), 0, 0, 0]);
                self.outcome.disks_restored += 1;
            }
            Action::TitleIdle { title } => self.title_idle(title),
        }
    }

    /// The response that a request of the engine is for, named by its first request.
    pub(super) fn response(&self, request: RequestId) -> RequestId {
        self.responses.get(&request).copied().unwrap_or(request)
    }

    /// Probes a lost disk, as the server does; a disk that answers is restored.
    pub(super) fn probe(&mut self, disk: usize, pause: Duration) {
        if self.present == 0 {
            return;
        }
        let number = DiskNumber(u16::try_from(disk).expect("few disks"));
        // The engine also refuses a disk in which earlier reads have not ended: that disk is probed
        // again.
        if !self.disks[disk].is_readable(self.now) || !self.engine.restore_disk(self.now, number) {
            let pause = (pause * 2).min(LAST_PROBE);
            self.schedule(self.now + pause, Event::Probe { disk, pause });
        }
    }

    fn title(&self, title: TitleKey) -> &Title {
        &self.titles[usize::try_from(title.0).expect("few titles")]
    }

    /// The piece that a read fetches. Its action names the place in the stored track; pieces are
    /// numbered in play-out order.
    fn piece_at(&self, title: TitleKey, track: TrackNumber, start: u64) -> Piece {
        let layout = &self.title(title).layout.tracks[usize::from(track)];
        if layout.stored.is_empty() {
            return Piece { title, track, number: layout.piece_at(start) };
        }
        let stored = start / u64::from(layout.piece);
        let played = layout.stored.iter().position(|piece| u64::from(*piece) == stored);
        let number = played.map_or(stored, |number| number as u64);
        Piece { title, track, number: u32::try_from(number).expect("pieces are counted in u32") }
    }

    fn read(&mut self, disk: usize, read: &IssuedRead) {
        let &IssuedRead { id, piece, offset, len } = read;
        self.note(
            "read: id, title, track, piece",
            [id.0, piece.title.0, piece.track.into(), piece.number.into()],
        );
        let title = &self.titles[usize::try_from(piece.title.0).expect("few titles")];
        let on_disk = title.layout_on(disk);
        let layout = on_disk.unwrap_or(&title.layout);
        self.memory.read_issued(read, layout, &mut self.violations);
        self.violations.require(
            on_disk.is_some(),
            "a read goes to a disk that has the title",
            || format!("{piece:?} on disk {disk}"),
        );
        self.liveness.read_issued(piece.title, &mut self.violations);
        self.disks[disk].submit(Work::Read(id), offset, len);
        self.feed(disk);
    }

    /// Starts as many work items as the device can hold.
    pub(super) fn feed(&mut self, disk: usize) {
        while let Some(started) = self.disks[disk].start_next(self.now) {
            let done = Event::DiskDone { disk, work: started.work, outcome: started.outcome };
            self.schedule(started.ends, done);
        }
    }

    pub(super) fn disk_done(&mut self, disk: usize, work: Work, outcome: ReadOutcome) {
        // Before the engine is told: it may issue the next read in the same call, and the device
        // has room for it.
        self.disks[disk].work_ended();
        match work {
            Work::Read(read) => self.read_done(read, outcome),
            Work::BestEffort(permit) => self.best_effort_done(permit),
            Work::Write(permit) => self.write_done(permit, outcome),
        }
        self.feed(disk);
    }

    fn read_done(&mut self, read: ReadId, outcome: ReadOutcome) {
        self.note("read done: id, outcome", [read.0, outcome as u64, 0, 0]);
        self.memory.read_done(read, outcome);
        self.engine.read_done(self.now, read, outcome);
    }

    fn deliver(&mut self, window: RequestId, read: ReadId, bytes: &Range<u32>) {
        let request = self.response(window);
        let numbers = [window.0, read.0, bytes.start.into(), bytes.end.into()];
        self.note_progress("deliver: request, read, bytes", numbers);
        let Some((piece, buffer_len)) = self.memory.pin(read, &mut self.violations) else { return };
        let track = &self.title(piece.title).layout.tracks[usize::from(piece.track)];
        let piece_end = track.bytes.min(track.start(piece.number + 1));
        let end = track.start(piece.number) + u64::from(bytes.end);
        let begin = track.start(piece.number);
        let delivery = Delivery { request, piece, begin, buffer_len, bytes };
        self.deliveries.deliver(&delivery, &mut self.violations);
        let Some(open) = self.requests.get_mut(&request) else {
            self.memory.unpin(read);
            return;
        };
        open.unsent.push_back(UnsentBuffer { window, read, len: bytes.end - bytes.start });
        // The socket takes bytes in order, and only when the session's send window has room.
        let in_order =
            open.requested_at.max(open.last_sent).max(open.guaranteed_by.unwrap_or_default());
        let delivered = DeliveredBytes {
            piece,
            to_its_end: end == piece_end,
            len: u64::from(bytes.end - bytes.start),
            end,
            takeable_from: in_order.max(self.deadlines.room_since(open.session, piece.track)),
        };
        let deadline = self.deadlines.delivered(request, &delivered);
        self.deadlines.buffer_queued(self.now, open.session, piece.track, buffer_len);
        // Bytes without a guarantee delay all that follow them in the same request.
        open.guaranteed_by = open.guaranteed_by.and_then(|before| Some(deadline?.max(before)));
        let late = open
            .guaranteed_by
            .map_or(Duration::ZERO, |by| self.now.since(by.max(delivered.takeable_from)));
        let session = open.session;
        if !late.is_zero() {
            self.outcome.late_deliveries += 1;
            self.break_guarantee("guaranteed bytes are delivered in time", || {
                format!("{request:?} of {session:?}: {piece:?} is {late:?} late")
            });
        }
        self.transmit(request);
    }

    fn failed(&mut self, request: RequestId, outcome: ReadOutcome) {
        self.note("failed: request, outcome", [request.0, outcome as u64, 0, 0]);
        let request = self.response(request);
        self.outcome.failed += 1;
        let next = self.deliveries.next_expected(request);
        let read_twice =
            next.is_none_or(|(title, track, offset)| self.has_failed_twice(title, track, offset));
        self.violations.require(
            read_twice,
            "a request fails only after its piece was read twice",
            || format!("{request:?}"),
        );
        self.deliveries.close(request);
        self.request_failed(request);
    }

    fn has_failed_twice(&self, title: TitleKey, track: TrackNumber, offset: u64) -> bool {
        let number = self.title(title).layout.tracks[usize::from(track)].piece_at(offset);
        self.memory.failures(Piece { title, track, number }) >= 2
    }

    fn session_ended(&mut self, session: SessionId, summary: &SessionSummary) {
        self.note_progress(
            "ended: session",
            [session.0, summary.deadlines_met, summary.deadline_misses, 0],
        );
        self.liveness.session_ended(session, &mut self.violations);
        match summary.cut_short {
            Some(CutShort::DiskLost) => {
                self.break_guarantee("no session ends with its disk", || format!("{session:?}"));
            }
            Some(CutShort::Overload) => {
                self.break_guarantee("no session ends on a disk that keeps its guarantee", || {
                    format!("{session:?}")
                });
            }
            Some(CutShort::Priority) | None => {}
        }
        self.priorities.ended(session, summary, &mut self.violations);
        let fewer = self.deadlines.ended(session, summary);
        self.check_violation_counts(session, summary, fewer);
        self.end_session(session);
    }

    /// Checks the guarantee violations and deadline misses that the engine has counted for a
    /// session. `fewer_misses`: misses observed and misses counted, if fewer were counted.
    fn check_violation_counts(
        &mut self,
        session: SessionId,
        summary: &SessionSummary,
        fewer_misses: Option<(u64, u64)>,
    ) {
        let (by_scheduler, by_disk) = (summary.violations_by_scheduler, summary.violations_by_disk);
        let disks = &self.scenario.disks;
        let details = || {
            format!(
                "{:?} slack guaranteed, {:?} observed; late by scheduler {by_scheduler}, by disk \
                 {by_disk}",
                summary.guaranteed_slack, summary.observed_slack
            )
        };
        // A disk that is slower by a few percent may exceed its charge in no single sweep and yet
        // make the next ones late.
        let slows = disks.iter().any(|disk| !disk.slows_for.is_zero());
        self.violations.require(
            by_scheduler == 0 || slows,
            "no guarantee is violated by the scheduler",
            details,
        );
        let is_excused = by_disk == 0 || !self.keeps_its_model(session);
        self.violations.require(
            is_excused,
            "no guarantee is violated by a disk that keeps its model",
            details,
        );
        if let (Some(_), Some(least)) = (summary.guaranteed_slack, summary.observed_slack) {
            self.outcome.with_guarantee += 1;
            self.outcome.least_slack =
                Some(self.outcome.least_slack.map_or(least, |before| before.min(least)));
        }
        // Without a policy nothing is reserved, and a read that fails has no completion time.
        let is_countable = self.scenario.policy != PolicyKind::None
            && disks
                .iter()
                .all(|disk| disk.failing == 0.0 && disk.damaged == 0.0 && disk.dies_at.is_zero());
        let reported = summary.deadline_misses == 0
            || summary.guaranteed_slack.is_none()
            || by_scheduler + by_disk > 0;
        // A session that fails over to another disk has no guarantee any more.
        let fails_over = disks.iter().any(|disk| !disk.stalls_for.is_zero());
        self.violations.require(
            reported || !is_countable || fails_over,
            "a deadline miss is reported as a guarantee violation",
            || format!("{session:?}: {summary:?}"),
        );
        self.outcome.violations_by_scheduler += by_scheduler;
        self.outcome.violations_by_disk += by_disk;
        if let Some((observed, counted)) = fewer_misses.filter(|_| is_countable) {
            self.violations.add("the engine counts every deadline miss", || {
                format!("{session:?}: {observed} observed, {counted} counted")
            });
        }
    }

    /// Whether every disk with a copy of the session's title keeps its guarantee to the end. Then
    /// the fault of another disk excuses no violation.
    fn keeps_its_model(&self, session: SessionId) -> bool {
        if self.scenario.guarantees_deadlines() {
            return true;
        }
        let Some(viewer) = self.sessions.get(&session) else { return false };
        let title = &self.titles[self.viewers[*viewer].profile.title];
        let has_copy = |disk: &usize| title.layout_on(*disk).is_some();
        let mut disks = (0..self.scenario.disks.len()).filter(has_copy);
        disks.all(|disk| self.scenario.keeps_guarantee(disk))
    }

    fn title_idle(&mut self, title: TitleKey) {
        self.note("title idle: title", [title.0, 0, 0, 0]);
        let reads = self.memory.reads_in_flight(title);
        self.liveness.title_idle(title, reads, &mut self.violations);
    }
}

/// The request that an action is about.
pub(super) fn request_of(action: &Action) -> Option<RequestId> {
    match action {
        Action::Deliver { request, .. }
        | Action::Complete { request }
        | Action::Refused { request, .. }
        | Action::Declined { request, .. }
        | Action::Failed { request, .. } => Some(*request),
        _ => None,
    }
}

/// Time between two probes of a lost disk, as in the server.
const FIRST_PROBE: Duration = Duration::from_secs(1);
const LAST_PROBE: Duration = Duration::from_secs(60);
