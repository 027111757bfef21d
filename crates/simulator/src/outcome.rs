//! What came of a run.

use crate::{TraceLine, Violation};
use std::fmt;
use std::time::Duration;
use units::{ByteCount, Moment};

/// What came of a run.
#[derive(Clone, Debug, Default)]
pub struct WorldOutcome {
    /// Its seed.
    pub seed: u64,
    /// When the last session had ended.
    pub ended: Moment,
    /// Sessions let in.
    pub admitted: u64,
    /// Sessions let in whose start was put off.
    pub waited: u64,
    /// Sessions let in that took the place of another one.
    pub replaced: u64,
    /// Refusals at the door for want of disk, memory and network; who tries again counts again.
    pub refused: [u64; 3],
    /// Seeks refused, and the like.
    pub refused_seeks: u64,
    /// Reads from all disks.
    pub reads: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Pieces in memory by their deadline, as the engine counts.
    pub on_time: u64,
    /// Pieces late, as the engine counts.
    pub deadline_misses: u64,
    /// Pieces on time, as the checker counts: fewer than the engine, it looks at plain play-out.
    pub checked_on_time: u64,
    /// Pieces late, as the checker counts.
    pub checked_late: u64,
    /// Deliveries made later than promised.
    pub late_deliveries: u64,
    /// Stalls of viewers who did all that a good player does.
    pub stalls: u64,
    /// Stalls of the others, whose network is slow, who paused for long and so on.
    pub other_stalls: u64,
    /// Viewers who saw a first picture.
    pub started: u64,
    /// The longest wait for a first picture of viewers who did all that a good player does.
    pub longest_startup: Duration,
    /// Sessions with a certificate: their disk's time was counted.
    pub with_guarantee: u64,
    /// By how much a read of theirs was done before its slot's end, at the least.
    pub least_slack: Option<Duration>,
    /// Reads of theirs done after it by a disk that took no longer than it was charged ...
    pub violations_by_scheduler: u64,
    /// ... and by one that took longer.
    pub violations_by_disk: u64,
    /// The most memory in use.
    pub peak_memory: ByteCount,
    /// The least that the engine believed of a disk, as a share of what was promised of it.
    pub lowest_min_read_share: f64,
    /// The most that the engine believed a disk to be behind, as a part of what it is counted with.
    pub highest_slowdown: f64,
    /// Sessions that went on with another copy when their disk was lost ...
    pub failed_over: u64,
    /// ... and that ended when it was.
    pub ended_by_loss: u64,
    /// Lost disks that came back.
    pub disks_restored: u64,
    /// Refusals of whom there was room for as long as no disk is lost.
    pub refused_for_loss: u64,
    /// Requests that could not be had from the disk.
    pub failed: u64,
    /// Rules broken, first first.
    pub violations: Vec<Violation>,
    /// Equal for equal runs.
    pub trace_hash: u64,
    /// The last lines of the trace; where a rule was broken, those that led to it.
    pub last_lines: Vec<TraceLine>,
}

impl fmt::Display for WorldOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [disk, memory, network] = self.refused;
        let seconds = self.ended.as_secs_f64();
        writeln!(f, "seed        {}, {seconds:.1} s of virtual time", self.seed)?;
        writeln!(f, "admitted    {}", self.admitted)?;
        writeln!(f, "refused     for disk {disk}, memory {memory}, network {network}")?;
        writeln!(f, "            {} seeks and the like", self.refused_seeks)?;
        writeln!(f, "reads       {}, {}", self.reads, ByteCount(self.bytes))?;
        writeln!(f, "memory      at most {}", self.peak_memory)?;
        writeln!(f, "pieces      {} on time, {} late", self.on_time, self.deadline_misses)?;
        writeln!(
            f,
            "            {} and {} seen from outside",
            self.checked_on_time, self.checked_late
        )?;
        let startup = self.longest_startup.as_secs_f64();
        writeln!(f, "players     {} started, waited {startup:.3} s at most", self.started)?;
        writeln!(f, "stalls      {}, {} of players at fault", self.stalls, self.other_stalls)?;
        for violation in &self.violations {
            writeln!(f, "BROKEN      {violation}")?;
        }
        write!(f, "trace       {:016x}", self.trace_hash)
    }
}
