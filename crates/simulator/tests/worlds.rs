//! Thousands of small worlds, each from a seed of its own. A failing seed is printed with the
//! command that runs it again, its scenario and the end of its trace.
//!
//! `TENUTO_SEED=17 cargo test -p simulator` runs that seed only; `TENUTO_SEEDS=100000` more seeds.

#![expect(clippy::print_stdout, reason = "the counts of a run, with --nocapture")]

mod seeds;

use simulator::{FaultClass, Scenario, WorldOutcome, draw, run};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

#[test]
fn no_admitted_stream_misses_a_deadline_while_every_disk_keeps_its_guarantee() {
    let (mut pieces, mut admitted, mut refused, mut guaranteed) = (0, 0, 0, 0);
    let (mut for_ever, mut exact) = (0, 0);
    let (mut waited, mut replaced, mut memory_changes, mut preempted) = (0, 0, 0, 0);
    let (mut recordings, mut refused_recordings, mut rounds, mut slowest) = (0, 0, 0, 0.0_f64);
    let (mut recorded, mut not_recorded, mut power_failures, mut lost) = (0, 0, 0, Duration::ZERO);
    let (mut extended, mut refused_extensions) = (0, 0);
    let (mut parts, mut expired, mut for_room, mut in_use) = (0, 0, 0, 0);
    for outcome in all_seeds(FaultClass::FaultFree, FAULT_FREE_SEEDS) {
        pieces += outcome.checked_on_time;
        admitted += outcome.admitted;
        waited += outcome.waited;
        replaced += outcome.replaced;
        memory_changes += outcome.memory_changes;
        preempted += outcome.preempted;
        recordings += outcome.recordings;
        refused_recordings += outcome.refused_recordings;
        rounds += outcome.rounds;
        slowest = slowest.max(outcome.slowest_round);
        recorded += outcome.recorded;
        not_recorded += outcome.not_recorded;
        power_failures += outcome.power_failures;
        lost = lost.max(outcome.most_lost);
        extended += outcome.extended;
        refused_extensions += outcome.refused_extensions;
        parts += outcome.parts;
        expired += outcome.removed_parts[0];
        for_room += outcome.removed_parts[1];
        in_use += outcome.removed_in_use;
        guaranteed += outcome.with_guarantee;
        refused += outcome.refused.iter().sum::<u64>();
        for_ever += outcome.refused_for_ever;
        exact += outcome.exact_retries;
    }
    println!("{pieces} reads on time, {admitted} viewers admitted, {refused} requests refused");
    println!(
        "{recordings} recordings admitted, {refused_recordings} refused, {rounds} rounds of writes, the \
         slowest took {slowest:.2} periods"
    );
    println!(
        "{recorded} bytes recorded, {not_recorded} not; {power_failures} power failures, which took \
         {lost:?} at most"
    );
    println!("{extended} extensions of sessions, {refused_extensions} refused");
    println!(
        "{parts} parts of recordings; {expired} removed when they had expired, {for_room} for want of \
         room, {in_use} of them while they were played"
    );
    // The property proves something only if many viewers were admitted and many were refused.
    if seeds::single().is_none() {
        assert!(pieces > 100_000, "only {pieces} pieces were checked");
        assert!(admitted > 5_000 && refused > 5_000, "{admitted} admitted, {refused} refused");
        assert!(for_ever > 1_000 && exact > 10, "{for_ever} refused for ever, {exact} came back");
        assert!(waited > 50 && replaced > 50, "{waited} waited, {replaced} replaced");
        assert!(preempted > 200, "only {preempted} ended for others");
        assert!(memory_changes > 1_000, "the memory changed {memory_changes} times");
        let counted = (recordings, refused_recordings, rounds);
        let enough = recordings > 200 && refused_recordings > 50 && rounds > 20_000;
        assert!(enough, "{counted:?} recordings, refused, rounds");
        assert_eq!(not_recorded, 0, "bytes of recordings were dropped");
        assert!(power_failures > 20, "only {power_failures} power failures");
        let extensions = (extended, refused_extensions);
        assert!(parts > 3_000, "only {parts} parts of recordings");
        let removed = (expired, for_room, in_use);
        let enough = expired > 50 && for_room > 10 && in_use > 15;
        assert!(enough, "{removed:?} parts expired, made room, were in use");
        assert!(extended > 500 && refused_extensions > 100, "{extensions:?} extensions, refused");
        assert!(guaranteed > 1_000, "only {guaranteed} sessions had a guaranteed slack");
    }
}

#[test]
fn sessions_survive_the_loss_of_a_disk_if_admission_planned_for_it() {
    let (mut pieces, mut failed_over, mut lost, mut refused) = (0, 0, 0, 0);
    for outcome in all_seeds(FaultClass::DiskLoss, DISK_LOSS_SEEDS) {
        pieces += outcome.checked_on_time;
        failed_over += outcome.failed_over;
        lost += outcome.ended_by_loss;
        refused += outcome.refused_for_loss;
    }
    println!("{pieces} reads on time, {failed_over} sessions failed over");
    assert_eq!(lost, 0, "sessions ended with their disk");
    if seeds::single().is_none() {
        assert!(pieces > 20_000, "only {pieces} pieces were checked");
        assert!(failed_over > 100 && refused > 500, "{failed_over} failed over, {refused} refused");
    }
}

#[test]
fn every_other_rule_holds_under_any_disk_fault() {
    let (mut misses, mut failed, mut overloaded) = (0, 0, 0);
    for outcome in all_seeds(FaultClass::AnyFault, ANY_FAULT_SEEDS) {
        misses += outcome.deadline_misses;
        failed += outcome.failed;
        overloaded += outcome.overloaded;
    }
    println!("{misses} deadline misses, {failed} reads failed, {overloaded} sessions ended");
    if seeds::single().is_none() {
        assert!(misses > 1_000 && failed > 1_000, "{misses} misses, {failed} failed");
    }
}

#[test]
fn nobody_ends_for_a_viewer_who_would_be_admitted_anyway() {
    let mut compared = 0;
    for seed in 0..PRIORITY_SEEDS {
        let scenario = draw(FaultClass::FaultFree, seed);
        if scenario.viewers.high == 0.0 {
            continue;
        }
        let Some(request) = run(&scenario).first_preemption else { continue };
        // The same world up to this request, which then ends nobody's session.
        let admitted = simulator::would_be_admitted_as_lowest(&scenario, request);
        assert_eq!(admitted, Some(false), "seed {seed}, request {request}");
        compared += 1;
    }
    assert!(compared > 20, "only {compared} worlds in which a session ended for another");
}

#[test]
fn seeds_that_once_broke_a_rule_break_none() {
    let broken = ONCE_BROKEN.iter().find_map(|(class, seed)| run_seed(*class, *seed).err());
    assert!(broken.is_none(), "{}", broken.map_or(String::new(), |seed| seed.report));
}

#[test]
fn two_runs_of_one_seed_give_equal_traces() {
    for class in [FaultClass::FaultFree, FaultClass::DiskLoss, FaultClass::AnyFault] {
        for seed in 0..20 {
            let scenario = draw(class, seed);
            let (first, second) = (run(&scenario), run(&scenario));
            assert_eq!(first.trace_hash, second.trace_hash, "{class:?}, seed {seed}");
            let stored = Scenario::parse(&scenario.to_toml()).expect("a drawn scenario is valid");
            assert_eq!(run(&stored).trace_hash, first.trace_hash, "{class:?}, seed {seed}, stored");
        }
    }
}

/// Runs all seeds, on all processors; panics with the report of the first that breaks a rule.
fn all_seeds(class: FaultClass, seeds: u64) -> Vec<WorldOutcome> {
    let results = seeds::run_each(seeds, |seed| run_seed(class, seed));
    let broken: Vec<&BrokenSeed> =
        results.iter().filter_map(|(_, result)| result.as_ref().err()).collect();
    let mut rules = BTreeMap::<&str, Vec<u64>>::new();
    for seed in &broken {
        rules.entry(seed.rule).or_default().push(seed.seed);
    }
    for seeds in rules.values_mut() {
        seeds.sort_unstable();
        seeds.truncate(8);
    }
    if let Some(first) = broken.iter().min_by_key(|broken| broken.seed) {
        panic!("{} seeds break a rule: {rules:#?}\n{}", broken.len(), first.report);
    }
    results.into_iter().filter_map(|(_, result)| result.ok()).collect()
}

/// A seed that broke a rule.
struct BrokenSeed {
    seed: u64,
    rule: &'static str,
    report: String,
}

fn run_seed(class: FaultClass, seed: u64) -> Result<WorldOutcome, BrokenSeed> {
    let scenario = draw(class, seed);
    let repeat = format!(
        "{class:?}, seed {seed}; run it again: TENUTO_SEED={seed} cargo test -p simulator\n{}",
        scenario.to_toml()
    );
    let outcome = catch_unwind(AssertUnwindSafe(|| run(&scenario))).map_err(|panic| {
        let literal = || panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = panic.downcast_ref::<String>().cloned().or_else(literal).unwrap_or_default();
        let report = format!("a panic: {text}\n{repeat}");
        BrokenSeed { seed, rule: "nothing panics", report }
    })?;
    let Some(first) = outcome.violations.first() else { return Ok(outcome) };
    let trace: Vec<String> = outcome.last_lines.iter().map(ToString::to_string).collect();
    let shown = &trace[trace.len().saturating_sub(SHOWN_LINES)..];
    Err(BrokenSeed {
        seed,
        rule: first.rule,
        report: format!("{}\n{outcome}\n{repeat}", shown.join("\n")),
    })
}

/// Chosen so that the whole file takes about two minutes on two processors, barely optimised.
const FAULT_FREE_SEEDS: u64 = 1_400;
const ANY_FAULT_SEEDS: u64 = 700;
const DISK_LOSS_SEEDS: u64 = 400;
/// One in five of them has viewers of several priorities.
const PRIORITY_SEEDS: u64 = 600;

/// Seeds above the ranges that are always run, with the error that each has found.
const ONCE_BROKEN: [(FaultClass, u64); 75] = [
    // A request that arrived in the tick in which its reservation expired was handled after the
    // release.
    (FaultClass::FaultFree, 3557),
    // The checker assumed a start-up shorter than the engine's minimum for surviving a disk loss.
    (FaultClass::AnyFault, 1734),
    (FaultClass::AnyFault, 6196),
    // Late pieces and the pieces after them were kept longer than the memory plan assumed.
    (FaultClass::AnyFault, 9335),
    // Late pieces were not counted if their disk was lost before they were read again.
    (FaultClass::AnyFault, 9767),
    // The checker took a request that was delivered in part and refused within one call for one
    // that was never accepted.
    (FaultClass::AnyFault, 8920),
    // A seek to the segment before the one that was granted was refused. It would have ended where
    // the grant begins, and the checker moved that place to the start of the refused request.
    (FaultClass::AnyFault, 10343),
    // Memory that viewers of a lost disk held moved with them and was also reserved for new viewers
    // of a third disk.
    (FaultClass::DiskLoss, 2441),
    // A player without a connection opened one and asked for a track in the slot in which the
    // track's reservation expired: the connection, which came first, let time advance.
    (FaultClass::DiskLoss, 963),
    // A disk was lost while a stream that read for others had chosen reads that were not issued:
    // they were forgotten before the stream ended, which then released their buffers.
    (FaultClass::AnyFault, 1939),
    // A read failed for good that held pieces of a stream that reads for others and of one of
    // those: one of the two went on to the next piece, of the same read, before it was given up.
    (FaultClass::AnyFault, 7164),
    (FaultClass::AnyFault, 19305),
    // A title of one short piece was refused for ever, for memory that a full piece would take.
    (FaultClass::AnyFault, 4186),
    (FaultClass::DiskLoss, 11535),
    // A player that began at the second piece of those at which it might, and broke off, was taken
    // for one that still needed the first: late, and delayed.
    (FaultClass::FaultFree, 12023),
    (FaultClass::FaultFree, 14183),
    (FaultClass::FaultFree, 18646),
    // The same of a track that the player never asked for.
    (FaultClass::FaultFree, 18728),
    // A sweep was taken back for a newcomer, whose sockets then had the memory of what was due in
    // the running slot: the rounds of the baselines had only been tested from the next slot on.
    (FaultClass::FaultFree, 6093),
    (FaultClass::DiskLoss, 11353),
    // The reads ahead that failed on a dying disk were all repeated at once on the other disk,
    // which had reserved its time for what was due there first.
    (FaultClass::DiskLoss, 3452),
    (FaultClass::DiskLoss, 6442),
    (FaultClass::DiskLoss, 10316),
    // The same: the other disk was so far behind by then that nothing fitted on it, not even what
    // was booked for it, and the sessions of the lost disk were ended.
    (FaultClass::DiskLoss, 4919),
    (FaultClass::DiskLoss, 18829),
    (FaultClass::DiskLoss, 18926),
    // A failed read waited for the slots of a player that was late and was given a later schedule.
    (FaultClass::DiskLoss, 580),
    // A short title whose reads all failed waited for the one slot in which all of it was due.
    (FaultClass::DiskLoss, 11800),
    // A track of one piece that its player had not asked for yet was taken for one at its end, of
    // which nothing is needed any more, and released too early.
    (FaultClass::DiskLoss, 8393),
    (FaultClass::DiskLoss, 15943),
    // What sessions of a lost disk had read there counted as work of the disk that they moved to,
    // for policies that count what is booked: the last ones were delayed.
    (FaultClass::DiskLoss, 4207),
    // A piece came behind one that was still being read, and was released late by the stream that
    // reads for others. The last follower, which then read for itself, never counted it.
    (FaultClass::AnyFault, 1659),
    // A session of a lost disk was ended, because what was due in the running slot was asked to fit
    // before that slot freed anything.
    (FaultClass::DiskLoss, 3164),
    // What was due before a silent disk counted as lost was late on the disk that its sessions
    // moved to, which had never been given time for it: counted as the scheduler's violation.
    (FaultClass::AnyFault, 10189),
    (FaultClass::AnyFault, 11899),
    (FaultClass::AnyFault, 13039),
    // Failed reads that another disk was slow to repeat still had the memory of sessions that had
    // left: a newcomer had to wait for it, which counted as the scheduler's violation.
    (FaultClass::AnyFault, 11884),
    // Of a request for two tracks one was readmitted as a seek; then the other, which went on but
    // whose data was released, was refused: the request was refused, and a track had changed.
    (FaultClass::FaultFree, 5312),
    (FaultClass::FaultFree, 8322),
    (FaultClass::AnyFault, 14872),
    // A viewer tried to replace its session in the moment in which the reservation expired, and
    // then asked for data: the world noted the request before the release.
    (FaultClass::FaultFree, 11513),
    // A piece that came in time was dropped after its deadline, and read again too late for the
    // later schedule that its viewer had been given since: it was not counted again.
    (FaultClass::AnyFault, 3081),
    (FaultClass::AnyFault, 15137),
    // A refusal named an exact time, at which a disk that was faster than charged for had reads
    // of later slots in it.
    (FaultClass::FaultFree, 10959),
    // At the exact time of a refusal another viewer was late and was given a later schedule: the
    // checker noted that after the answer.
    (FaultClass::FaultFree, 15858),
    (FaultClass::FaultFree, 17808),
    // A viewer who left in the moment in which it was refused another session asked for data.
    (FaultClass::AnyFault, 18173),
    // Best-effort work of more reads than a slot has went on into the slots of a viewer who was
    // admitted as if they were free.
    (FaultClass::FaultFree, 5098),
    (FaultClass::FaultFree, 8400),
    // Best-effort work was begun in front of each write of a recording.
    (FaultClass::FaultFree, 2541),
    (FaultClass::FaultFree, 7882),
    (FaultClass::FaultFree, 5556),
    // Where reads are counted, each of its writes was charged as a read of a full batch.
    (FaultClass::FaultFree, 1999),
    (FaultClass::FaultFree, 5968),
    (FaultClass::FaultFree, 17743),
    // After a seek to the last segment of a title that grows, deadlines counted from its beginning.
    (FaultClass::FaultFree, 1565),
    (FaultClass::FaultFree, 9211),
    // The schedule of a viewer of such a title moved later by more than it had to.
    (FaultClass::FaultFree, 3448),
    (FaultClass::FaultFree, 9238),
    (FaultClass::FaultFree, 10888),
    // A viewer who had taken over the reads of a stream ahead read what was new at its pace.
    (FaultClass::FaultFree, 5251),
    // Nothing was refused, and a recording that asked for more than the disk left its readers none.
    (FaultClass::AnyFault, 1471),
    // At four times the speed, the viewer's link was slower than the title.
    (FaultClass::DiskLoss, 2764),
    // Sessions that had read all they needed ended with their disk: the disk of their copy had a
    // slot that was too full as booked, and read already.
    (FaultClass::DiskLoss, 9598),
    // Nothing was refused, and recordings that asked for more than there is left no read of a slot.
    (FaultClass::AnyFault, 2916),
    // The checker did not wait for what recordings had still to write after the last viewer.
    (FaultClass::AnyFault, 2422),
    (FaultClass::AnyFault, 3545),
    // Room in the sockets that was kept for a response stayed kept when that failed: the younger
    // one waited for ever.
    (FaultClass::AnyFault, 3731),
    // Without admission control, where reads take longer than a slot, a stream that began anew at
    // each slot read again what was being read for it.
    (FaultClass::AnyFault, 6847),
    (FaultClass::AnyFault, 8400),
    (FaultClass::AnyFault, 19036),
    // A piece that had come late was held longer, a later schedule moved that along, and the piece
    // was dropped: the books kept the longer time.
    (FaultClass::AnyFault, 8114),
    // A response of several requests of which a later one was refused counted as asked for to its
    // end.
    (FaultClass::AnyFault, 8910),
    // A player asked for the segment behind one that had been refused.
    (FaultClass::AnyFault, 12803),
    // A request that never fits was admitted later, when its first media was in memory.
    (FaultClass::FaultFree, 4949),
];

/// Lines of the trace in a report.
const SHOWN_LINES: usize = 60;
