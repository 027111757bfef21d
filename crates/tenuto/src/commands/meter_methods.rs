//! `meter methods`: the same search by each of the kernel's ways of reading, on the same file. What
//! Alderman and Diallo's Table 1 is for two systems of 2000, for this machine and this storage.
//!
//! ```text
//!   the file, made and filled once ─▶ io_uring ─▶ search ─▶ streams
//!                                  ─▶ threads  ─▶ search ─▶ streams     and so on
//! ```
//!
//! A way that kernel or disk refuse for this file is left out, with the reason: reads would be made by
//! threads instead, and those are a way of their own.

use crate::access::on_interrupt;
use crate::cli::Args;
use crate::commands::meter_blame::Blame;
use crate::commands::meter_plots::{number, plot};
use crate::commands::meter_record::{self, save_all};
use crate::commands::meter_search::{self, Climbed, Probe};
use crate::commands::meter_streams::{Asked, probe, time};
use crate::commands::meter_target::Target;
use crate::failure::{Code, Failure};
use crate::out::{self, Bar, Table};
use device::Method;
use meter::capacity::Search;
use meter::report::{Block, Page, Plot, Series, Shape};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// A way of reading, and what it held.
struct Tried {
    method: Method,
    climbed: Climbed,
}

/// A way that is refused here, and why.
struct Refused {
    method: Method,
    reason: String,
}

pub(crate) fn run(args: &Args<'_>) -> Result<(), Failure> {
    if args.typed("method") {
        return Err(Failure::usage("--method: all of them are tried, one after another")
            .hint("leave it out; `meter capacity --method` searches by one"));
    }
    let asked = Asked::new(args)?;
    let elsewhere = asked.spot.is_simulated() || asked.spot.is_null() || asked.spot.is_bucket();
    if !asked.layout.is_single() || elsewhere {
        return Err(Failure::usage("the kernel's ways of reading are for a single file or device")
            .hint("take --layout one-file or shared-file, in a directory, a file or a device"));
    }
    let rule = meter_search::rule(args);
    let dir = meter_record::prepare(args)?;
    let stop = on_interrupt()?;
    let bar = Bar::new();
    let most: u32 = args.count("most");
    let mut target = asked.open(most, &stop, &bar)?;
    let one = asked.plan(1, asked.duration, &target)?;
    let most = most.min(asked.within(&target).most_streams(one.stride()));
    drop(bar);
    let (works, refused) = ways(&target);
    let mut tried: Vec<Tried> = Vec::new();
    for method in works {
        target.read_by(method);
        let climbed = meter_search::climb(Search::new(most, PROBES), &stop, &mut |step| {
            let made = probe(&asked, &target, rule, step, &stop, &Bar::new())?;
            let delivered = made.delivered(one.rate());
            Ok((made, delivered))
        });
        let ends = climbed.trouble.is_some() || stop.load(Ordering::Relaxed);
        tried.push(Tried { method, climbed });
        if ends {
            break;
        }
    }
    tell(args, &asked, dir.as_deref(), (tried, &refused), &stop)
}

/// The ways to try, and those that are left out, of which it tells at once.
fn ways(target: &Target) -> (Vec<Method>, Vec<Refused>) {
    let (mut works, mut refused) = (Vec::new(), Vec::new());
    for (method, allowed) in target.methods() {
        match allowed {
            Ok(()) => works.push(method),
            Err(error) => {
                out::note(&format!("{method} is left out: {error}"));
                refused.push(Refused { method, reason: error.to_string() });
            }
        }
    }
    (works, refused)
}

/// Runs of a method at most: to a few percent.
const PROBES: u32 = 14;

fn tell(
    args: &Args<'_>,
    asked: &Asked,
    dir: Option<&Path>,
    (mut tried, refused): (Vec<Tried>, &[Refused]),
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let summary = json!({
        "scenario": asked.scenario(),
        "rule": meter_search::rule(args).word(),
        "methods": tried.iter().map(Tried::json).collect::<Vec<_>>(),
        "refused": refused.iter().map(Refused::json).collect::<Vec<_>>(),
    });
    if let Some(dir) = dir {
        save_all(dir, &summary["scenario"], &summary, &page(asked, &tried, refused)?)?;
        out::note(&format!("wrote {}", dir.join("report.html").display()));
    }
    if args.has("json") {
        out::print_json(&summary);
    } else {
        let mut table = Table::new(&HEAD);
        tried.iter().for_each(|tried| table.row(tried.row()));
        out::print(&table.show());
    }
    if stop.load(Ordering::Relaxed) {
        out::note("interrupted: this is what there was until then");
        return Err(Failure::reported(Code::Invalid));
    }
    if let Some(failure) = tried.last_mut().and_then(|last| last.climbed.trouble.take()) {
        return Err(failure);
    }
    match tried.iter().find(|tried| !tried.climbed.verdict.confirmed) {
        None => Ok(()),
        Some(Tried { method, .. }) => {
            Err(Failure::new(format!("no count held when asked again, by {}", method.name()))
                .hint("let nothing else run here, or take a longer --duration")
                .code(Code::Invalid))
        }
    }
}

const HEAD: [&str; 6] =
    ["method", ">streams", ">rate", ">99 % within", ">processors", "done by, and then full"];

impl Tried {
    /// The run that the answer stands on, or the last.
    fn telling(&self) -> Option<&Probe> {
        let Climbed { verdict, probes, .. } = &self.climbed;
        meter_search::confirming(probes, *verdict).or(probes.last())
    }

    fn at_least(&self) -> bool {
        self.climbed.verdict.at_limit || self.climbed.verdict.by_meter
    }

    fn row(&self) -> Vec<String> {
        let Climbed { verdict, probes, .. } = &self.climbed;
        let least = if self.at_least() { "at least " } else { "" };
        let sure = if verdict.confirmed { "" } else { ", not confirmed" };
        let of =
            |text: &dyn Fn(&Probe) -> String| self.telling().map_or_else(|| "-".to_owned(), text);
        let busy = |probe: &Probe| probe.blame.as_ref().map(Blame::own_processors);
        let full = meter_search::broke_first(probes, *verdict);
        let full = full.map_or(String::new(), |first| format!("; {}", first.sentence));
        vec![
            self.method.name().to_owned(),
            format!("{least}{}{sure}", verdict.streams),
            of(&|probe| probe.outcome.rate().to_string()),
            of(&|probe| time(probe.outcome.response.quantile(0.99))),
            of(&|probe| busy(probe).map_or("-".to_owned(), |busy| format!("{busy:.2}"))),
            of(&|probe| format!("{}{full}", probe.outcome.method)),
        ]
    }

    fn json(&self) -> Value {
        let Climbed { verdict, probes, .. } = &self.climbed;
        let telling = self.telling();
        json!({
            "method": self.method.name(),
            "done_by": telling.map(|probe| probe.outcome.method.clone()),
            "streams": verdict.streams,
            "confirmed": verdict.confirmed,
            "at_least": self.at_least(),
            "by_meter": verdict.by_meter,
            "too_many": verdict.too_many,
            "bits_per_s": telling.map(|probe| probe.outcome.rate().0),
            "processors": telling.and_then(|probe| probe.blame.as_ref().map(Blame::own_processors)),
            "broke_first": meter_search::broke_first(probes, *verdict),
            "runs": probes.iter().map(meter_record::of_probe).collect::<Vec<_>>(),
        })
    }
}

impl Refused {
    fn json(&self) -> Value {
        json!({ "method": self.method.name(), "reason": self.reason })
    }
}

fn page(asked: &Asked, tried: &[Tried], refused: &[Refused]) -> Result<Page, Failure> {
    let bars = (1u32..).map(f64::from).zip(tried).map(|(at, tried)| Series {
        name: tried.method.name().to_owned(),
        shape: Shape::Spans,
        points: vec![(at, 0.0), (at, f64::from(tried.climbed.verdict.streams))],
    });
    let streams = Plot {
        title: "Streams held by each way of reading".into(),
        x_label: "way of reading, as in the legend".into(),
        y_label: "streams".into(),
        series: bars.collect(),
    };
    let dots = tried.iter().map(|tried| Series {
        name: tried.method.name().to_owned(),
        shape: Shape::Dots,
        points: tried.climbed.probes.iter().map(point).collect(),
    });
    let rates = Plot {
        title: "What came, by number of streams".into(),
        x_label: "streams".into(),
        y_label: "Mb/s".into(),
        series: dots.collect(),
    };
    let head = HEAD.map(|name| name.trim_start_matches('>').to_owned()).into();
    let way = |method: Method, tried: String| {
        vec![method.name().to_owned(), method.about().to_owned(), tried]
    };
    let ways = tried.iter().map(|tried| way(tried.method, "yes".to_owned()));
    let left_out = refused.iter().map(|refused| way(refused.method, refused.reason.clone()));
    Ok(Page {
        title: format!("Ways of reading {}", asked.spot.target),
        summary: format!(
            "How many streams of {} each of the kernel's ways of reading holds, on the same file.",
            asked.profile.title
        ),
        blocks: vec![
            Block::Table { head, rows: tried.iter().map(Tried::row).collect() },
            plot(&streams, "Ways that make one read after another leave the disk's queue empty.")?,
            plot(&rates, "Each dot is a run. Where dots no longer rise, that way is at its end.")?,
            Block::Heading("The ways".into()),
            Block::Table {
                head: ["method", "what it does", "tried, or why not"].map(str::to_owned).into(),
                rows: ways.chain(left_out).collect(),
            },
        ],
    })
}

fn point(probe: &Probe) -> (f64, f64) {
    (f64::from(probe.step.streams), number(probe.outcome.rate().0) / 1e6)
}
