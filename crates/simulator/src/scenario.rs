//! Scenarios: the options of a simulated world, as plain data in TOML.
//!
//! A scenario and its seed give one run, equal on every machine. The scenario states probabilities;
//! the seed decides what each viewer and disk does.

use scheduler::PolicyKind;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use units::{BitRate, ByteCount, Reason};

mod quantity;

/// A world. Every field has a default; unknown names are refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scenario {
    /// Seed of all random numbers.
    pub seed: u64,
    /// Name of any policy that `tenuto simulate admission` knows.
    #[serde(with = "quantity::policy")]
    pub policy: PolicyKind,
    /// The scheduling period.
    #[serde(with = "quantity::time")]
    pub slot: Duration,
    /// Time from admission until the first piece must be in memory: at least two slots, or three
    /// with `survive_loss`.
    #[serde(with = "quantity::time")]
    pub startup: Duration,
    /// Buffer memory.
    #[serde(with = "quantity::text")]
    pub memory: ByteCount,
    /// Network rate that admission may reserve; left out: no limit.
    #[serde(with = "quantity::optional_text", skip_serializing_if = "Option::is_none")]
    pub network: Option<BitRate>,
    /// Time after its admission at which a session without a request is ended.
    #[serde(with = "quantity::time")]
    pub reservation_hold: Duration,
    /// Media time that may fall due without a request before a session's reservation is released.
    #[serde(with = "quantity::time")]
    pub idle_after: Duration,
    /// Time without any request after which a session is ended.
    #[serde(with = "quantity::time")]
    pub ended_after: Duration,
    /// Admission accepts only sessions that survive the loss of any one disk.
    pub survive_loss: bool,
    /// The library.
    pub titles: Titles,
    /// The audience.
    pub viewers: Viewers,
    /// Best-effort work, removals and recalibration.
    pub background: BackgroundWork,
    /// The disks; at least one.
    pub disks: Vec<DiskSpec>,
}

/// The library: titles of variable bit rate, with video, audio and sometimes a second rendition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Titles {
    /// Number of titles.
    pub count: u32,
    /// Shortest play-out time.
    #[serde(with = "quantity::time")]
    pub shortest: Duration,
    /// Longest play-out time.
    #[serde(with = "quantity::time")]
    pub longest: Duration,
    /// Mean rate of the leanest video.
    #[serde(with = "quantity::text")]
    pub slowest: BitRate,
    /// Mean rate of the richest video.
    #[serde(with = "quantity::text")]
    pub fastest: BitRate,
    /// Play-out time of a segment. A multiple of 500 ms.
    #[serde(with = "quantity::time")]
    pub segment: Duration,
    /// Share of titles fetched as one interleaved file (0 to 1); the rest in segments.
    pub progressive: f64,
    /// Share of titles with a second, leaner rendition (0 to 1).
    pub ladders: f64,
    /// Share of titles with only a few bytes and half a second (0 to 1).
    pub tiny: f64,
    /// Share of titles of which only a part is played (0 to 1): every piece, or every second, third
    /// or fourth one, forwards or backwards, with a quarter to twice of its play-out time.
    pub partial: f64,
    /// Whether titles in segments have leads: see `engine::TrackLayout::lead`.
    pub leads: bool,
    /// Share of titles with a replica on a second disk (0 to 1).
    pub copies: f64,
    /// Share of titles in segments that are being recorded while the viewers come (0 to 1): their
    /// segments are offered one after the other, and sessions are extended to them.
    pub growing: f64,
}

/// The audience. Shares are of all viewers, 0 to 1, drawn independently.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Viewers {
    /// Number of viewers.
    pub count: u32,
    /// Mean time between two arrivals (Poisson).
    #[serde(with = "quantity::time")]
    pub every: Duration,
    /// Media that a player buffers ahead of play-out.
    #[serde(with = "quantity::time")]
    pub buffer: Duration,
    /// Share that starts at a random position.
    pub resume: f64,
    /// Share that seeks.
    pub seek: f64,
    /// How often such a viewer seeks at most; at least once.
    pub most_seeks: u32,
    /// Popularity of titles by Zipf's law with this exponent; zero: the lesser of two random titles
    /// is chosen.
    pub zipf: f64,
    /// Share that pauses once, for up to twice `ended_after`.
    pub pause: f64,
    /// Share that leaves before the end.
    pub quit: f64,
    /// Share whose network is slower than the media.
    pub slow: f64,
    /// Share that makes no request after its admission.
    pub silent: f64,
    /// Share whose socket takes no more data after a random time.
    pub stalled_socket: f64,
    /// Share that closes its session when it leaves; the others leave it open.
    pub close: f64,
    /// Share that prefers a postponed start to a refusal.
    pub patient: f64,
    /// The longest postponement that a patient viewer accepts.
    #[serde(with = "quantity::time")]
    pub patience: Duration,
    /// Share that has a connection for each request. The others keep theirs.
    pub reconnect: f64,
    /// Share that once closes its connection between two requests, and comes back for the next.
    pub away: f64,
    /// Share that closes its connections when it leaves.
    pub hang_up: f64,
    /// Share that ends its session first when it leaves.
    pub end: f64,
    /// Share that once replaces its session by a new one that starts at the segment it needs next,
    /// as a player does that loads the manifest again for another part or speed of the title.
    pub replace: f64,
    /// Share that asks for the next segment before it has read the one before, and leaves it in its
    /// socket until then.
    pub read_ahead: f64,
    /// Reads of a track for which the engine is asked at a time: a response needs several such
    /// requests. Zero: one request for each response.
    pub reads_per_request: u32,
    /// Share of a low priority.
    pub low: f64,
    /// Share of a high priority, of those whose priority is not low.
    pub high: f64,
}

/// Work in the background of the viewers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BackgroundWork {
    /// Mean time between two requests for best-effort work; zero: none.
    #[serde(with = "quantity::time")]
    pub best_effort_every: Duration,
    /// Number of titles removed while viewers arrive.
    pub removals: u32,
    /// Time at which the first disk gets the new guarantee `new_min_read`; zero: never.
    #[serde(with = "quantity::time")]
    pub calibrated_at: Duration,
    /// Reads per slot that the first disk guarantees from `calibrated_at` on.
    pub new_min_read: u32,
    /// Mean time between two changes of the memory for buffers, to a random part of it; zero: none.
    #[serde(with = "quantity::time")]
    pub memory_changes_every: Duration,
    /// The least part of the memory that there is after a change, in percent.
    pub least_memory: u64,
    /// Recordings with a guaranteed rate that begin while viewers arrive, each on a random disk. An
    /// admitted one writes until the last viewer has left, or ends at a random time.
    pub recordings: u32,
    /// Time between two rounds of writes of a recording.
    #[serde(with = "quantity::time")]
    pub recording_period: Duration,
    /// Bytes of a round, to two places; another write of two blocks and a flush follows.
    #[serde(with = "quantity::text")]
    pub recording_round: ByteCount,
    /// Share of recordings whose rate varies (0 to 1): a round has any part of `recording_round`,
    /// or nothing.
    pub recordings_vary: f64,
    /// The rounds of a part of each recording, after which the writes follow that end it and begin
    /// the next one; zero: a recording is one part.
    pub part_rounds: u32,
    /// How long a title that has grown is kept after its end, as a part of a series; zero: for
    /// ever.
    #[serde(with = "quantity::time")]
    pub keep: Duration,
    /// The number of such titles for which there is room: another one that ends removes the oldest.
    /// Zero: room for all.
    pub most_parts: u32,
    /// The most reads of one permit for best-effort work.
    pub best_effort_reads: u32,
    /// Time at which the power fails, and the world ends; zero: never.
    #[serde(with = "quantity::time")]
    pub power_fails_at: Duration,
}

/// A disk: its guarantee, its actual behaviour and its faults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DiskSpec {
    /// `guaranteed`: completes exactly its guarantee. `paced`: keeps a pace in bursts, by which it
    /// completes the same. `slow`: serves one read after another,
    /// `actual_reads` of them in a slot. Otherwise the name of a disk model, whose guarantee is
    /// computed from the model; `min_read` and `longest_read` are not used then.
    pub kind: String,
    /// Reads guaranteed per slot.
    pub min_read: u32,
    /// Reads per slot that a disk of kind `slow` completes.
    pub actual_reads: u32,
    /// Size of the largest read.
    #[serde(with = "quantity::text")]
    pub read_size: ByteCount,
    /// Longest time of a read after the end of the read before it.
    #[serde(with = "quantity::time")]
    pub longest_read: Duration,
    /// Reads in the device at once.
    pub queue_depth: u32,
    /// When a disk of kind `guaranteed` or `paced` completes its reads.
    pub timing: Timing,
    /// Share of reads that fail once.
    pub failing: f64,
    /// Share of positions whose bytes are damaged for good.
    pub damaged: f64,
    /// Time from which the disk hangs: it completes nothing for `stalls_for`.
    #[serde(with = "quantity::time")]
    pub stalls_at: Duration,
    /// Duration of the hang that begins at `stalls_at`; zero: none.
    #[serde(with = "quantity::time")]
    pub stalls_for: Duration,
    /// Time from which the disk is slow: for `slows_for`, it serves one read after another, each in
    /// `slow_factor` times its time.
    #[serde(with = "quantity::time")]
    pub slows_at: Duration,
    /// Duration of the slowness that begins at `slows_at`; zero: none.
    #[serde(with = "quantity::time")]
    pub slows_for: Duration,
    /// Factor on the time of a read while the disk is slow; at least 1.
    pub slow_factor: f64,
    /// Time from which all reads fail; zero: never.
    #[serde(with = "quantity::time")]
    pub dies_at: Duration,
}

/// When a disk completes a read, within its guarantee.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Timing {
    /// As late as the guarantee allows.
    Late,
    /// Evenly over the slot.
    Even,
    /// As soon as possible.
    Early,
    /// At a random time between as soon as possible and as late as the guarantee allows.
    Mixed,
}

impl Scenario {
    /// Reads a scenario from the text of a TOML file.
    pub fn parse(text: &str) -> Result<Self, Reason> {
        let scenario: Self = toml::from_str(text)
            .map_err(|error| format!("the scenario cannot be read: {error}"))?;
        scenario.check().map_err(|rule| format!("the scenario is not valid: {rule}"))?;
        Ok(scenario)
    }

    /// Returns the text of a TOML file, from which [`Scenario::parse`] reads an equal scenario.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("plain data with string keys")
    }

    /// Whether the engine guarantees that no admitted stream misses a deadline: the policy is one
    /// that guarantees, and every disk keeps its guarantee to the end. One disk may die if every
    /// title is on two disks and admission plans for the loss.
    pub fn guarantees_deadlines(&self) -> bool {
        let guarantees = self.policy.guarantees();
        let recalibrated_down = !self.background.calibrated_at.is_zero()
            && self.disks.first().is_some_and(|disk| self.background.new_min_read < disk.min_read);
        let deaths = self.disks.iter().filter(|disk| !disk.dies_at.is_zero()).count();
        let survived = self.survive_loss && deaths == 1 && self.titles.copies >= 1.0;
        guarantees
            && !recalibrated_down
            && (deaths == 0 || survived)
            && self.disks.iter().all(DiskSpec::keeps_guarantee)
    }

    /// Whether disk number `disk` keeps its guarantee to the end.
    pub(crate) fn keeps_guarantee(&self, disk: usize) -> bool {
        let recalibrated = disk == 0 && !self.background.calibrated_at.is_zero();
        let spec = &self.disks[disk];
        !recalibrated && spec.dies_at.is_zero() && spec.keeps_guarantee()
    }

    fn check(&self) -> Result<(), &'static str> {
        let refuse_if = |wrong: bool, rule| if wrong { Err(rule) } else { Ok(()) };
        refuse_if(self.slot < Duration::from_millis(1), "a slot is at least a millisecond")?;
        // A stream is read in one slot and sent in the next; a failover needs another slot.
        refuse_if(self.startup < self.slot * 2, "startup is at least two slots")?;
        let too_short = self.survive_loss && self.startup < self.slot * 3;
        refuse_if(too_short, "startup is at least three slots with survive_loss")?;
        refuse_if(
            self.disks.is_empty() || self.disks.len() > MAX_DISKS,
            "there are 1 to 64 disks",
        )?;
        refuse_if(self.titles.count == 0, "there is at least one title")?;
        refuse_if(self.titles.shortest > self.titles.longest, "shortest is at most longest")?;
        refuse_if(self.titles.longest > LONGEST_TITLE, "no title is longer than a day")?;
        refuse_if(self.titles.slowest > self.titles.fastest, "slowest is at most fastest")?;
        refuse_if(self.titles.segment < crate::titles::STEP, "a segment is at least 500 ms")?;
        let period = self.background.recording_period;
        refuse_if(period.is_zero(), "recording_period is more than zero")?;
        for disk in &self.disks {
            refuse_if(!disk.read_size.0.is_power_of_two(), "the size of a read is a power of two")?;
            // The engine accepts reads of these sizes only; a checksum covers 64 KiB.
            refuse_if(disk.read_size.0 < 1 << 16, "a read is at least 64 KiB")?;
            refuse_if(disk.read_size.0 > 1 << 26, "a read is at most 64 MiB")?;
            refuse_if(disk.queue_depth == 0, "queue_depth is at least 1")?;
            refuse_if(
                // A disk of none would never complete, and the world would not end.
                disk.min_read == 0 || disk.actual_reads == 0,
                "a disk completes at least one read per slot",
            )?;
            refuse_if(disk.longest_read.is_zero(), "longest_read is more than zero")?;
            refuse_if(!(1.0..=1000.0).contains(&disk.slow_factor), "slow_factor is 1 to 1000")?;
            let is_known = disk.is_synthetic() || disk::DiskModel::preset(&disk.kind).is_some();
            refuse_if(
                !is_known,
                "a disk is 'guaranteed', 'paced', 'slow' or the name of a disk model",
            )?;
        }
        Ok(())
    }
}

impl DiskSpec {
    /// Whether the disk follows its guarantee and not a disk model.
    fn is_synthetic(&self) -> bool {
        matches!(self.kind.as_str(), GUARANTEED | PACED | SLOW)
    }

    fn keeps_guarantee(&self) -> bool {
        let faultless = self.failing == 0.0 && self.damaged == 0.0;
        let steady = self.stalls_for.is_zero() && self.slows_for.is_zero();
        self.kind != SLOW && faultless && steady
    }
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            seed: 0,
            policy: PolicyKind::VbrSim,
            slot: Duration::from_millis(500),
            startup: Duration::from_secs(2),
            memory: ByteCount(256 << 20),
            network: None,
            reservation_hold: Duration::from_secs(10),
            idle_after: Duration::from_secs(10),
            ended_after: Duration::from_secs(60),
            survive_loss: false,
            titles: Titles::default(),
            viewers: Viewers::default(),
            background: BackgroundWork::default(),
            disks: vec![DiskSpec::default()],
        }
    }
}

impl Default for Titles {
    fn default() -> Self {
        Self {
            count: 8,
            shortest: Duration::from_secs(30),
            longest: Duration::from_secs(120),
            slowest: BitRate(1_500_000),
            fastest: BitRate(8_500_000),
            segment: Duration::from_secs(4),
            progressive: 0.25,
            ladders: 0.25,
            tiny: 0.0,
            partial: 0.0,
            leads: false,
            copies: 0.0,
            growing: 0.0,
        }
    }
}

impl Default for Viewers {
    fn default() -> Self {
        Self {
            count: 40,
            every: Duration::from_secs(1),
            buffer: Duration::from_secs(30),
            resume: 0.1,
            seek: 0.1,
            pause: 0.1,
            quit: 0.2,
            slow: 0.0,
            silent: 0.0,
            stalled_socket: 0.0,
            close: 0.5,
            patient: 0.0,
            patience: Duration::ZERO,
            most_seeks: 3,
            zipf: 0.0,
            reconnect: 0.0,
            away: 0.0,
            hang_up: 0.0,
            end: 0.0,
            replace: 0.0,
            read_ahead: 0.0,
            reads_per_request: 0,
            low: 0.0,
            high: 0.0,
        }
    }
}

impl Default for BackgroundWork {
    fn default() -> Self {
        Self {
            best_effort_every: Duration::ZERO,
            removals: 0,
            calibrated_at: Duration::ZERO,
            new_min_read: 1,
            memory_changes_every: Duration::ZERO,
            least_memory: 0,
            recordings: 0,
            recording_period: Duration::from_millis(300),
            recording_round: ByteCount(64 << 10),
            recordings_vary: 0.0,
            part_rounds: 0,
            keep: Duration::ZERO,
            most_parts: 0,
            best_effort_reads: 1,
            power_fails_at: Duration::ZERO,
        }
    }
}

impl Default for DiskSpec {
    fn default() -> Self {
        Self {
            kind: GUARANTEED.to_owned(),
            min_read: 20,
            actual_reads: 20,
            read_size: ByteCount(1 << 20),
            longest_read: Duration::from_millis(50),
            queue_depth: 4,
            timing: Timing::Mixed,
            failing: 0.0,
            damaged: 0.0,
            stalls_at: Duration::ZERO,
            stalls_for: Duration::ZERO,
            slows_at: Duration::ZERO,
            slows_for: Duration::ZERO,
            slow_factor: 1.0,
            dies_at: Duration::ZERO,
        }
    }
}

pub(crate) const GUARANTEED: &str = "guaranteed";
pub(crate) const PACED: &str = "paced";
pub(crate) const SLOW: &str = "slow";

/// Bounds the world's memory; a node has a few dozen disks.
const MAX_DISKS: usize = 64;

/// Bounds the world's memory: a track of a day has 1.4 MB of offsets, one per half second.
const LONGEST_TITLE: Duration = Duration::from_secs(86_400);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_reads_back_as_written() {
        let text = "
            seed = 7
            policy = 'average'
            memory = '64MiB'
            network = '1Gbps'
            [viewers]
            every = '250ms'
            [[disks]]
            kind = 'st39183w'
            [[disks]]
            min_read = 5
            timing = 'late'
        ";
        let scenario = Scenario::parse(text).unwrap();
        assert_eq!(scenario.policy, PolicyKind::Average);
        assert_eq!(scenario.viewers.every, Duration::from_millis(250));
        assert_eq!((scenario.disks.len(), scenario.disks[1].min_read), (2, 5));
        assert_eq!(Scenario::parse(&scenario.to_toml()).unwrap(), scenario);
    }

    #[test]
    fn an_invalid_scenario_is_refused_with_the_reason() {
        for (text, why) in [
            ("speed = 3", "unknown field `speed`"),
            ("slot = '5'", "is not a time such as"),
            ("policy = 'hope'", "is not a policy"),
            ("startup = '600ms'", "startup is at least two slots"),
            ("disks = []", "there are 1 to 64 disks"),
            ("[[disks]]\nkind = 'drum'", "the name of a disk model"),
            ("[[disks]]\nslow_factor = 0.5", "slow_factor is 1 to 1000"),
            ("[[disks]]\nread_size = '100kB'", "the size of a read is a power of two"),
        ] {
            let error = Scenario::parse(text).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
