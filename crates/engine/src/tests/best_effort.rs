//! Permits for work without deadlines that count for several reads, on a disk that is read by
//! count.

use super::*;

impl Fixture {
    /// Goes through a slot whose reads take almost all of it; returns the permits that were granted
    /// in it, whose work is done with them. Each viewer requests its piece.
    fn busy_slot(&mut self, number: u32, viewers: &[SessionId]) -> Vec<u64> {
        self.now = Moment::ZERO + Duration::from_millis(500) * number;
        self.engine.tick(self.now);
        self.drain();
        for viewer in viewers {
            self.want(*viewer, number..number + 1);
        }
        self.now = self.now + Duration::from_millis(499);
        self.read_all(ReadOutcome::Good);
        self.send_all();
        let granted = self.take_log("granted");
        let number = |text: &String| text["granted ".len()..].parse().unwrap();
        let granted: Vec<u64> = granted.iter().map(number).collect();
        for permit in &granted {
            self.engine.best_effort_done(self.now, PermitId(*permit));
            self.drain();
        }
        granted
    }

    fn work(&mut self, reads: u32) -> u64 {
        let bytes = ByteCount(u64::from(PIECE * reads));
        let permit = self.engine.request_best_effort(self.now, DiskNumber(0), bytes);
        self.drain();
        permit.0
    }
}

/// A slot's share is two reads here.
fn busy_disk() -> (Fixture, Vec<SessionId>) {
    let mut config = config(16, 10_000);
    config.disks[0].longest_read = Duration::from_millis(31);
    let mut fixture = Fixture::new(config);
    let viewers = (0..5).map(|title| fixture.admit(title).unwrap()).collect();
    (fixture, viewers)
}

#[test]
fn a_permit_of_many_reads_gets_the_shares_of_several_slots() {
    let (mut fixture, viewers) = busy_disk();
    let (large, small) = (fixture.work(8), fixture.work(1));
    let mut granted = Vec::new();
    for number in 0..7 {
        granted.extend(fixture.busy_slot(number, &viewers).into_iter().map(|it| (number, it)));
    }
    // Overdue in the second slot after the request, and then four shares.
    assert_eq!(granted, [(5, large), (6, small)]);
    // What was saved is spent: another one waits as long.
    let again = fixture.work(8);
    let granted = (7..13).map(|number| (number, fixture.busy_slot(number, &viewers)));
    let granted: Vec<_> = granted.filter(|(_, permits)| !permits.is_empty()).collect();
    assert_eq!(granted, [(11, vec![again])]);
    assert_eq!(fixture.engine.status(fixture.now).counters.deadline_misses, 0);
}

#[test]
fn a_permit_of_many_reads_begins_only_where_all_end_within_the_slot() {
    let (mut fixture, viewers) = busy_disk();
    fixture.busy_slot(0, &viewers);
    // In the rest of a slot whose reads are made: eight reads take 248 ms.
    for (number, at, is_granted) in [(1, 400, false), (2, 200, true)] {
        fixture.now = Moment::ZERO + Duration::from_millis(500) * number;
        fixture.engine.tick(fixture.now);
        fixture.drain();
        fixture.now = fixture.now + Duration::from_millis(at);
        let permit = fixture.work(8);
        while !fixture.reads.is_empty() {
            fixture.read_all(ReadOutcome::Good);
        }
        let granted = fixture.take_log("granted");
        assert_eq!(!granted.is_empty(), is_granted, "slot {number}: {granted:?}");
        fixture.engine.best_effort_done(fixture.now, PermitId(permit));
        fixture.drain();
    }
}

/// Two reads in a slot, and three slots after the one of the admission until the first pieces are
/// due.
#[test]
fn a_viewer_who_comes_during_work_of_many_reads_is_read_for_after_it() {
    // What the work counts for, and when the viewer comes: in the slot of the grant, or in the next
    // one, in which the device completes two reads. The pieces that are then in time. One read is
    // sure to end in its slot.
    for (reads, slots, in_time) in
        [(0, 0, 6), (1, 0, 6), (2, 0, 4), (5, 0, 1), (6, 0, 0), (6, 1, 2)]
    {
        let context = format!("work of {reads} reads, {slots} slots later");
        let mut most = 0;
        for pieces in 1..10 {
            let mut config = config(2, 10_000);
            config.disks[0].longest_read = Duration::from_millis(250);
            let mut fixture = Fixture::new(config);
            if reads > 0 {
                let permit = fixture.work(reads);
                assert_eq!(fixture.take_log("granted"), [format!("granted {permit}")], "{context}");
            }
            (0..slots).for_each(|_| fixture.pass(500));
            let track = TrackLayout { due: vec![0; pieces as usize], ..track(pieces) };
            let duration = Duration::from_millis(500);
            let layout =
                Layout { title: TitleKey(1), disk: DiskNumber(0), duration, tracks: vec![track] };
            let answer = fixture.engine.admit(fixture.now, request(Arc::new(layout)));
            if let AdmissionDecision::Admitted { .. } = answer {
                most = pieces;
            }
        }
        assert_eq!(most, in_time, "{context}");
    }
}
