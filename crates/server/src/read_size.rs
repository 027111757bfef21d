//! The choice of the read size: each size is tried with the admission policy itself, on the disk's
//! timings and with viewers like those of the store, and the size that holds most is taken.
//!
//! ```text
//!   sizes        64 KiB, 128 KiB, ... up to the largest that was measured
//!   viewers      streams of the titles' mean rate, which arrive evenly        scheduler::CapacitySim
//!   choice       of all sizes within 2 % of the best: the largest up to 1 MiB, else the smallest
//! ```
//!
//! Larger reads cost less processor time for each byte, up to 1 MiB; above, smaller reads start
//! viewers sooner. More viewers than [`MOST_VIEWERS`] or than the network carries are not counted.

use engine::DiskGuarantee;
use engine::piece_size;
use scheduler::{
    CapacityResult, CapacitySim, DiskTimings, Lead, PolicyKind, TrackPieces, sending_reserve,
    viewers_of_copies,
};
use std::time::Duration;
use units::{BitRate, ByteCount};

/// The expected viewers of a store, and what they are served with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Audience {
    /// Mean rate of a viewer.
    pub(crate) rate: BitRate,
    /// Memory for this disk's buffers that the engine may count on.
    pub(crate) memory: ByteCount,
    /// The most viewers that can come; at least one.
    pub(crate) most: u64,
    pub(crate) policy: PolicyKind,
    pub(crate) slot: Duration,
    pub(crate) startup: Duration,
}

/// One size of read on one disk.
#[derive(Clone, Debug)]
pub(crate) struct ReadChoice {
    pub(crate) guarantee: DiskGuarantee,
    pub(crate) timings: DiskTimings,
}

/// The choice among all sizes; of `candidates`, smallest reads first. `None` where there is none.
pub(crate) fn choose(
    candidates: impl IntoIterator<Item = ReadChoice>,
    span: ByteCount,
    audience: Audience,
) -> Option<DiskGuarantee> {
    let held = |candidate: ReadChoice| (held(&candidate, span, audience), candidate.guarantee);
    let tried: Vec<(u64, DiskGuarantee)> = candidates.into_iter().map(held).collect();
    let most = tried.iter().map(|(held, _)| *held).max()?;
    let near = |(held, _): &&(u64, DiskGuarantee)| held * 100 >= most * NEAR_PERCENT;
    let cheap = |(_, guarantee): &&(u64, DiskGuarantee)| guarantee.read_size <= CHEAP_READ;
    let chosen = tried.iter().filter(near).rfind(cheap).or_else(|| tried.iter().find(near));
    chosen.map(|(_, guarantee)| *guarantee)
}

/// Viewers that the policy admits with reads of one size on a disk of `span` bytes.
pub(crate) fn held(candidate: &ReadChoice, span: ByteCount, audience: Audience) -> u64 {
    let ReadChoice { guarantee, timings } = candidate;
    let Audience { rate, memory, most, policy, slot, startup } = audience;
    let piece = piece_size(rate, &[], guarantee.read_size);
    let lasts = ByteCount(u64::from(piece)).time_at(rate).max(Duration::from_millis(1));
    let length = LENGTH.max(startup + BEHIND_STARTUP);
    let count = length.as_nanos().div_ceil(lasts.as_nanos()).clamp(FEWEST, MOST_PIECES);
    let due_ms = |i: u128| u32::try_from(i * lasts.as_nanos() / 1_000_000).unwrap_or(u32::MAX);
    let due: Vec<u32> = (0..count).map(due_ms).collect();
    let followed = vec![true; due.len() - 1];
    let bytes = due.len() as u64 * u64::from(piece);
    let track = TrackPieces {
        due: &due,
        piece,
        bytes,
        lead: Lead::default(),
        transfer: &[],
        followed: &followed,
    };
    let places: Vec<Vec<[u32; 1]>> = timings
        .costs
        .iter()
        .map(|costs| {
            let place = |i: u64| {
                let room = span.0.saturating_sub(u64::from(piece));
                let at = (u128::from(room) * u128::from(i.wrapping_mul(GOLDEN))) >> 64;
                let nanos = costs.transfer(u64::try_from(at).unwrap_or(0), u64::from(piece));
                [u32::try_from(nanos).unwrap_or(u32::MAX)]
            };
            (0..PLACES).map(place).collect()
        })
        .collect();
    let viewers = viewers_of_copies(&[track], &places, timings.costs.as_ref());
    let slots = |time: Duration| {
        u64::try_from(time.as_nanos() / slot.as_nanos().max(1)).unwrap_or(1).max(1)
    };
    let sim = CapacitySim {
        policy,
        min_read: guarantee.min_read,
        read_size: guarantee.read_size.0,
        memory: memory.0,
        timings,
        slot,
        startup,
        viewers: &viewers,
        reserve: sending_reserve([piece]),
        // With second pieces for all: of two sizes that hold as many viewers, the one with memory
        // to spare admits more of those who come close together.
        narrows_sockets: false,
        // All have come when half of the time is over: meanwhile the disk reads ahead.
        arrivals: u32::try_from((2 * most).div_ceil(slots(FILLING))).unwrap_or(u32::MAX),
        patience: slots(PATIENCE),
        filling: slots(FILLING),
    };
    let CapacityResult { streams, short_of, .. } = sim.run();
    if short_of.is_some() || streams >= most {
        return streams.min(most);
    }
    // The disk has read a whole title before anybody was refused: its time is not scarce, and the
    // viewers' buffers decide.
    let media = rate.bytes_in(slot * MEDIA_SLOTS).0;
    let reads = u64::from(piece) * READS_IN_QUARTERS / 4;
    (memory.0 / (media + reads).max(1)).min(most)
}

/// The most viewers that the choice considers: beyond, network and processor are likely to be the
/// limit.
pub(crate) const MOST_VIEWERS: u64 = 512;
/// Percent of the most viewers that count as nearly as many.
const NEAR_PERCENT: u64 = 98;
/// The size from which larger reads hardly save processor time per byte.
const CHEAP_READ: ByteCount = ByteCount::MIB;
/// Shortest length of a stream: much longer than the time in which viewers come.
const LENGTH: Duration = Duration::from_secs(300);
/// Shortest length behind the start-up time, at whose end all that plays within it is due.
const BEHIND_STARTUP: Duration = Duration::from_secs(240);
const FEWEST: u128 = 8;
/// Bounds the work for streams of many megabytes a second.
const MOST_PIECES: u128 = 1 << 16;
/// Time in which viewers come, and for how long none may be admitted until the disk is full.
const FILLING: Duration = Duration::from_secs(60);
const PATIENCE: Duration = Duration::from_secs(30);
/// The buffers of a viewer on a disk whose time is not scarce, as the simulation of slower ones
/// shows them: media of so many slots, and so many quarters of a read.
const MEDIA_SLOTS: u32 = 3;
const READS_IN_QUARTERS: u64 = 13;
/// Number of places of titles.
const PLACES: u64 = 987;
/// The golden ratio of 2^64: its multiples, modulo that, fall evenly.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibration::{candidates, of_model, of_throttle};
    use disk::DiskModel;
    use std::io::Write;

    const SLOT: Duration = Duration::from_millis(500);

    fn audience(mbps: u64, memory_mib: u64) -> Audience {
        Audience {
            rate: BitRate(mbps * 1_000_000),
            memory: ByteCount::mib(memory_mib),
            most: MOST_VIEWERS,
            policy: PolicyKind::TimeDomain,
            slot: SLOT,
            startup: SLOT * 2,
        }
    }

    fn of_preset(model: &DiskModel) -> Vec<ReadChoice> {
        let timings = |guarantee: &DiskGuarantee| {
            DiskTimings::of_model(model, guarantee.read_size, guarantee.queue_depth)
        };
        candidates(&of_model(model, SLOT), None, timings).collect()
    }

    /// The table of docs/reference/figures.md; each choice against every size.
    #[test]
    fn the_choice_holds_nearly_what_the_best_size_holds() {
        let mut table = String::new();
        for model in DiskModel::presets() {
            let all = of_preset(&model);
            for memory in [256, 1024, 4096, 16_384] {
                for rate in [2, 5] {
                    let audience = audience(rate, memory);
                    let chosen = choose(all.clone(), model.capacity(), audience).unwrap();
                    let of = |candidate: &ReadChoice| {
                        let held = held(candidate, model.capacity(), audience);
                        (held, candidate.guarantee.read_size)
                    };
                    let tried: Vec<(u64, ByteCount)> = all.iter().map(of).collect();
                    let best = tried.iter().map(|(held, _)| *held).max().unwrap();
                    let own = tried.iter().find(|(_, size)| *size == chosen.read_size).unwrap();
                    assert!(own.0 * 100 >= best * 97, "{}, {memory} MiB: {tried:?}", model.name());
                    let line = format!(
                        "{:<14} {memory:>6} MiB {rate} Mb/s: {:>8} holds {:>3}, best {best:>3}\n",
                        model.name(),
                        chosen.read_size.to_string(),
                        own.0,
                    );
                    table.push_str(&line);
                }
            }
        }
        // For runs with `--nocapture`.
        writeln!(std::io::stdout(), "{table}").expect("stdout is open");
    }

    /// The arithmetic for disks that are too fast to be simulated, where both are possible.
    #[test]
    fn buffers_of_a_viewer_are_counted_as_the_simulation_shows_them() {
        let model = DiskModel::preset("ssd-sata").unwrap();
        for candidate in
            of_preset(&model).into_iter().filter(|c| c.guarantee.read_size <= CHEAP_READ)
        {
            let audience = audience(5, 256);
            let simulated = held(&candidate, model.capacity(), audience);
            let piece = candidate.guarantee.read_size.0;
            let media = audience.rate.bytes_in(SLOT * MEDIA_SLOTS).0;
            let counted = audience.memory.0 / (media + piece * READS_IN_QUARTERS / 4);
            let part = simulated as f64 / counted as f64;
            assert!((0.9..1.1).contains(&part), "{piece}: {simulated}, counted {counted}");
        }
    }

    #[test]
    fn a_throttle_is_used_nearly_whole() {
        // 100 MiB/s are 158 viewers of 5.3 Mb/s.
        let calibration = of_throttle(BitRate(838_860_800), SLOT);
        let timings = |g: &DiskGuarantee| DiskTimings::of_calibration(&calibration, g.read_size);
        let all: Vec<ReadChoice> = candidates(&calibration, None, timings).collect();
        let audience = Audience { rate: BitRate(5_300_000), ..audience(5, 512) };
        let chosen = choose(all.clone(), ByteCount::mib(1024), audience).unwrap();
        let of = |c: &ReadChoice| (c.guarantee.read_size, held(c, ByteCount::mib(1024), audience));
        let tried: Vec<(ByteCount, u64)> = all.iter().map(of).collect();
        let held = tried.iter().find(|(size, _)| *size == chosen.read_size).unwrap().1;
        assert!(held >= 155, "{tried:?}");
    }
}
