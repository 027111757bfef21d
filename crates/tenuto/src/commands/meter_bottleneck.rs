//! `meter bottleneck`: the same search on more and more of the way to a storage.
//!
//! Every rung has a target of its own ([`rungs`]); what is compared is the number of streams each holds.

use crate::access::on_interrupt;
use crate::cli::Args;
use crate::commands::meter_plots::{number, plot};
use crate::commands::meter_record::{self, save_all};
use crate::commands::meter_search::{self, Climbed, Probe};
use crate::commands::meter_streams::{Asked, late, probe, time};
use crate::commands::meter_target::Target;
use crate::failure::{Code, Failure};
use crate::out::{self, Bar, Table, facts};
use meter::blame::{Stack, beneath};
use meter::bottleneck::{Bottleneck, Held, Rung, bottleneck};
use meter::capacity::Search;
use meter::report::{Block, Page, Plot, Series, Shape};
use meter::target::Layout;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use units::{ByteCount, show_duration};

/// A rung and its runs.
struct Climb {
    rung: Rung,
    climbed: Climbed,
    method: String,
}

pub(crate) fn run(args: &Args<'_>) -> Result<(), Failure> {
    let asked = Asked::new(args)?;
    let rule = meter_search::rule(args);
    let wanted = rungs(&asked)?;
    let most: u32 = args.count("most");
    let dir = meter_record::prepare(args)?;
    let stop = on_interrupt()?;
    let mut climbs: Vec<Climb> = Vec::new();
    for rung in wanted {
        let asked = asked.on(rung);
        let bar = Bar::new();
        let target = match rung {
            Rung::Client => Target::Nothing { shape: asked.shape(most)? },
            _ => asked.open(most, &stop, &bar)?,
        };
        if matches!(rung, Rung::Cached | Rung::Network) {
            bar.say("reading it into memory");
            target.read_all(asked.within(&target), &stop)?;
        }
        let one = asked.plan(1, asked.duration, &target)?;
        let most = most.min(asked.within(&target).most_streams(one.stride()));
        drop(bar);
        let climbed = meter_search::climb(Search::new(most, PROBES), &stop, &mut |step| {
            let made = probe(&asked, &target, rule, step, &stop, &Bar::new())?;
            let delivered = made.delivered(one.rate());
            Ok((made, delivered))
        });
        let ends = climbed.trouble.is_some() || stop.load(Ordering::Relaxed);
        let method = climbed.probes.last().map(|probe| probe.outcome.method.clone());
        climbs.push(Climb { rung, climbed, method: method.unwrap_or_default() });
        if ends {
            break;
        }
    }
    tell(args, &asked, dir.as_deref(), climbs, &stop)
}

/// Runs of a rung at most: to a few percent, which is what rungs are compared by.
const PROBES: u32 = 14;

/// Those that the way to the target has.
fn rungs(asked: &Asked) -> Result<Vec<Rung>, Failure> {
    if asked.spot.is_simulated() {
        return Err(Failure::usage("a simulated disk has no way to it")
            .hint("name a directory, a file, a block device or a bucket"));
    }
    if asked.spot.is_bucket() {
        return Ok(vec![Rung::Client, Rung::Network, Rung::Cold]);
    }
    let Stack { devices, file_system, .. } = beneath(Path::new(&asked.spot.target));
    // Without a device of this machine beneath it somebody else answers, unless it is memory.
    let memory = file_system.is_some_and(|kind| ["tmpfs", "ramfs"].contains(&kind.as_str()));
    Ok(match (memory, devices.is_empty()) {
        (true, _) => vec![Rung::Client, Rung::Cold],
        (false, true) => vec![Rung::Client, Rung::Cached, Rung::Network, Rung::Cold],
        (false, false) => vec![Rung::Client, Rung::Cached, Rung::Cold],
    })
}

impl Asked {
    /// The same streams on this part of the way only.
    fn on(&self, rung: Rung) -> Self {
        let mut own = self.clone();
        if rung == Rung::Client {
            // Nothing is opened: there is room for as many as there may be.
            own.layout = Layout::SharedFile;
        }
        if matches!(rung, Rung::Cached | Rung::Network) {
            let small = SMALL.max(FRAMES * self.profile.slot()).min(self.spot.size.0);
            own.spot.size = ByteCount(small);
            own.within = Some(ByteCount(small));
            own.spot.buffered = rung == Rung::Cached;
            own.spot.drop_caches = false;
            own.spot.fill_level = None;
            if self.layout.is_single() {
                // As many streams as there may be, on what fits in memory.
                own.layout = Layout::SharedFile;
            }
        }
        own
    }
}

/// For memory on the way: larger than a processor's own, smaller than a server's.
const SMALL: u64 = 256 << 20;

/// Where frames are large, so many of them all the same.
const FRAMES: u64 = 16;

fn tell(
    args: &Args<'_>,
    asked: &Asked,
    dir: Option<&Path>,
    mut climbs: Vec<Climb>,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let held: Vec<Held> = climbs.iter().map(held).collect();
    let found = bottleneck(&held);
    let summary = summary(asked, &climbs, &held, &found);
    if let Some(dir) = dir {
        save_all(dir, &summary["scenario"], &summary, &page(asked, &climbs, &held, &found)?)?;
        out::note(&format!("wrote {}", dir.join("report.html").display()));
    }
    if args.has("json") {
        out::print_json(&summary);
    } else {
        let mut table = Table::new(&HEAD);
        rows(&climbs, &held).into_iter().for_each(|row| table.row(row));
        let said = facts(&[("bottleneck", found.sentence.clone())]);
        out::print(&format!("{}\n{said}", table.show()));
    }
    if stop.load(Ordering::Relaxed) {
        out::note("interrupted: this is what there was until then");
        return Err(Failure::reported(Code::Invalid));
    }
    if let Some(failure) = climbs.last_mut().and_then(|last| last.climbed.trouble.take()) {
        return Err(failure);
    }
    match held.iter().find(|held| !held.confirmed) {
        None => Ok(()),
        Some(Held { rung, .. }) => {
            Err(Failure::new(format!("no count held when asked again, on rung {}", rung.word()))
                .hint("let nothing else run here, or take a longer --duration")
                .code(Code::Invalid))
        }
    }
}

fn held(climb: &Climb) -> Held {
    let Climb { rung, climbed: Climbed { verdict, probes, .. }, .. } = climb;
    // With nothing behind it there is nobody else whose limit it could be.
    let by_meter = verdict.by_meter && *rung != Rung::Client;
    Held {
        rung: *rung,
        streams: verdict.streams,
        confirmed: verdict.confirmed,
        at_least: verdict.at_limit || by_meter,
        first: meter_search::broke_first(probes, *verdict).cloned(),
    }
}

const HEAD: [&str; 7] =
    ["rung", "what it adds", ">streams", ">rate", ">99 % within", "too much", "then full"];

fn rows(climbs: &[Climb], held: &[Held]) -> Vec<Vec<String>> {
    let row = |(climb, held): (&Climb, &Held)| {
        let Climbed { verdict, probes, .. } = &climb.climbed;
        let confirming = meter_search::confirming(probes, *verdict);
        let of = |text: fn(&Probe) -> String| confirming.map_or_else(|| "-".to_owned(), text);
        let least = if held.at_least { "at least " } else { "" };
        let sure = if held.confirmed { "" } else { ", not confirmed" };
        vec![
            climb.rung.word().to_owned(),
            climb.rung.adds().to_owned(),
            format!("{least}{}{sure}", verdict.streams),
            of(|probe| probe.outcome.rate().to_string()),
            of(|probe| time(probe.outcome.response.quantile(0.99))),
            verdict.too_many.map_or_else(|| "-".to_owned(), |more| more.to_string()),
            held.first.as_ref().map_or_else(|| "-".to_owned(), |first| first.sentence.clone()),
        ]
    };
    climbs.iter().zip(held).map(row).collect()
}

fn summary(asked: &Asked, climbs: &[Climb], held: &[Held], found: &Bottleneck) -> Value {
    let rungs = climbs.iter().zip(held).map(|(climb, held)| {
        let Climbed { verdict, probes, .. } = &climb.climbed;
        let confirming = meter_search::confirming(probes, *verdict);
        let mut said = json!(held);
        said["method"] = json!(climb.method);
        said["too_many"] = json!(verdict.too_many);
        said["by_meter"] = json!(verdict.by_meter);
        said["runs"] = probes.iter().map(meter_record::of_probe).collect();
        said["bits_per_s"] = json!(confirming.map(|probe| probe.outcome.rate().0));
        said
    });
    json!({
        "scenario": asked.scenario(),
        "rung": found.rung,
        "sentence": found.sentence,
        "rungs": rungs.collect::<Vec<_>>(),
    })
}

fn page(
    asked: &Asked,
    climbs: &[Climb],
    held: &[Held],
    found: &Bottleneck,
) -> Result<Page, Failure> {
    let series = (1u32..).map(f64::from).zip(held).map(|(at, held)| Series {
        name: held.rung.word().to_owned(),
        shape: Shape::Spans,
        points: vec![(at, 0.0), (at, f64::from(held.streams))],
    });
    let streams = Plot {
        title: "Streams held on each rung".into(),
        x_label: "rung, from the meter to the storage".into(),
        y_label: "streams".into(),
        series: series.collect(),
    };
    let dots = climbs.iter().map(|climb| Series {
        name: climb.rung.word().to_owned(),
        shape: Shape::Dots,
        points: climb.climbed.probes.iter().map(point).collect(),
    });
    let rates = Plot {
        title: "What came, by number of streams".into(),
        x_label: "streams".into(),
        y_label: "Mb/s".into(),
        series: dots.collect(),
    };
    let head = HEAD.map(|name| name.trim_start_matches('>').to_owned());
    let mut blocks = vec![
        Block::Table { head: head.into(), rows: rows(climbs, held) },
        plot(
            &streams,
            "Each rung has all that the one before has, and more. The first that is no higher than \
             the last is what ends first.",
        )?,
        plot(&rates, "Each dot is a run. Where the dots no longer rise, the rung is at its end.")?,
    ];
    for climb in climbs {
        let Climbed { verdict, probes, .. } = &climb.climbed;
        let text = format!(
            "{}: {} of {} and {} spoilt, by {}.",
            climb.rung.adds(),
            verdict.probes,
            show_duration(asked.duration),
            verdict.spoilt,
            climb.method
        );
        blocks.push(Block::Heading(format!("Rung {}", climb.rung.word())));
        blocks.push(Block::Text(text));
        let rows = probes.iter().map(|Probe { step, answer, outcome, .. }| {
            let streams = step.streams.to_string();
            vec![streams, answer.word().to_owned(), late(outcome), outcome.rate().to_string()]
        });
        let head = ["streams", "answer", "frames", "rate"].map(str::to_owned).into();
        blocks.push(Block::Table { head, rows: rows.collect() });
        if let Some(blame) = meter_search::blame(probes, *verdict) {
            blocks.extend(blame.blocks()?);
        }
    }
    Ok(Page {
        title: format!("What ends first on the way to {}", asked.spot.target),
        summary: format!("Streams of {}: {}.", asked.profile.title, found.sentence),
        blocks,
    })
}

fn point(probe: &Probe) -> (f64, f64) {
    (f64::from(probe.step.streams), number(probe.outcome.rate().0) / 1e6)
}
