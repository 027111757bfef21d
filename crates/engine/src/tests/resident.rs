//! Newcomers whose first media is in memory.

use super::*;

const DISK: DiskNumber = DiskNumber(0);

/// A disk whose time is planned, and memory for so many pieces.
fn timed(pieces: u64) -> Fixture {
    let policy = PolicyKind::TimeDomain;
    let mut fixture = Fixture::new(EngineConfig { policy, ..config(4, pieces) });
    let model = disk::DiskModel::preset("st39183w").expect("a known disk");
    let timings = DiskTimings::of_model(&model, ByteCount(u64::from(PIECE)), 1);
    fixture.engine.set_timings(Moment::ZERO, DISK, timings);
    fixture
}

impl Fixture {
    /// A viewer of the title comes, plays these pieces and leaves.
    fn comes_and_goes(&mut self, title: u64, pieces: u32) {
        let viewer = self.admit(title).expect("alone");
        for piece in 0..pieces {
            self.want(viewer, piece..piece + 1);
            self.pass(500);
        }
        self.engine.close(self.now, viewer);
        self.drain();
    }

    /// Viewers of as many titles as are admitted at one moment.
    fn full_house(&mut self) -> Vec<SessionId> {
        (100..).map_while(|title| self.admit(title).ok()).collect()
    }

    /// All play their titles from the beginning to the end, one piece in each slot.
    fn all_play(&mut self, viewers: &[SessionId]) {
        for piece in 0..PIECES {
            for viewer in viewers {
                self.want(*viewer, piece..piece + 1);
            }
            self.pass(500);
        }
        self.pass(4000);
        assert_eq!(self.engine.status(self.now).counters.deadline_misses, 0);
        for viewer in viewers {
            self.engine.close(self.now, *viewer);
            self.drain();
        }
        assert!(self.engine.is_empty(), "nothing is booked when all have left");
    }
}

#[test]
fn whose_first_media_is_in_memory_starts_where_another_is_refused_and_nobody_is_late() {
    // The last one plays for less than the time that is taken from memory.
    for played in [PIECES, 8, 2] {
        let mut fixture = timed(10_000);
        for title in 1..=3 {
            fixture.comes_and_goes(title, played);
        }
        let mut viewers = fixture.full_house();
        assert_eq!(fixture.admit(9).unwrap_err().resource, Some(Resource::Disk));
        let before = viewers.len();
        viewers.extend((1..=3).filter_map(|title| fixture.admit(title).ok()));
        assert_eq!(viewers.len(), before + 3, "{played} pieces were played");
        let last = *viewers.last().expect("three");
        fixture.log.clear();
        fixture.want(last, 0..1);
        let said = fixture.take_log("deliver");
        assert_eq!(said.len(), 1, "before any read, with {played} pieces: {said:?}");
        fixture.all_play(&viewers);
    }
}

/// A newcomer does not count on media that was in memory and has been taken back since.
#[test]
fn what_was_taken_back_is_read_again() {
    let mut fixture = timed(10_000);
    fixture.comes_and_goes(1, PIECES);
    while fixture.engine.evict_oldest().is_some() {}
    let viewers = fixture.full_house();
    assert_eq!(fixture.admit(1).unwrap_err().resource, Some(Resource::Disk));
    fixture.all_play(&viewers);
}

/// What it holds counts as its own, so that memory for it and its reads is there.
#[test]
fn its_memory_is_in_the_books() {
    // Two for its socket, and what is read before the first is released.
    for pieces in 8..60 {
        if timed(pieces).admit(1).is_err() {
            continue;
        }
        let mut fixture = timed(pieces);
        fixture.comes_and_goes(1, PIECES);
        let mut viewers = fixture.full_house();
        viewers.extend(fixture.admit(1).ok());
        fixture.all_play(&viewers);
    }
}

/// What others read ahead, into all memory that there is, leaves the beginning of a title that
/// viewers come back to; of another it does not.
#[test]
fn read_ahead_leaves_beginnings_that_viewers_come_back_to() {
    for (came_before, delivered) in [(2, 1), (1, 0)] {
        let mut fixture = timed(120);
        (0..came_before).for_each(|_| fixture.comes_and_goes(1, PIECES));
        let others: Vec<SessionId> = (2..=6).map(|title| fixture.admit(title).unwrap()).collect();
        for piece in 0..10 {
            for viewer in &others {
                fixture.want(*viewer, piece..piece + 1);
            }
            fixture.pass(500);
        }
        let viewer = fixture.admit(1).unwrap();
        fixture.log.clear();
        fixture.want(viewer, 0..1);
        assert_eq!(fixture.take_log("deliver").len(), delivered, "{came_before} came before");
        fixture.engine.audit().expect("books and buffers agree");
    }
}

/// What is kept for beginnings is for newcomers first: as many are admitted as without.
#[test]
fn newcomers_have_the_memory_of_beginnings() {
    let admitted = [0, 1, 2].map(|came_before| {
        let mut fixture = timed(120);
        (0..came_before).for_each(|_| fixture.comes_and_goes(1, PIECES));
        let one = fixture.admit(2).unwrap();
        for piece in 0..10 {
            fixture.want(one, piece..piece + 1);
            fixture.pass(500);
        }
        let house = fixture.full_house();
        let refusal = fixture.admit(3).unwrap_err();
        (house.len(), refusal.resource)
    });
    assert_eq!(admitted[0].1, Some(Resource::Memory), "memory is what is short");
    assert_eq!(admitted, [admitted[0]; 3]);
}
