//! The checker: sees every action and keeps its own account of what must be true.
//!
//! Safety: a buffer is read once, delivered only when it is there, with exactly the bytes asked
//! for, in order, and never after it was forgotten; memory stays within the budget; a disk is
//! given no more than it was said to take. Liveness: everything asked is answered.

use server::engine::{
    Action, DiskGuarantee, EngineConfig, Part, ReadId, RequestId, TitleKey, TrackNumber,
};
use std::collections::BTreeMap;

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Checker {
    budget: u64,
    limits: Vec<u32>,
    in_flight: Vec<u32>,
    buffers: BTreeMap<ReadId, Buffer>,
    used: u64,
    pub(crate) most_used: u64,
    requests: BTreeMap<RequestId, Asked>,
    pub(crate) violations: Vec<String>,
    trace: u64,
}

#[derive(Debug)]
struct Buffer {
    title: TitleKey,
    track: TrackNumber,
    start: u64,
    len: u32,
    disk: usize,
    ready: bool,
}

#[derive(Debug)]
struct Asked {
    title: TitleKey,
    parts: Vec<Part>,
    at: usize,
    done: u64,
}

impl Checker {
    pub(crate) fn new(config: &EngineConfig) -> Self {
        let limit = |disk: &DiskGuarantee| disk.min_read + disk.queue_depth;
        Self {
            budget: config.buffers.0,
            limits: config.disks.iter().map(limit).collect(),
            in_flight: vec![0; config.disks.len()],
            buffers: BTreeMap::new(),
            used: 0,
            most_used: 0,
            requests: BTreeMap::new(),
            violations: Vec::new(),
            trace: 0xcbf2_9ce4_8422_2325,
        }
    }

    /// A number that any other course of events would have changed.
    pub(crate) fn trace(&self) -> u64 {
        self.trace
    }

    pub(crate) fn note(&mut self, number: u64) {
        for byte in number.to_le_bytes() {
            self.trace = (self.trace ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    pub(crate) fn fail(&mut self, what: String) {
        if self.violations.len() < MOST_VIOLATIONS {
            self.violations.push(what);
        }
    }

    pub(crate) fn asked(&mut self, request: RequestId, title: TitleKey, parts: Vec<Part>) {
        self.requests.insert(request, Asked { title, parts, at: 0, done: 0 });
    }

    /// The viewer no longer waits for it.
    pub(crate) fn hung_up(&mut self, request: RequestId) {
        self.requests.remove(&request);
    }

    pub(crate) fn read_done(&mut self, read: ReadId, good: bool) {
        let buffer = self.buffers.get_mut(&read).expect("the world answers what was asked");
        self.in_flight[buffer.disk] -= 1;
        buffer.ready = good;
    }

    /// Everything asked has been answered, everything read is accounted for.
    pub(crate) fn end(&mut self) {
        let open: Vec<_> = self.requests.keys().copied().collect();
        if !open.is_empty() {
            self.fail(format!("never answered: {open:?}"));
        }
        if self.in_flight.iter().any(|reads| *reads > 0) {
            self.fail(format!("still in flight: {:?}", self.in_flight));
        }
    }

    pub(crate) fn action(&mut self, action: &Action, piece_of: impl Fn(TitleKey, u16) -> u32) {
        match action {
            Action::Read { read, disk, len, title, track, piece, .. } => {
                let start = u64::from(*piece) * u64::from(piece_of(*title, *track));
                self.read(*read, usize::from(disk.0), *len, *title, *track, start);
            }
            Action::Deliver { request, read, bytes } => {
                self.note(request.0);
                self.deliver(*request, *read, bytes.start, bytes.end);
            }
            Action::Complete { request } => match self.requests.remove(request) {
                Some(asked) if asked.at == asked.parts.len() => {}
                other => self.fail(format!("complete but not delivered: {request:?} {other:?}")),
            },
            Action::Forget { read } => match self.buffers.remove(read) {
                Some(buffer) => self.used -= u64::from(buffer.len),
                None => self.fail(format!("forgotten twice: {read:?}")),
            },
            Action::Refused { request, .. } | Action::Failed { request, .. } => {
                self.note(!request.0);
                if self.requests.remove(request).is_none() {
                    self.fail(format!("refused what nobody asked: {request:?}"));
                }
            }
            Action::Ended { session, summary } => {
                self.note(session.0);
                self.note(summary.delivered);
            }
            Action::Granted { ticket } => self.note(ticket.0),
            Action::TitleIdle { title } => self.title_idle(*title),
        }
    }

    fn read(
        &mut self,
        read: ReadId,
        disk: usize,
        len: u32,
        title: TitleKey,
        track: u16,
        start: u64,
    ) {
        self.note(read.0);
        self.note(start);
        self.used += u64::from(len);
        self.most_used = self.most_used.max(self.used);
        if self.used > self.budget {
            self.fail(format!("{} bytes of buffers, {} there are", self.used, self.budget));
        }
        self.in_flight[disk] += 1;
        if self.in_flight[disk] > self.limits[disk] {
            self.fail(format!("disk {disk} was given {} reads", self.in_flight[disk]));
        }
        let buffer = Buffer { title, track, start, len, disk, ready: false };
        if self.buffers.insert(read, buffer).is_some() {
            self.fail(format!("used twice: {read:?}"));
        }
    }

    fn deliver(&mut self, request: RequestId, read: ReadId, from: u32, to: u32) {
        let Some(buffer) = self.buffers.get(&read) else {
            return self.fail(format!("{request:?} is delivered {read:?}, which is gone"));
        };
        let Some(asked) = self.requests.get_mut(&request) else {
            return self.fail(format!("delivered to nobody: {request:?}"));
        };
        let Some(part) = asked.parts.get(asked.at) else {
            return self.fail(format!("more than was asked: {request:?}"));
        };
        let expected = part.bytes.start + asked.done;
        let right = buffer.ready
            && from < to
            && to <= buffer.len
            && buffer.title == asked.title
            && buffer.track == part.track
            && buffer.start + u64::from(from) == expected
            && buffer.start + u64::from(to) <= part.bytes.end;
        asked.done += u64::from(to - from);
        if asked.done == part.bytes.end - part.bytes.start {
            asked.at += 1;
            asked.done = 0;
        }
        if !right {
            self.fail(format!("{request:?} wants byte {expected}, gets {from}..{to} of {read:?}"));
        }
    }

    fn title_idle(&mut self, title: TitleKey) {
        if self.buffers.values().any(|buffer| buffer.title == title) {
            self.fail(format!("{title:?} is idle but in memory"));
        }
    }
}

/// The first few tell the story.
const MOST_VIOLATIONS: usize = 20;
