//! The head on the built-in disks: the time of each part of a service.

use super::*;
use units::ByteCount;

const MB: u64 = 1_000_000;

fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e5).round() / 1e2
}

#[test]
fn sequential_reads_cost_no_positioning() {
    let model = DiskModel::preset("st39183w").unwrap();
    let mut head = model.head();
    let mut now = Moment::ZERO;
    for i in 0..100 {
        let service = head.serve(now, i * MB, MB, false);
        assert_eq!(service.seek, Duration::ZERO);
        assert!(i == 0 || service.rotation.is_zero(), "{i}: {service:?}");
        now = service.finish;
    }
    let secs = now.as_secs_f64();
    assert!((6.8..7.0).contains(&secs), "the paper's 6.9 s for 100 MB outermost: {secs}");
}

#[test]
fn a_pause_fills_the_cache_and_then_costs_at_most_a_revolution() {
    let model = DiskModel::preset("st39183w").unwrap();
    let mut head = model.head();
    let first = head.serve(Moment::ZERO, 0, 64 << 10, false);
    let later = first.finish + Duration::from_secs(1);
    let cached = head.serve(later, 64 << 10, 64 << 10, false);
    assert_eq!(millis(cached.finish.since(later)), 1.94, "overhead and 64 KiB over the bus");
    let later = later + Duration::from_secs(1);
    let rest = head.serve(later, 128 << 10, 1 << 20, false);
    let time = rest.finish.since(later);
    let media = Duration::from_secs_f64((1u64 << 20) as f64 / 14.4e6);
    assert!(time < media + model.revolution(), "part from cache, the rest read: {time:?}");
}

#[test]
fn a_step_back_costs_a_revolution_and_a_long_seek_a_stroke() {
    let model = DiskModel::preset("st39183w").unwrap();
    let mut head = model.head();
    let first = head.serve(Moment::ZERO, MB, 4096, false);
    let back = head.serve(first.finish, 0, 4096, false);
    assert!(back.seek < Duration::from_millis(2) && back.finish > first.finish);
    let far = head.serve(back.finish, model.capacity().0 - 4096, 4096, false);
    assert!((16.9..=17.0).contains(&millis(far.seek)), "{far:?}");
    assert!(far.rotation < model.revolution());
}

#[test]
fn no_read_or_write_is_faster_than_the_interface() {
    let text = DiskModel::preset_text("hdd-20tb").unwrap();
    let text = text.replacen("bus_mb_s = 550.0", "bus_mb_s = 50.0", 1);
    let model = DiskModel::new(crate::Parameters::parse(&text).unwrap()).unwrap();
    assert_eq!(model.slowest_rate(), model.zones()[0].1, "every zone is as fast as the interface");
    let least = ByteCount(4 * MB).time_at(units::BitRate(400_000_000));
    for write in [false, true] {
        let mut head = model.head();
        let mut now = Moment::ZERO;
        // At the start, sequential, far away, back, and sequential again.
        for place in [0, 4, 9_000_000, 1000, 1004] {
            let service = head.serve(now, place * MB, 4 * MB, write);
            let took = service.finish.since(service.start);
            assert!(took >= least, "at {place} MB: {service:?}");
            now = service.finish;
        }
    }
}

/// The interface is idle from the end of the cached bytes until the next one passes the head: bytes
/// behind it cross the interface after the wait.
#[test]
fn a_slow_interface_waits_for_the_platter_where_the_read_ahead_stopped() {
    let text = DiskModel::preset_text("st39183w").unwrap();
    let text = text.replacen("bus_mb_s = 40.0", "bus_mb_s = 10.0", 1);
    let model = DiskModel::new(crate::Parameters::parse(&text).unwrap()).unwrap();
    let Kind::Spinning(platters) = &model.kind else { panic!("it has an arm") };
    let (block, ahead) = (64 << 10, platters.read_ahead);
    let across = |bytes: u64| Duration::from_nanos(bytes * 100);
    // Bytes of the next read that are in the cache, and whether sending them takes the longest.
    for (cached, wait_is_hidden) in [(0, false), (4096, false), (ahead - block, true)] {
        let mut hidden = 0;
        for pause_ms in 100..109 {
            let mut head = model.head();
            let first = head.serve(Moment::ZERO, 0, block, false);
            let later = first.finish + Duration::from_millis(pause_ms);
            let stopped = block + ahead;
            let read = head.serve(later, stopped - cached, cached + MB, false);
            let behind = read.rotation + across(MB);
            let all = across(cached + MB);
            let expected = behind.max(all);
            let took = read.rotation + read.transfer;
            assert!(took.abs_diff(expected) < Duration::from_nanos(10), "{cached}: {read:?}");
            hidden += u32::from(behind < all);
        }
        assert_eq!(hidden == 9, wait_is_hidden, "{cached}: {hidden} of 9");
    }
}

fn with_write_cache(size: &str) -> DiskModel {
    let text = DiskModel::preset_text("hdd-20tb").unwrap();
    let text = text.replacen("bus_mb_s", &format!("write_back = \"{size}\"\nbus_mb_s"), 1);
    DiskModel::new(crate::Parameters::parse(&text).unwrap()).unwrap()
}

#[test]
fn a_write_cache_accepts_writes_at_the_speed_of_the_bus_and_the_flush_takes_the_time() {
    let written = |model: &DiskModel| {
        let mut head = model.head();
        let place = |i: u64| (i * 7919 % 100) * (model.capacity().0 / 100) / 4096 * 4096;
        let mut now = Moment::ZERO;
        for i in 0..50 {
            now = head.serve(now, place(i), 64 << 10, true).finish;
        }
        (millis(now.since(Moment::ZERO)), millis(head.flush(now).since(Moment::ZERO)))
    };
    let (done, safe) = written(&DiskModel::preset("hdd-20tb").unwrap());
    assert_eq!(done, safe, "without a cache what is done is safe");
    let (early, later) = written(&with_write_cache("64MiB"));
    assert!((10.0..12.0).contains(&early), "50 times overhead and 64 KiB of bus: {early}");
    assert!(later > 200.0 && later < safe * 0.8, "one sweep beats {safe} ms: {later}");
    let (full, _) = written(&with_write_cache("1MiB"));
    assert!(full > 30.0 * 5.0 && full < done, "beyond the memory a write waits: {full}");
}

#[test]
fn cached_writes_are_read_from_the_cache_and_written_out_when_idle() {
    let model = with_write_cache("64MiB");
    let mut head = model.head();
    let far = model.capacity().0 / 2;
    let write = head.serve(Moment::ZERO, far, MB, true);
    let read = head.serve(write.finish, far, MB / 2, false);
    assert!(read.seek.is_zero() && read.rotation.is_zero(), "{read:?}");
    let later = read.finish + Duration::from_secs(1);
    assert_eq!(head.flush(later), later, "it went out meanwhile");
    let next = head.serve(later, far + MB, 4096, false);
    assert!(next.seek.is_zero(), "the head stands where it wrote: {next:?}");
}

#[test]
fn a_long_read_includes_every_switch_and_a_short_one_rarely() {
    let model = DiskModel::preset("st39183w").unwrap();
    let read = |len: f64| model.head().serve(Moment::ZERO, 0, units::rounded(len), false).transfer;
    let track = 14.493e6 * (10.0 * 8.333_333 + 9.0 * 0.8 + 1.1) / 1e4;
    let (turn, cylinder) = (millis(read(track - 512.0)), millis(read(track * 10.0 + 512.0)));
    assert!((8.2..8.34).contains(&turn), "a track is a turn: {turn}");
    assert!((91.6..91.9).contains(&cylinder), "10 turns, 9 heads, 1 step: {cylinder}");
}

#[test]
fn the_estimate_of_positioning_equals_the_service() {
    let model = DiskModel::preset("st39183w").unwrap();
    let mut head = model.head();
    let mut now = head.serve(Moment::ZERO, 0, 64 << 10, false).finish;
    for (offset, write) in [
        (64 << 10, false),
        (3000 * MB, false),
        (10 * MB, true),
        (10 * MB + 4096, true),
        (10 * MB + 8192, false),
    ] {
        let estimate = head.positioning(now, offset, write);
        let service = head.serve(now, offset, 4096, write);
        assert_eq!(estimate, service.seek + service.rotation, "{offset} {write}");
        now = service.finish;
    }
}

#[test]
fn a_solid_state_disk_overlaps_latencies_and_shares_its_bus() {
    let model = DiskModel::preset("ssd-nvme").unwrap();
    let finish = |at: u64, len: u64, count: u32| {
        let mut head = model.head();
        (0..count).map(|_| head.serve(Moment(at), 0, len, false).finish).last().unwrap()
    };
    let one = finish(0, 4096, 1).0;
    assert_eq!(one, 85_000 + 631);
    assert_eq!(finish(0, 4096, 76).0, 85_000 + 76 * 631, "one latency for all lanes");
    assert!(finish(0, 4096, 77).0 > 170_000, "one more than lanes waits");
    let gib = finish(0, 1 << 20, 1024).as_secs_f64();
    assert!((0.165..0.170).contains(&gib), "6.5 GB/s: {gib}");
}

#[test]
fn random_small_reads_take_a_seek_and_half_a_revolution() {
    let model = DiskModel::preset("hdd-20tb").unwrap();
    let mut rng = fastrand::Rng::with_seed(7);
    let (mut head, mut now) = (model.head(), Moment::ZERO);
    for _ in 0..2000 {
        let offset = rng.u64(0..model.capacity().0 / 4096) * 4096;
        now = head.serve(now, offset, 4096, false).finish;
    }
    let mean = millis(now.since(Moment::ZERO) / 2000);
    assert!((11.5..12.9).contains(&mean), "8 ms of seek and 4.17 of rotation: {mean}");
}

#[test]
fn the_wait_for_the_platter_can_be_given() {
    let model = DiskModel::preset("st39183w").unwrap();
    let mut head = model.head();
    let far = model.capacity().0 / 2;
    for (turn, wait) in [(0.0, 0.0), (0.5, 4.17), (1.0, 8.33), (7.0, 8.33)] {
        for place in [far, 0] {
            let now = head.serve(Moment::ZERO, 4 * MB, 4096, false).finish;
            let told = head.serve_turned(now, place, MB, turn);
            assert_eq!(millis(told.rotation), wait, "{turn} at {place}");
        }
    }
    let plain = model.head().serve(Moment::ZERO, far, MB, false);
    assert!(plain.rotation < model.revolution());
}

#[test]
#[should_panic(expected = "beyond a disk of 1 KiB")]
fn places_beyond_the_end_are_refused() {
    let model = DiskModel::preset("ssd-sata").unwrap().scaled_to(ByteCount(1024));
    model.head().serve(Moment::ZERO, 1024, 1, false);
}
