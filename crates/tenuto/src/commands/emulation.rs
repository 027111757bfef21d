//! Emulated disks: `disk emulate`, `disk stats`.

use crate::args::disks::{Delay, EmulateArgs, StatsArgs};
use crate::failure::Failure;
use crate::out::{self, Table, facts};
use crate::stopping;
use device::{DiskStatistics, DiskStop, EmulateOptions, EmulatedDisk};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;
use units::show::count;
use units::{ByteCount, float, show_duration};

pub(crate) fn emulate(args: &EmulateArgs) -> Result<(), Failure> {
    let Some(backing) = args.backing.clone() else {
        return Err(Failure::usage("--backing is missing")
            .hint("name a file for the disk's bytes, for example --backing disk.img --size 8GiB"));
    };
    let options = EmulateOptions {
        size: args.size,
        at: args.at.clone(),
        attach: args.attach,
        fast: args.no_delay,
        depth: args.queue,
        speed: args.time_scale,
        ..EmulateOptions::new(backing)
    };
    // Before the start: a signal during it takes everything down right after.
    // Without a time limit, because a file system may need hours to write its cache to a slow
    // model.
    let stop = stopping::on_signals(None)?;
    let mut disk = EmulatedDisk::start(&args.model, &options)?;
    // From here on a second signal removes the disk, also while `take_down` waits for its users.
    disk.obey(&stop);
    tell(args, &disk, options.fast);
    while !stop.is_asked() {
        std::thread::sleep(LOOK_AGAIN);
    }
    take_down(&mut disk, &stop)
}

fn tell(args: &EmulateArgs, disk: &EmulatedDisk, fast: bool) {
    let priority = disk.realtime();
    if args.report.json {
        out::print_json(&json!({
            "model": disk.model().name(),
            "size": disk.model().capacity().0,
            "file": disk.file(),
            "control": disk.control(),
            "device": disk.device(),
            "fast": fast,
            "realtime": priority.is_ok(),
            "notes": disk.notes(),
        }));
        return;
    }
    disk.notes().iter().for_each(|note| out::note(note));
    if let Err(why) = priority {
        out::note(&format!(
            "the timer of the disk has no priority over other programs ({why}): on a busy machine it is \
             milliseconds late; `tenuto disk stats` shows how late"
        ));
    }
    let mut lines = vec![("file", disk.file().display().to_string())];
    lines.extend(disk.device().map(|device| ("block device", device.display().to_string())));
    lines.push(("control", disk.control().display().to_string()));
    let (model, mode) = (disk.model(), if fast { ", in fast mode" } else { "" });
    out::print(&format!(
        "emulating {}, {}{mode} (Ctrl-C stops)\n{}",
        model.title(),
        model.capacity(),
        facts(&lines)
    ));
}

/// Waits for the users of the disk, unless a second signal has removed it.
fn take_down(disk: &mut EmulatedDisk, stop: &DiskStop) -> Result<(), Failure> {
    let mut said = String::new();
    // A file system with open files cannot be unmounted; the programs that use it may end at any
    // time.
    while let Err(busy) = disk.stop() {
        let busy = busy.to_string();
        if stop.is_pulled() {
            break;
        }
        // The loop runs ten times a second, so a reason is printed only when it changes.
        if busy != said {
            out::note(&format!(
                "waiting for the users of the disk: {busy}; a second signal removes the disk at once"
            ));
            said = busy;
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    if stop.is_pulled() {
        let sentence =
            "the disk was removed: data that file systems and programs had not written is lost";
        return Err(Failure::new(sentence));
    }
    Ok(())
}

/// Time between two looks at the stop flag.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

pub(crate) fn stats(args: &StatsArgs) -> Result<(), Failure> {
    let control = control_of(&args.disk);
    let command = |words: &str| {
        std::fs::write(&control, words).map_err(|error| unreachable_at(&control, &error))
    };
    // Switched before the statistics are read, so that they show the new mode.
    match args.delay {
        None => {}
        Some(Delay::On) => command("fast off\n")?,
        Some(Delay::Off) => command("fast on\n")?,
    }
    let text =
        std::fs::read_to_string(&control).map_err(|error| unreachable_at(&control, &error))?;
    let strange = |what| Failure::new(format!("{}: {what}", control.display()));
    let statistics = text.parse::<DiskStatistics>().map_err(strange)?;
    // Set to zero after they were read: no request is lost between the two reports.
    if args.reset {
        command("reset\n")?;
    }
    let setup = DiskSetup::of(&text);
    args.report.show(&in_json(&setup, &statistics), || page(&setup, &statistics));
    Ok(())
}

fn control_of(disk: &Path) -> PathBuf {
    let folder = if disk.is_dir() { disk.to_owned() } else { EmulatedDisk::folder_of(disk) };
    EmulatedDisk::control_in(&folder)
}

fn unreachable_at(control: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("no emulated disk has its control file at {}: {error}", control.display()))
        .hint("name the backing file of a running `tenuto disk emulate`, or its directory (--at)")
}

/// The fields of the control file beside the statistics.
struct DiskSetup<'a> {
    model: &'a str,
    size: ByteCount,
    queue: u32,
    speed: u32,
    priority: &'a str,
    round_trip: Duration,
    fast: bool,
}

impl<'a> DiskSetup<'a> {
    fn of(text: &'a str) -> Self {
        let said = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.unwrap_or_default()
        };
        Self {
            model: said("model"),
            size: ByteCount(said("size").parse().unwrap_or_default()),
            queue: said("queue").parse().unwrap_or_default(),
            speed: said("speed").parse().unwrap_or(1),
            priority: said("priority"),
            round_trip: Duration::from_nanos(said("round_trip").parse().unwrap_or_default()),
            fast: said("fast") == "on",
        }
    }
}

fn in_json(setup: &DiskSetup<'_>, s: &DiskStatistics) -> Value {
    let secs = |time: Duration| time.as_secs_f64();
    json!({
        "model": setup.model,
        "size": setup.size.0,
        "queue": setup.queue,
        "speed": setup.speed,
        "priority": setup.priority,
        "round_trip": secs(setup.round_trip),
        "fast": setup.fast,
        "reads": s.reads,
        "writes": s.writes,
        "read_bytes": s.read_bytes.0,
        "written_bytes": s.written_bytes.0,
        "positioned": s.positioned,
        "overhead": secs(s.overhead),
        "seek": secs(s.seek),
        "rotation": secs(s.rotation),
        "transfer": secs(s.transfer),
        "flush": secs(s.flush),
        "busy": secs(s.busy),
        "elapsed": secs(s.elapsed),
        "compensated": secs(s.compensated),
        "fast_requests": s.fast_requests,
        "failed": s.failed,
        "late": {
            "p50": secs(s.late_p50),
            "p90": secs(s.late_p90),
            "p99": secs(s.late_p99),
            "max": secs(s.late_max),
        },
    })
}

fn page(setup: &DiskSetup<'_>, s: &DiskStatistics) -> String {
    let requests = s.reads + s.writes;
    let share = |time: Duration, of: Duration| {
        let part = if of.is_zero() { 0.0 } else { time.as_secs_f64() / of.as_secs_f64() };
        format!("{:.1} %", part * 100.0)
    };
    let mode = match (setup.fast, setup.speed) {
        (true, _) => "fast: nothing is timed".to_owned(),
        (false, 1) => "the model's time".to_owned(),
        (false, speed) => format!("{speed} times as fast as the model; all times are the model's"),
    };
    let mut lines = vec![
        ("disk", format!("{}, {}, queue of {}", setup.model, setup.size, setup.queue)),
        ("mode", mode),
        ("priority", setup.priority.to_owned()),
        ("read", format!("{} in {}", s.read_bytes, count(s.reads, "request"))),
        ("written", format!("{} in {}", s.written_bytes, count(s.writes, "request"))),
        ("busy", format!("{} of {}", share(s.busy, s.elapsed), show_duration(s.elapsed))),
    ];
    if s.fast_requests > 0 {
        lines.push(("in fast mode", count(s.fast_requests, "request")));
    }
    if s.failed > 0 {
        let failed = count(s.failed, "request");
        lines.push(("failed", format!("{failed}: the backing file has an error")));
    }
    let [p50, p90, p99, max] = [s.late_p50, s.late_p90, s.late_p99, s.late_max].map(show_duration);
    lines.push(("late", format!("p50 {p50}, p90 {p90}, p99 {p99}, longest {max}")));
    let [round_trip, compensated] = [setup.round_trip, s.compensated].map(show_duration);
    lines.push(("compensated", format!("{compensated} in all; the round trip takes {round_trip}")));
    let mut table = Table::new(&["part", ">in all", ">a request", ">of busy"]);
    for (part, time) in [
        ("overhead", s.overhead),
        ("seek", s.seek),
        ("rotation", s.rotation),
        ("transfer", s.transfer),
        ("flush", s.flush),
    ] {
        // Without requests all times are zero, and so is their mean.
        let each = Duration::from_secs_f64(time.as_secs_f64() / 1f64.max(float(requests)));
        let [all, each] = [time, each].map(show_duration);
        table.row(vec![part.to_owned(), all, each, share(time, s.busy)]);
    }
    format!("{}\n{}", facts(&lines), table.show())
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn the_page_adds_up() {
        let ms = Duration::from_millis;
        let s = DiskStatistics {
            reads: 100,
            read_bytes: ByteCount::mib(50),
            positioned: 100,
            overhead: ms(30),
            seek: ms(500),
            rotation: ms(420),
            transfer: ms(3050),
            busy: ms(4000),
            elapsed: ms(10_000),
            compensated: ms(25),
            late_p50: Duration::from_micros(44),
            late_p90: Duration::from_micros(76),
            late_p99: Duration::from_micros(140),
            late_max: ms(2),
            ..DiskStatistics::default()
        };
        let text = format!(
            "model st39183w\nsize 1073741824\nqueue 32\nspeed 1\npriority realtime\nround_trip 210000\nfast off\n{s}"
        );
        assert_eq!(text.parse(), Ok(s));
        expect![[r#"
            disk         st39183w, 1 GiB, queue of 32
            mode         the model's time
            priority     realtime
            read         50 MiB in 100 requests
            written      0 B in 0 requests
            busy         40.0 % of 10s
            late         p50 44us, p90 76us, p99 140us, longest 2ms
            compensated  25ms in all; the round trip takes 210us

            part      in all  a request  of busy
            overhead    30ms      300us    0.8 %
            seek       500ms        5ms   12.5 %
            rotation   420ms        4ms   10.5 %
            transfer   3.05s       30ms   76.2 %
            flush        0us        0us    0.0 %
        "#]]
        .assert_eq(&page(&DiskSetup::of(&text), &s));
    }
}
