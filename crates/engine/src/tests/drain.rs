//! A disk that is drained: sessions leave it, and no viewer notices.

use super::losses::{copied, two_disks};
use super::*;

impl Fixture {
    fn drain_disk(&mut self, disk: u16, drains: bool) -> bool {
        let known = self.engine.drain_disk(self.now, DiskNumber(disk), drains);
        self.drain();
        known
    }

    fn on_disks(&self) -> Vec<u64> {
        self.engine.status(self.now).disks.iter().map(|disk| disk.sessions).collect()
    }

    fn admit_copied(&mut self, title: u64) -> SessionId {
        let answer = self.engine.admit(self.now, copied(title));
        self.drain();
        let AdmissionDecision::Admitted { session, .. } = answer else { panic!("{answer:?}") };
        session
    }
}

#[test]
fn sessions_leave_a_drained_disk_at_their_deadlines() {
    for after in (0..20).map(|step| 170 * step) {
        let mut fixture = Fixture::new(two_disks(8, false));
        let sessions: Vec<SessionId> = (1..=4).map(|title| fixture.admit_copied(title)).collect();
        let alone = fixture.admit(9).unwrap();
        assert_eq!(fixture.on_disks(), [3, 2]);
        for session in sessions.iter().chain([&alone]) {
            fixture.want(*session, 0..PIECES);
        }
        fixture.pass(after);
        assert!(fixture.drain_disk(0, true) && !fixture.drain_disk(7, true));
        fixture.pass(3000);
        assert_eq!(fixture.on_disks(), [1, 4], "{after} ms: one title is only there");
        let new = fixture.admit_copied(10);
        assert_eq!(fixture.on_disks(), [1, 5], "a new one is read from its other copy");
        let there = fixture.admit(11).unwrap();
        assert_eq!(fixture.on_disks(), [2, 5], "or from here, where there is none");
        for session in [new, there] {
            fixture.want(session, 0..PIECES);
        }
        fixture.pass(60_000);
        let status = fixture.engine.status(fixture.now);
        let whole = 7 * u64::from(PIECES);
        let counters = status.counters;
        assert_eq!((counters.deadlines_met, counters.deadline_misses), (whole, 0), "{after} ms");
        assert_eq!(fixture.take_log("Delayed"), [] as [&str; 0], "{after} ms");
    }
}
