//! A disk that stays slower than what is booked on it: who ends, and who does not.

use super::*;
use Priority::{High, Low, Normal};

/// Viewers of these priorities play on a disk of so many reads in a slot, which completes `does`
/// of them for so many slots. The sessions that have ended, with the slots after which.
fn ends(priorities: &[Priority], guaranteed: u32, does: usize, slots: u32) -> Vec<(u32, usize)> {
    let mut fixture = Fixture::new(config(guaranteed, 10_000));
    let mut sessions = Vec::new();
    for (title, priority) in (1..).zip(priorities) {
        let wanted = AdmitRequest { priority: *priority, ..request(long(title)) };
        let AdmissionDecision::Admitted { session, .. } = fixture.engine.admit(fixture.now, wanted)
        else {
            panic!("there is room")
        };
        fixture.drain();
        fixture.want(session, 0..LONG);
        sessions.push(session);
    }
    // All have started, and the disk reads ahead.
    (0..10).for_each(|_| fixture.slot_with(guaranteed as usize));
    let mut open = vec![true; sessions.len()];
    let mut ended = Vec::new();
    for slot in 0..slots {
        fixture.slot_with(does);
        for (number, session) in sessions.iter().enumerate() {
            if open[number] && fixture.engine.session(fixture.now, *session).is_none() {
                open[number] = false;
                ended.push((slot, number));
            }
        }
    }
    let counters = &fixture.engine.status(fixture.now).counters;
    let of_priority = counters.preempted_of_priority.iter().sum::<u64>();
    assert_eq!([counters.preempted_by_overload, of_priority], [ended.len() as u64; 2]);
    ended
}

const LONG: u32 = 400;

fn long(title: u64) -> Arc<Layout> {
    let there = Arc::into_inner(layout(title)).expect("made just now");
    Arc::new(Layout { duration: Duration::from_secs(200), tracks: vec![track(LONG)], ..there })
}

impl Fixture {
    /// The disk does so many reads in this slot, and sockets take all; the next slot begins.
    pub(super) fn slot_with(&mut self, reads: usize) {
        for _ in 0..reads {
            self.send_all();
            if self.reads.is_empty() {
                break;
            }
            let read = self.reads.remove(0);
            self.engine.read_done(self.now, read, ReadOutcome::Good);
            self.drain();
        }
        self.send_all();
        self.now = self.engine.next_wakeup();
        self.engine.tick(self.now);
        self.drain();
    }
}

#[test]
fn the_newest_of_the_lowest_priority_end_until_the_disk_holds_the_rest() {
    let priorities = [Low, Normal, High, Low, Normal, Normal];
    // Six reads are due in each slot.
    let ended = ends(&priorities, 12, 3, 100);
    let numbers: Vec<usize> = ended.iter().map(|(_, number)| *number).collect();
    assert_eq!(numbers, [0, 3, 4, 5], "the low ones, then the newest: {ended:?}");
    assert!(ended[0].0 >= 19, "not at once: {ended:?}");
}

#[test]
fn nobody_ends_while_a_disk_holds_what_is_booked_or_catches_up() {
    let priorities = [Low, Normal, High, Low];
    assert_eq!(ends(&priorities, 12, 4, 100), [], "slower than calibrated, and fast enough");
    assert_eq!(ends(&priorities, 12, 12, 100), [], "as calibrated");
    assert_eq!(ends(&priorities, 12, 2, 15), [], "for some seconds");
}

#[test]
fn the_last_session_stays_however_slow_the_disk_is() {
    let ended = ends(&[Low, Low, Normal], 12, 1, 300);
    assert!(ended.len() <= 2 && !ended.iter().any(|(_, number)| *number == 2), "{ended:?}");
}
