//! Models fitted to reads of known disks: the fitted values and their precision.

use super::*;
use crate::DiskModel;
use units::Moment;

/// Reads a disk like a calibration; `noise` of the host in µs, and one read in `outlier` late by up
/// to 200 ms (0: none).
fn reads(model: &DiskModel, noise: u64, outlier: u32) -> Vec<TimedRead> {
    let mut rng = fastrand::Rng::with_seed(5);
    let (mut head, mut now) = (model.head(), Moment::ZERO);
    let (mut reads, mut before) = (Vec::new(), None);
    let capacity = model.capacity().0;
    let mut read = |offset: u64, size: u64, rng: &mut fastrand::Rng| {
        let done = head.serve(now, offset, size, false).finish;
        let late = if outlier > 0 && rng.u32(..outlier) == 0 { rng.u64(..200_000) } else { 0 };
        let host = Duration::from_micros(rng.u64(0..=noise) + late);
        reads.push(TimedRead { offset, size, time: done.since(now) + host, after: before });
        (now, before) = (done + host, Some((offset, offset + size)));
    };
    for part in 0..32 {
        let start = (capacity / 64 * (2 * part + 1)) & !4095;
        (0..33).for_each(|i| read(start + i * (1 << 20), 1 << 20, &mut rng));
    }
    for _ in 0..20 {
        let start = rng.u64(1 << 12..capacity / 4096 - (1 << 12)) * 4096;
        (0..3).for_each(|i| read(start - i * 4096, 4096, &mut rng));
    }
    for i in 0..3000 {
        let size = [4096, 65_536, 1 << 20][i % 3];
        read(rng.u64(0..(capacity - size) / 4096) * 4096, size, &mut rng);
    }
    reads
}

fn near(fitted: f64, real: f64, part: f64, what: &str) {
    assert!((fitted / real - 1.0).abs() <= part, "{what}: fitted {fitted}, in truth {real}");
}

/// Revolution within 1.5 %, zones within 5 %, seeks within 8 % or half a millisecond, r0 within 12
/// %, with every fiftieth read up to 200 ms late.
#[test]
fn a_known_disk_is_recovered_from_its_reads() {
    for (name, noise, outlier) in
        [("hdd-20tb", 0, 0), ("hdd-20tb", 100, 50), ("st39183w", 100, 50), ("st318406lw", 50, 20)]
    {
        let said = |what: &str| format!("{name} with {noise} µs and 1 in {outlier}: {what}");
        let model = DiskModel::preset(name).unwrap();
        let survey = Characterization::with_zones(
            &reads(&model, noise, outlier),
            &model.zones(),
            model.capacity(),
        );
        let turn = survey.revolution.unwrap_or_else(|| panic!("{}", said("no revolution")));
        near(turn.as_secs_f64(), model.revolution().as_secs_f64(), 0.015, &said("turn"));
        let fitted = survey.parameters("fitted", model.capacity()).unwrap();
        let fitted = DiskModel::new(fitted).unwrap();
        for part in 0..20 {
            let at = model.capacity().0 / 20 * part;
            let rate_of = |model: &DiskModel| {
                model.zones().iter().rfind(|zone| zone.0.0 <= at).unwrap().1.0 as f64
            };
            near(rate_of(&fitted), rate_of(&model), 0.05, &said(&format!("zone at {part}/20")));
        }
        let overhead = match &model.parameters().mechanics {
            Mechanics::Spinning(arm) => arm.overhead_ms,
            Mechanics::Flash(_) => 0.0,
        };
        for part in [0.02, 0.1, 0.3, 0.5, 0.8] {
            let ms = |model: &DiskModel| model.seek_time(part).as_secs_f64() * 1e3;
            let (found, real) = (ms(&fitted), ms(&model) + overhead);
            let off = (found - real).abs();
            assert!(off < (0.08 * real).max(0.5), "{}", said(&format!("{found} for {real}")));
        }
        let mean = model.mean_rate().0 as f64;
        near(survey.cost.unwrap().r0.0 as f64, mean, 0.12, &said("r0"));
    }
}

#[test]
fn flash_shows_no_actuator() {
    let model = DiskModel::preset("ssd-sata").unwrap();
    let survey =
        Characterization::with_zones(&reads(&model, 20, 50), &model.zones(), model.capacity());
    assert_eq!((survey.revolution, survey.seek), (None, None));
    let cost = survey.cost.unwrap();
    near(cost.r0.0 as f64, 4.4e9, 0.05, "rate");
    near(cost.t0.as_secs_f64(), 0.16e-3, 0.15, "latency");
    let fitted = survey.parameters("fitted", model.capacity()).unwrap();
    assert!(matches!(fitted.mechanics, Mechanics::Flash(_)));
}

#[test]
fn too_few_reads_give_no_result() {
    let nothing = Characterization::with_zones(&[], &[], ByteCount(1 << 30));
    assert_eq!((nothing.cost, nothing.revolution), (None, None));
    assert!(nothing.zones.is_empty() && nothing.parameters("x", ByteCount(1 << 30)).is_none());
    let one = TimedRead { offset: 0, size: 0, time: Duration::ZERO, after: Some((0, 0)) };
    assert_eq!(Characterization::with_zones(&[one; 20], &[], ByteCount::ZERO).seek, None);
}
