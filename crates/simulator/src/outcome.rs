//! The numbers and violations of a run.

use crate::{TraceLine, Violation};
use std::fmt;
use std::time::Duration;
use units::{ByteCount, Moment};

/// The numbers and violations of a run.
#[derive(Clone, Debug, Default)]
pub struct WorldOutcome {
    /// Seed of the scenario.
    pub seed: u64,
    /// Time at which the last session had ended.
    pub ended: Moment,
    /// Admitted sessions.
    pub admitted: u64,
    /// Admitted sessions whose start was postponed.
    pub waited: u64,
    /// Admitted sessions that replaced another one.
    pub replaced: u64,
    /// Refused admission requests by the resource that was short: disk, memory, network. Every
    /// attempt counts.
    pub refused: [u64; 3],
    /// Refused admission requests that can never be accepted.
    pub refused_for_ever: u64,
    /// Admission requests that came at the exact time that a refusal named, with nothing changed in
    /// between.
    pub exact_retries: u64,
    /// Requests of admitted sessions that were refused, most of them seeks.
    pub refused_seeks: u64,
    /// Reservations of viewers who had gone, or never played, that were given to others.
    pub revoked: u64,
    /// Sessions that ended because a viewer of a higher priority took their places.
    pub preempted: u64,
    /// Number of the first admission request for which sessions ended, counted from 1.
    pub first_preemption: Option<u64>,
    /// Sessions that ended because their disk had long been too slow for all.
    pub overloaded: u64,
    /// Reads from all disks.
    pub reads: u64,
    /// Bytes of all reads.
    pub bytes: u64,
    /// Pieces in memory by their deadline, as counted by the engine.
    pub on_time: u64,
    /// Late pieces, as counted by the engine.
    pub deadline_misses: u64,
    /// Pieces on time, as counted by the checker. It counts fewer than the engine, because it
    /// checks deadlines in play-out order only.
    pub checked_on_time: u64,
    /// Late pieces, as counted by the checker.
    pub checked_late: u64,
    /// Deliveries after their guaranteed time.
    pub late_deliveries: u64,
    /// Stalls of viewers whom the engine's guarantee covers.
    pub stalls: u64,
    /// Stalls of all other viewers, for example with a slow network or after a refused seek.
    pub other_stalls: u64,
    /// Viewers who saw a first picture.
    pub started: u64,
    /// The longest start-up time of viewers whom the engine's guarantee covers.
    pub longest_startup: Duration,
    /// Sessions whose policy guarantees a slack, because it counts disk time.
    pub with_guarantee: u64,
    /// The least time between the end of a read and the end of its slot, in sessions with a
    /// guaranteed slack.
    pub least_slack: Option<Duration>,
    /// Reads that ended after their slot although the disk took no longer than it was charged.
    pub violations_by_scheduler: u64,
    /// Reads that ended after their slot because the disk took longer than it was charged.
    pub violations_by_disk: u64,
    /// Recordings that were admitted.
    pub recordings: u64,
    /// Recordings that were refused.
    pub refused_recordings: u64,
    /// Bytes that recordings had written when they ended.
    pub recorded: u64,
    /// Bytes that came while the buffer of a recording was full, or whose write failed.
    pub not_recorded: u64,
    /// Failures of the power while there were viewers; the world ends with it.
    pub power_failures: u64,
    /// The longest time for which a byte of a recording had been there that a power failure took.
    pub most_lost: Duration,
    /// Sessions that went on with more of a title that is being recorded.
    pub extended: u64,
    /// Extensions that were refused.
    pub refused_extensions: u64,
    /// Parts of recordings that have ended, and were written whole.
    pub parts: u64,
    /// Titles that were removed as parts of a series: because they had been kept for long enough,
    /// and because there was no room.
    pub removed_parts: [u64; 2],
    /// Removed parts of series that were being played.
    pub removed_in_use: u64,
    /// Rounds of writes of recordings.
    pub rounds: u64,
    /// The longest time from when a round was due to its end, in periods.
    pub slowest_round: f64,
    /// How often the memory for buffers was changed.
    pub memory_changes: u64,
    /// Largest amount of memory in use.
    pub peak_memory: ByteCount,
    /// The engine's lowest estimate of a disk's reads per slot, as a share of the disk's guarantee.
    pub lowest_min_read_share: f64,
    /// The engine's highest estimate of a disk's slowdown, as a part of the time charged.
    pub highest_slowdown: f64,
    /// Sessions that continued with another copy after the loss of their disk.
    pub failed_over: u64,
    /// Sessions that ended with the loss of their disk.
    pub ended_by_loss: u64,
    /// Lost disks that were restored.
    pub disks_restored: u64,
    /// Refused admission requests that would fit if no disk could be lost.
    pub refused_for_loss: u64,
    /// Requests that failed because the disk could not read their data.
    pub failed: u64,
    /// Violations of rules, in order of time.
    pub violations: Vec<Violation>,
    /// Hash of the trace; equal for equal runs.
    pub trace_hash: u64,
    /// The last lines of the trace, or those before the first violation.
    pub last_lines: Vec<TraceLine>,
}

impl fmt::Display for WorldOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [disk, memory, network] = self.refused;
        let seconds = self.ended.as_secs_f64();
        writeln!(f, "seed        {}, {seconds:.1} s of virtual time", self.seed)?;
        writeln!(f, "admitted    {}", self.admitted)?;
        writeln!(f, "refused     for disk {disk}, memory {memory}, network {network}")?;
        writeln!(f, "            {} requests of sessions", self.refused_seeks)?;
        writeln!(f, "reads       {}, {}", self.reads, ByteCount(self.bytes))?;
        writeln!(f, "memory      at most {}", self.peak_memory)?;
        writeln!(f, "pieces      {} on time, {} late", self.on_time, self.deadline_misses)?;
        writeln!(
            f,
            "            {} on time, {} late by the checker",
            self.checked_on_time, self.checked_late
        )?;
        let startup = self.longest_startup.as_secs_f64();
        writeln!(f, "players     {} started, start-up {startup:.3} s at most", self.started)?;
        writeln!(f, "stalls      {}, {} without a guarantee", self.stalls, self.other_stalls)?;
        for violation in &self.violations {
            writeln!(f, "VIOLATION   {violation}")?;
        }
        write!(f, "trace       {:016x}", self.trace_hash)
    }
}
