//! One search for each of several variants of the same streams, side by side.
//!
//! ```text
//!   Variants::Path      client ▶ cached ▶ network ▶ cold     more and more of the path
//!   Variants::Methods   io_uring, threads, pread, mmap ...   each kernel interface, same file
//! ```
//! The path shows which stage limits ([`bottleneck`]); the methods are Table 1 of Alderman and
//! Diallo for this machine and this storage. A method that the kernel or the disk refuses for the
//! file is left out with the reason: threads would read in its place, and they are a variant of
//! their own.

use super::attribution::Attribution;
use super::capacity::SearchConfig;
use super::record::{self, ExperimentReport};
use super::search::{Probe, SearchRuns, run_search};
use super::streams::{INTERRUPTED, StreamRuns, StreamsConfig};
use super::target::OpenTarget;
use crate::bottleneck::{Bottleneck, PathStage, StageCapacity, bottleneck};
use crate::capacity::{Search, SearchResult};
use crate::error::MeterError;
use crate::log::LogSink;
use crate::observer::Observer;
use crate::report::{Block, LineShape, Page, Plot, Series, TextTable, facts, late_and_lost, time};
use crate::target::Layout;
use device::Method;
use serde_json::{Value, json};
use std::collections::VecDeque;
use units::{ByteCount, show_duration};

/// The variants that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variants {
    /// Stages of the path to the storage.
    Path,
    /// Kernel interfaces of reading.
    Methods,
}

/// Searches the largest number of streams of each variant.
pub fn compare_variants(
    config: &StreamsConfig,
    variants: Variants,
    search: &SearchConfig,
    observer: &dyn Observer,
) -> Result<ExperimentReport, MeterError> {
    match variants {
        Variants::Path => compare_stages(config, search, observer),
        Variants::Methods => compare_methods(config, search, observer),
    }
}

/// The largest number of runs of a variant: precise to a few percent, enough for a comparison.
const MAX_RUNS: u32 = 14;

/// The search of one variant on an open target. Returns also whether the comparison is to end.
fn search_variant(
    runs: &StreamRuns,
    target: &OpenTarget,
    search: &SearchConfig,
    observer: &dyn Observer,
) -> Result<(SearchRuns, bool), MeterError> {
    let one = runs.plan(1, runs.length, target)?;
    // A stage can use a smaller part of the target than the search was planned for.
    let most = search.max_streams.min(target.most_streams(runs.within(target), one.stride()));
    let run = &mut |step| {
        let (length, mut log) = (runs.length_of(step), LogSink::none());
        let probe = runs.probe(target, search.rule, step, length, &mut log, observer)?;
        let delivered = probe.delivered(one.rate());
        Ok((probe, delivered))
    };
    // An error ends the whole comparison: variants after it would not be comparable.
    let found = run_search(Search::new(most, MAX_RUNS), run, observer);
    let ends = found.error.is_some() || observer.is_stopped();
    Ok((found, ends))
}

/// Refuses a comparison that is not valid. `names` names the variant of each search in words.
fn check<'a>(
    searches: impl Iterator<Item = (&'a SearchRuns, String)> + Clone,
    observer: &dyn Observer,
) -> Result<(), MeterError> {
    if observer.is_stopped() {
        return Err(MeterError::interrupted(INTERRUPTED));
    }
    if let Some(error) = searches.clone().find_map(|(search, _)| search.error.clone()) {
        return Err(error);
    }
    match searches.into_iter().find(|(search, _)| !search.verdict.confirmed) {
        None => Ok(()),
        Some((_, name)) => Err(MeterError::new(format!("no count held when asked again, {name}"))
            .hint("let nothing else run here, or take a longer --duration")
            .invalid()),
    }
}

/// A number of streams with its qualifications.
fn streams_text(at_least: bool, verdict: SearchResult) -> String {
    let least = if at_least { "at least " } else { "" };
    let sure = if verdict.confirmed { "" } else { ", not confirmed" };
    format!("{least}{}{sure}", verdict.streams)
}

/// A plot of the streams that each variant holds, and one of the delivered rate of every run; each
/// has its caption.
fn plots<'a>(
    [title, x_label]: [&str; 2],
    variants: impl Iterator<Item = (&'a str, &'a SearchRuns)> + Clone,
    captions: [&str; 2],
) -> Result<[Block; 2], MeterError> {
    let numbered = (1u32..).map(f64::from).zip(variants.clone());
    let bars = numbered.map(|(at, (name, found))| {
        let streams = f64::from(found.verdict.streams);
        Series::new(name, LineShape::Spans, vec![(at, 0.0), (at, streams)])
    });
    let streams = Plot::new(title, x_label, "streams", bars.collect());
    let dots = variants.map(|(name, found)| found.rate_series(name));
    let rates = Plot::new("What came, by number of streams", "streams", "Mb/s", dots.collect());
    Ok([streams.block(captions[0])?, rates.block(captions[1])?])
}

// ---- stages of the path ------------------------------------------------------------------------

/// A stage of the path with its search.
struct StageSearch {
    held: StageCapacity,
    found: SearchRuns,
    method: String,
}

fn compare_stages(
    config: &StreamsConfig,
    search: &SearchConfig,
    observer: &dyn Observer,
) -> Result<ExperimentReport, MeterError> {
    let runs = StreamRuns::new(config, observer)?;
    // Before the directory is made, so that a target without stages leaves nothing behind.
    if config.target.is_simulated() {
        return Err(MeterError::usage("a simulated disk has no way to it")
            .hint("name a directory, a file, a block device or a bucket"));
    }
    record::prepare(search.out.as_deref())?;
    let mut searches: Vec<StageSearch> = Vec::new();
    let (mut stages, mut is_whole) = (VecDeque::from([PathStage::Client]), true);
    while let Some(stage) = stages.pop_front() {
        let runs = on_stage(&runs, stage);
        let target = runs.open(1..=search.max_streams, observer)?;
        if stage == PathStage::Client {
            stages.extend(behind(config, &target));
        }
        let (found, ends) = search_variant(&runs, &target, search, observer)?;
        let method = found.probes.last().map(|probe| probe.outcome.method.clone());
        let held = stage_capacity(stage, &found);
        searches.push(StageSearch { held, found, method: method.unwrap_or_default() });
        // The stages until here are reported; the verdict names what ended the comparison.
        if ends {
            is_whole = false;
            break;
        }
    }
    let held: Vec<StageCapacity> = searches.iter().map(|search| search.held.clone()).collect();
    let bottleneck = bottleneck(&held, is_whole);
    let report = StageReport { runs: &runs, searches: &searches, bottleneck };
    let summary = report.summary();
    let saved = record::save(search.out.as_deref(), &summary, || report.page(), observer);
    let text = report.text();
    let named = searches
        .iter()
        .map(|search| (&search.found, format!("on stage {}", search.held.stage.word())));
    let verdict = saved.and_then(|()| check(named, observer));
    Ok(ExperimentReport { summary, text, verdict })
}

/// The stages that the path to the target has behind the client.
fn behind(config: &StreamsConfig, target: &OpenTarget) -> &'static [PathStage] {
    use PathStage::{Cached, Cold, Network};
    if config.target.is_bucket() {
        // The kernel caches no objects, so there is no stage between the client and the network.
        return &[Network, Cold];
    }
    let stack = target.beneath(&config.target.target);
    // Without a local block device the files are on a server, unless the file system is in memory.
    match (stack.is_local(), stack.devices.is_empty()) {
        (true, true) => &[Cold],
        (_, true) => &[Cached, Network, Cold],
        (_, false) => &[Cached, Cold],
    }
}

/// Runs of the streams on this stage of the path only.
fn on_stage(runs: &StreamRuns, stage: PathStage) -> StreamRuns {
    let mut own = runs.clone();
    own.null = stage == PathStage::Client;
    if own.null {
        // Nothing is opened, so a shared file has room for any number of streams.
        own.layout = Layout::SharedFile;
    }
    if matches!(stage, PathStage::Cached | PathStage::Network) {
        own.warm = true;
        let target = &mut own.config.target;
        // At least a few frames: with a single one all streams would read the same bytes.
        let small = SMALL.max(FRAMES * runs.config.profile.slot()).min(target.size.0);
        target.size = ByteCount(small);
        target.buffered = stage == PathStage::Cached;
        // The stage measures memory; emptying it before each run would measure the device.
        target.drop_caches = false;
        target.fill_level = None;
        own.within = Some(ByteCount(small));
        if runs.layout.is_single() {
            // As many streams as possible, on data that fits in memory.
            own.layout = Layout::SharedFile;
        }
    }
    own
}

/// Bytes that stay in memory on the path: more than a processor's caches, less than a server's
/// memory.
const SMALL: u64 = 256 << 20;

/// The minimum number of frames where frames are large.
const FRAMES: u64 = 16;

fn stage_capacity(stage: PathStage, found: &SearchRuns) -> StageCapacity {
    let SearchResult { streams, confirmed, at_limit, by_meter, .. } = found.verdict;
    // With nothing behind the meter its own limit is the limit of the stage.
    let by_meter = by_meter && stage != PathStage::Client;
    let first = found.broke_first().cloned();
    StageCapacity { stage, streams, confirmed, at_least: at_limit || by_meter, first }
}

struct StageReport<'a> {
    runs: &'a StreamRuns,
    searches: &'a [StageSearch],
    bottleneck: Bottleneck,
}

const STAGE_HEAD: [&str; 7] =
    ["stage", "what it adds", ">streams", ">rate", ">99 % within", "too much", "then full"];

impl StageReport<'_> {
    fn summary(&self) -> Value {
        let stages = self.searches.iter().map(|StageSearch { held, found, method }| {
            let mut stage = json!(held);
            stage["method"] = json!(method);
            stage["too_many"] = json!(found.verdict.too_many);
            stage["by_meter"] = json!(found.verdict.by_meter);
            stage["runs"] = found.probes.iter().map(Probe::json).collect();
            stage["bits_per_s"] = json!(found.confirming().map(|probe| probe.outcome.rate().0));
            stage
        });
        json!({
            "scenario": self.runs.scenario(),
            "stage": self.bottleneck.stage,
            "sentence": self.bottleneck.sentence,
            "stages": stages.collect::<Vec<_>>(),
        })
    }

    fn text(&self) -> String {
        let table = TextTable::with_rows(&STAGE_HEAD, self.rows());
        let found = facts(&[("bottleneck", self.bottleneck.sentence.clone())]);
        format!("{}\n{found}", table.show())
    }

    fn rows(&self) -> Vec<Vec<String>> {
        let row = |StageSearch { held, found, .. }: &StageSearch| {
            let confirming = found.confirming();
            let of = |text: fn(&Probe) -> String| confirming.map_or_else(|| "-".to_owned(), text);
            let too_many = found.verdict.too_many;
            vec![
                held.stage.word().to_owned(),
                held.stage.adds().to_owned(),
                streams_text(held.at_least, found.verdict),
                of(|probe| probe.outcome.rate().to_string()),
                of(|probe| time(probe.outcome.response.quantile(0.99))),
                too_many.map_or_else(|| "-".to_owned(), |more| more.to_string()),
                held.first.as_ref().map_or_else(|| "-".to_owned(), |first| first.sentence.clone()),
            ]
        };
        self.searches.iter().map(row).collect()
    }

    fn page(&self) -> Result<Page, MeterError> {
        let StreamsConfig { profile, target, .. } = &self.runs.config;
        let mut blocks = vec![Block::table(&STAGE_HEAD, self.rows())];
        blocks.extend(plots(
            ["Streams held on each stage", "stage, from the meter to the storage"],
            self.searches.iter().map(|search| (search.held.stage.word(), &search.found)),
            [
                "Each stage has all that the one before has, and more. The first that is no higher \
                 than the last is what ends first.",
                "Each dot is a run. Where the dots no longer rise, the stage is at its end.",
            ],
        )?);
        for StageSearch { held, found, method } in self.searches {
            let SearchResult { probes, invalid, .. } = found.verdict;
            let length = show_duration(self.runs.length);
            let text = format!(
                "{}: {probes} of {length} and {invalid} invalid, by {method}.",
                held.stage.adds()
            );
            blocks.push(Block::Heading(format!("Stage {}", held.stage.word())));
            blocks.push(Block::Text(text));
            let rows = found.probes.iter().map(|Probe { step, answer, outcome, .. }| {
                let streams = step.streams.to_string();
                vec![
                    streams,
                    answer.word().to_owned(),
                    late_and_lost(outcome),
                    outcome.rate().to_string(),
                ]
            });
            blocks.push(Block::table(&["streams", "answer", "frames", "rate"], rows.collect()));
            // `None` where no machine was watched.
            if let Some(attribution) = found.attribution() {
                blocks.extend(attribution.blocks()?);
            }
        }
        Ok(Page {
            title: format!("What ends first on the way to {}", target.target),
            summary: format!("Streams of {}: {}.", profile.title, self.bottleneck.sentence),
            blocks,
        })
    }
}

// ---- kernel interfaces -------------------------------------------------------------------------

/// A kernel interface with its search.
struct MethodSearch {
    method: Method,
    found: SearchRuns,
}

fn compare_methods(
    config: &StreamsConfig,
    search: &SearchConfig,
    observer: &dyn Observer,
) -> Result<ExperimentReport, MeterError> {
    let runs = StreamRuns::new(config, observer)?;
    let target = &config.target;
    let elsewhere =
        target.is_simulated() || target.is_null() || target.is_bucket() || target.agents.is_some();
    // Many files are always read by threads, so that there is nothing to compare.
    if !runs.layout.is_single() || elsewhere {
        let message = "the kernel's ways of reading are for a single file or device";
        return Err(MeterError::usage(message).hint(
            "take --layout one-file or shared-file, in a directory, a file or a device here",
        ));
    }
    record::prepare(search.out.as_deref())?;
    let mut target = runs.open(1..=search.max_streams, observer)?;
    let (mut searches, mut refused, mut allowed) = (Vec::new(), Vec::new(), Vec::new());
    for (method, probed) in target.methods() {
        match probed {
            Ok(()) => allowed.push(method),
            Err(error) => {
                observer.note(&format!("{method} is left out: {error}"));
                refused.push((method, error.to_string()));
            }
        }
    }
    for method in allowed {
        target.set_method(method);
        let (found, ends) = search_variant(&runs, &target, search, observer)?;
        searches.push(MethodSearch { method, found });
        if ends {
            break;
        }
    }
    let reasons =
        refused.iter().map(|(method, reason)| json!({ "method": method.name(), "reason": reason }));
    let summary = json!({
        "scenario": runs.scenario(),
        "rule": search.rule.word(),
        "methods": searches.iter().map(MethodSearch::json).collect::<Vec<_>>(),
        "refused": reasons.collect::<Vec<_>>(),
    });
    let page = || methods_page(&runs.config, &searches, &refused);
    let saved = record::save(search.out.as_deref(), &summary, page, observer);
    let rows = searches.iter().map(MethodSearch::row).collect();
    let text = TextTable::with_rows(&METHOD_HEAD, rows).show();
    let named =
        searches.iter().map(|search| (&search.found, format!("by {}", search.method.name())));
    let verdict = saved.and_then(|()| check(named, observer));
    Ok(ExperimentReport { summary, text, verdict })
}

const METHOD_HEAD: [&str; 6] =
    ["method", ">streams", ">rate", ">99 % within", ">processors", "done by, and then full"];

impl MethodSearch {
    /// The confirming run, or the last.
    fn representative(&self) -> Option<&Probe> {
        self.found.confirming().or(self.found.probes.last())
    }

    fn at_least(&self) -> bool {
        self.found.verdict.at_limit || self.found.verdict.by_meter
    }

    /// Processors that the meter used in the representative run.
    fn processors(&self) -> Option<f64> {
        let attribution = self.representative().and_then(|probe| probe.attribution.as_ref());
        attribution.map(Attribution::own_processors)
    }

    fn row(&self) -> Vec<String> {
        let first = self.found.broke_first();
        let full = first.map_or(String::new(), |first| format!("; {}", first.sentence));
        let of = |text: &dyn Fn(&Probe) -> String| {
            self.representative().map_or_else(|| "-".to_owned(), text)
        };
        vec![
            self.method.name().to_owned(),
            streams_text(self.at_least(), self.found.verdict),
            of(&|probe| probe.outcome.rate().to_string()),
            of(&|probe| time(probe.outcome.response.quantile(0.99))),
            self.processors().map_or("-".to_owned(), |busy| format!("{busy:.2}")),
            of(&|probe| format!("{}{full}", probe.outcome.method)),
        ]
    }

    fn json(&self) -> Value {
        let SearchRuns { verdict, probes, .. } = &self.found;
        let run = self.representative().map(|probe| &probe.outcome);
        json!({
            "method": self.method.name(),
            "done_by": run.map(|outcome| outcome.method.clone()),
            "streams": verdict.streams,
            "confirmed": verdict.confirmed,
            "at_least": self.at_least(),
            "by_meter": verdict.by_meter,
            "too_many": verdict.too_many,
            "bits_per_s": run.map(|outcome| outcome.rate().0),
            "processors": self.processors(),
            "broke_first": self.found.broke_first(),
            "runs": probes.iter().map(Probe::json).collect::<Vec<_>>(),
        })
    }
}

fn methods_page(
    config: &StreamsConfig,
    searches: &[MethodSearch],
    refused: &[(Method, String)],
) -> Result<Page, MeterError> {
    let row = |method: Method, tried: &str| {
        vec![method.name().to_owned(), method.description().to_owned(), tried.to_owned()]
    };
    let tried = searches.iter().map(|search| row(search.method, "yes"));
    let left_out = refused.iter().map(|(method, reason)| row(*method, reason));
    let rows = searches.iter().map(MethodSearch::row).collect();
    let mut blocks = vec![Block::table(&METHOD_HEAD, rows)];
    blocks.extend(plots(
        ["Streams held by each way of reading", "way of reading, as in the legend"],
        searches.iter().map(|search| (search.method.name(), &search.found)),
        [
            "Ways that make one read after another leave the disk's queue empty.",
            "Each dot is a run. Where dots no longer rise, that way is at its end.",
        ],
    )?);
    blocks.push(Block::Heading("The ways".into()));
    let head = ["method", "what it does", "tried, or why not"];
    blocks.push(Block::table(&head, tried.chain(left_out).collect()));
    Ok(Page {
        title: format!("Ways of reading {}", config.target.target),
        summary: format!(
            "How many streams of {} each of the kernel's ways of reading holds, on the same file.",
            config.profile.title
        ),
        blocks,
    })
}
