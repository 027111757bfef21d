//! Memory that shrinks and grows while the engine runs.

use super::*;

const PIECE_BYTES: u64 = PIECE as u64;

impl Fixture {
    fn set_memory(&mut self, buffers: u64) {
        self.engine.set_memory(self.now, ByteCount(buffers * PIECE_BYTES));
        self.drain();
        self.engine.audit().expect("books and buffers agree");
    }

    // Pieces that there is memory for, and that there is to be memory for.
    fn memory(&self) -> (u64, u64) {
        let status = self.engine.status(self.now);
        (status.buffers_total / PIECE_BYTES, status.buffers_limit / PIECE_BYTES)
    }

    // Plays all slots of two titles, with every read done.
    fn play_slots(&mut self, slots: u32) {
        for _ in 0..slots {
            self.pass(500);
            self.read_all(ReadOutcome::Good);
            self.engine.audit().expect("books and buffers agree");
        }
    }
}

#[test]
fn memory_that_nobody_needs_is_given_back_at_once_and_comes_back() {
    let mut fixture = Fixture::new(config(10, 100));
    fixture.set_memory(10);
    assert_eq!(fixture.memory(), (10, 10));
    fixture.set_memory(250);
    assert_eq!(fixture.memory(), (250, 250));
    assert!(fixture.admit(1).is_ok());
}

#[test]
fn read_ahead_is_given_up_for_memory_that_shrinks() {
    let mut fixture = Fixture::new(config(40, 100));
    fixture.admit(1).unwrap();
    fixture.play_slots(2);
    let held = fixture.engine.status(fixture.now).buffers_used / PIECE_BYTES;
    assert_eq!(held, u64::from(PIECES), "all of the title is read ahead");
    fixture.set_memory(12);
    fixture.play_slots(2);
    assert_eq!(fixture.memory(), (12, 12));
    assert!(fixture.engine.status(fixture.now).buffers_used <= 12 * PIECE_BYTES);
    fixture.play_slots(40);
    assert_eq!(fixture.engine.status(fixture.now).counters.deadline_misses, 0);
}

#[test]
fn admitted_viewers_keep_what_they_need_and_newcomers_are_refused() {
    let mut fixture = Fixture::new(config(40, 200));
    let sessions: Vec<SessionId> = (1..9).map(|title| fixture.admit(title).unwrap()).collect();
    fixture.play_slots(3);
    fixture.set_memory(20);
    let (now, limit) = fixture.memory();
    assert!(now > limit && now < 200, "{now} of {limit}");
    let refusal = fixture.admit(20).unwrap_err();
    assert_eq!(refusal.resource, Some(Resource::Memory), "{refusal:?}");
    assert_eq!(refusal.cause, RefusalCause::Sessions, "{refusal:?}");
    assert!(refusal.retry.after().is_some(), "{refusal:?}");
    fixture.play_slots(4);
    assert_eq!(fixture.engine.status(fixture.now).counters.deadline_misses, 0);
    sessions.into_iter().for_each(|session| fixture.engine.close(fixture.now, session));
    fixture.play_slots(1);
    assert_eq!(fixture.memory(), (20, 20));
    assert!(fixture.admit(20).is_ok());
}

#[test]
fn a_title_that_fitted_before_is_refused_for_less_memory_and_not_for_ever() {
    let mut fixture = Fixture::new(config(10, 100));
    fixture.set_memory(2);
    let refusal = fixture.admit(1).unwrap_err();
    assert_eq!(refusal.cause, RefusalCause::LessMemory, "{refusal:?}");
    assert_eq!(refusal.retry, RetryAfter::Unknown, "{refusal:?}");
    fixture.set_memory(100);
    assert!(fixture.admit(1).is_ok());
}
