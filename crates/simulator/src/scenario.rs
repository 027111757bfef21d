//! Scenarios: the options of a simulated world, as plain data in TOML.
//!
//! A scenario and its seed give the same run on every machine. The scenario states probabilities;
//! the seed decides what each viewer and disk does.

use scheduler::PolicyKind;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use units::{BitRate, ByteCount};

mod quantity;

/// A world. Every field has a default; unknown names are refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scenario {
    /// All chance comes from here.
    pub seed: u64,
    /// The name of any policy that `tenuto simulate admission` knows.
    #[serde(with = "quantity::policy")]
    pub policy: PolicyKind,
    /// The scheduling period.
    #[serde(with = "quantity::time")]
    pub slot: Duration,
    /// From admission until the first piece must be in memory; at least two slots, three where
    /// the loss of a disk is to be survived.
    #[serde(with = "quantity::time")]
    pub startup: Duration,
    /// Memory for pieces.
    #[serde(with = "quantity::text")]
    pub memory: ByteCount,
    /// What the network may carry in all; left out: not admitted by network.
    #[serde(with = "quantity::optional_text", skip_serializing_if = "Option::is_none")]
    pub network: Option<BitRate>,
    /// A session that asks for nothing this long after admission is ended.
    #[serde(with = "quantity::time")]
    pub reservation_hold: Duration,
    /// A session that asks for nothing while this much media fell due gives back what it holds.
    #[serde(with = "quantity::time")]
    pub idle_after: Duration,
    /// A session that asks for nothing at all for this long is ended.
    #[serde(with = "quantity::time")]
    pub ended_after: Duration,
    /// Whoever comes in must survive the loss of any one disk.
    pub survive_loss: bool,
    /// What there is to see.
    pub titles: Titles,
    /// Who comes to see it.
    pub viewers: Viewers,
    /// What else happens.
    pub background: BackgroundWork,
    /// What it is read from; at least one.
    pub disks: Vec<DiskSpec>,
}

/// The library: titles of variable bit rate, with video, audio and sometimes a second rendition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Titles {
    /// How many.
    pub count: u32,
    /// The shortest.
    #[serde(with = "quantity::time")]
    pub shortest: Duration,
    /// The longest.
    #[serde(with = "quantity::time")]
    pub longest: Duration,
    /// Mean rate of the leanest video.
    #[serde(with = "quantity::text")]
    pub slowest: BitRate,
    /// Mean rate of the richest video.
    #[serde(with = "quantity::text")]
    pub fastest: BitRate,
    /// What one request of a segmenting player brings. A multiple of 500 ms.
    #[serde(with = "quantity::time")]
    pub segment: Duration,
    /// Share of titles fetched as one interleaved file (0 to 1); the rest in segments.
    pub progressive: f64,
    /// Share of titles with a second, leaner rendition (0 to 1).
    pub ladders: f64,
    /// Share of titles that are next to nothing: a few bytes, half a second (0 to 1).
    pub tiny: f64,
    /// Share of titles of which a part is played: of what is stored each second, third or fourth
    /// piece, forwards or backwards, at half to four times its speed (0 to 1).
    pub parts: f64,
    /// Share of titles that lie on a second disk, too (0 to 1).
    pub copies: f64,
}

/// The audience. Shares are of all viewers, 0 to 1, drawn independently.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Viewers {
    /// How many come.
    pub count: u32,
    /// Mean time between two arrivals (Poisson).
    #[serde(with = "quantity::time")]
    pub every: Duration,
    /// How much a player holds ahead of play-out.
    #[serde(with = "quantity::time")]
    pub buffer: Duration,
    /// Share that starts somewhere in the middle.
    pub resume: f64,
    /// Share that seeks, once to three times.
    pub seek: f64,
    /// Share that pauses once, for up to twice `ended_after`.
    pub pause: f64,
    /// Share that leaves before the end.
    pub quit: f64,
    /// Share whose network is slower than the media.
    pub slow: f64,
    /// Share that is admitted and never asks for anything.
    pub silent: f64,
    /// Share whose socket takes nothing any more from some moment on.
    pub stuck: f64,
    /// Share that says goodbye; the others just vanish.
    pub polite: f64,
    /// Share that would rather wait for its start than be refused.
    pub patient: f64,
    /// How long a patient viewer waits at most.
    #[serde(with = "quantity::time")]
    pub patience: Duration,
    /// Share that once asks for a new session in place of the one it has, at the segment it needs
    /// next: another part or speed of the title, as a player does that loads its manifest again.
    pub replace: f64,
}

/// Work beside the viewers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BackgroundWork {
    /// Mean time between two pieces of best-effort work; zero: there is none.
    #[serde(with = "quantity::time")]
    pub best_effort_every: Duration,
    /// How many titles are removed while viewers come.
    pub removals: u32,
    /// When the first disk is calibrated anew and found to keep `new_min_read`; zero: never.
    #[serde(with = "quantity::time")]
    pub calibrated_at: Duration,
    /// See `calibrated_at`.
    pub new_min_read: u32,
}

/// A disk: what is promised of it, and what it really does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DiskSpec {
    /// `promise`: does what it promises and no more than it must. `slow`: serves one read after
    /// the other, `really` of them in a slot. Else the name of a disk model, whose promise is
    /// computed from the model (`min_read` and `longest_read` here are then not used).
    pub kind: String,
    /// Reads promised per slot.
    pub min_read: u32,
    /// Reads done per slot by a disk of kind `slow`.
    pub really: u32,
    /// The largest read.
    #[serde(with = "quantity::text")]
    pub read_size: ByteCount,
    /// No read takes longer, once the one before it has ended.
    #[serde(with = "quantity::time")]
    pub longest_read: Duration,
    /// Reads in the device at once.
    pub queue_depth: u32,
    /// When a disk of kind `promise` completes its reads.
    pub timing: Timing,
    /// Share of reads that fail once.
    pub failing: f64,
    /// Share of places whose bytes are damaged for good.
    pub damaged: f64,
    /// From here on nothing is completed (it hangs) ...
    #[serde(with = "quantity::time")]
    pub stalls_at: Duration,
    /// ... for so long. Zero: it never stalls.
    #[serde(with = "quantity::time")]
    pub stalls_for: Duration,
    /// From here on it takes `slows_times` as long for each read, one after another ...
    #[serde(with = "quantity::time")]
    pub slows_at: Duration,
    /// ... for so long. Zero: it never slows.
    #[serde(with = "quantity::time")]
    pub slows_for: Duration,
    /// See `slows_at`; at least 1.
    pub slows_times: f64,
    /// From here on nothing is read from it any more: what is asked of it fails, soon. Zero: never.
    #[serde(with = "quantity::time")]
    pub dies_at: Duration,
}

/// When, within its promise, a disk completes a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Timing {
    /// As late as it may.
    Late,
    /// Evenly over the slot.
    Even,
    /// At once.
    Early,
    /// Each read as chance has it, anywhere between at once and as late as it may.
    Mixed,
}

/// A scenario that could not be used.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// Not TOML, an unknown name, or a value that cannot be read.
    #[error("the scenario cannot be read: {0}")]
    Syntax(#[from] toml::de::Error),
    /// Each value reads well, but not together.
    #[error("the scenario makes no sense: {0}")]
    Nonsense(&'static str),
}

impl Scenario {
    /// From the text of a TOML file.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        let scenario: Self = toml::from_str(text)?;
        scenario.check().map_err(ScenarioError::Nonsense)?;
        Ok(scenario)
    }

    /// As the text of a TOML file, which [`Scenario::parse`] reads back the same.
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

    /// Whether that disk keeps its guarantee to the end.
    pub(crate) fn keeps_guarantee(&self, disk: usize) -> bool {
        let recalibrated = disk == 0 && !self.background.calibrated_at.is_zero();
        let plan = &self.disks[disk];
        !recalibrated && plan.dies_at.is_zero() && plan.keeps_guarantee()
    }

    fn check(&self) -> Result<(), &'static str> {
        let tell = |wrong: bool, why| if wrong { Err(why) } else { Ok(()) };
        tell(self.slot < Duration::from_millis(1), "a slot is at least a millisecond")?;
        tell(self.startup < self.slot * 2, "startup is at least two slots")?;
        let survives = self.startup >= self.slot * 3;
        tell(self.survive_loss && !survives, "startup is three slots where a loss is survived")?;
        tell(self.disks.is_empty() || self.disks.len() > MAX_DISKS, "there are 1 to 64 disks")?;
        tell(self.titles.count == 0, "there is at least one title")?;
        tell(self.titles.shortest > self.titles.longest, "the shortest title is not the longest")?;
        tell(self.titles.longest > LONGEST_TITLE, "no title is longer than a day")?;
        tell(self.titles.slowest > self.titles.fastest, "the slowest title is not the fastest")?;
        tell(self.titles.segment < crate::titles::STEP, "a segment is at least 500 ms")?;
        for disk in &self.disks {
            tell(!disk.read_size.0.is_power_of_two(), "a read is a power of two")?;
            tell(disk.read_size.0 < 1 << 16, "a read is at least 64 KiB")?;
            tell(disk.read_size.0 > 1 << 26, "a read is at most 64 MiB")?;
            tell(disk.queue_depth == 0, "at least one read is in the device at once")?;
            tell(disk.min_read == 0 || disk.really == 0, "a disk does one read in a slot")?;
            tell(disk.longest_read.is_zero(), "a read takes time")?;
            tell(
                !(1.0..=1000.0).contains(&disk.slows_times),
                "a slow disk takes 1 to 1000 times as long",
            )?;
            let known = disk.is_made_up() || disk::DiskModel::preset(&disk.kind).is_some();
            tell(!known, "a disk is 'promise', 'slow' or the name of a disk model")?;
        }
        Ok(())
    }
}

impl DiskSpec {
    /// Whether it is no disk model.
    fn is_made_up(&self) -> bool {
        matches!(self.kind.as_str(), GUARANTEED | SLOW)
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
            parts: 0.0,
            copies: 0.0,
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
            stuck: 0.0,
            polite: 0.5,
            patient: 0.0,
            patience: Duration::ZERO,
            replace: 0.0,
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
        }
    }
}

impl Default for DiskSpec {
    fn default() -> Self {
        Self {
            kind: GUARANTEED.to_owned(),
            min_read: 20,
            really: 20,
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
            slows_times: 1.0,
            dies_at: Duration::ZERO,
        }
    }
}

pub(crate) const GUARANTEED: &str = "guaranteed";
pub(crate) const SLOW: &str = "slow";

/// Bounds the world's memory; a node has a few dozen disks.
const MAX_DISKS: usize = 64;

/// Bounds the world's memory: half-second sums of a day are 1.4 MB a track.
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
    fn what_makes_no_sense_is_named() {
        for (text, why) in [
            ("speed = 3", "unknown field `speed`"),
            ("slot = '5'", "is not a time such as"),
            ("policy = 'hope'", "is not a policy"),
            ("startup = '600ms'", "startup is at least two slots"),
            ("disks = []", "there are 1 to 64 disks"),
            ("[[disks]]\nkind = 'drum'", "the name of a disk model"),
            ("[[disks]]\nslows_times = 0.5", "takes 1 to 1000 times as long"),
            ("[[disks]]\nread_size = '100kB'", "a read is a power of two"),
        ] {
            let error = Scenario::parse(text).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
