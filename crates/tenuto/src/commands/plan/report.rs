//! A plan as text, as JSON, and as a plot.

use super::SHOWN;
use crate::out::{Table, facts};
use disk::plan::PlanRow;
use meter::report::{LineShape, Plot, Series};
use scheduler::{CapacityResult, PolicyKind, Resource};
use serde_json::{Map, Value, json};
use server::plan::{PlanResult, Popularity};
use server::wire::{AdmittedStreams, PlanReport};
use std::time::Duration;
use units::show::count;
use units::{ByteCount, show_duration};

/// A plan as text.
pub(super) fn text(answer: &PlanResult, others: &[(PolicyKind, CapacityResult)]) -> String {
    let PlanResult { question, bounds, .. } = answer;
    let rate = question.audience.rate();
    let memory = question
        .memory
        .map_or("unlimited memory".to_owned(), |memory| format!("{memory} of memory in all"));
    let disks = match question.disks {
        1 => String::new(),
        disks => format!("{disks} of it, "),
    };
    let mut table = Table::new(&[
        ">read",
        ">lasts",
        ">Özden",
        ">any place",
        ">zone-exact",
        ">usual",
        ">in memory",
        ">time-domain",
        ">vbrsim",
        "short of",
        "",
    ]);
    for (row, (bounds, admitted)) in bounds.rows.iter().zip(&answer.admitted).enumerate() {
        table.row(vec![
            bounds.read.to_string(),
            time(bounds.lasts),
            or_dash(bounds.ozden),
            or_dash(bounds.any_place),
            or_dash(bounds.zone_exact),
            or_dash(bounds.usual),
            or_dash(bounds.in_memory),
            or_dash(admitted.as_ref().map(|held| held[0].streams)),
            or_dash(admitted.as_ref().map(|held| held[1].streams)),
            admitted
                .as_ref()
                .and_then(|held| held[0].short_of)
                .map_or("", Resource::word)
                .to_owned(),
            if answer.best == Some(row) { "best" } else { "" }.to_owned(),
        ]);
    }
    let mut text = format!(
        "{}\n{disks}{}, {memory}\n\nstreams of one disk, by size of read\n{}\n",
        answer.disk,
        question.audience.describe(),
        table.show()
    );
    // Both bounds need only rates, not the policies: a reader can compute them again by hand.
    let rate_only = [
        ("transfer alone", format!("{} (mean rate / {rate})", count(bounds.ratio, "stream"))),
        (
            "S_max",
            format!(
                "{} (r0 {} / {rate}; t0 {})",
                count(bounds.s_max, "stream"),
                bounds.cost.r0,
                time(bounds.cost.t0)
            ),
        ),
    ];
    text += &facts(&rate_only);
    text += "\n";
    text += &outcome(answer, others);
    text
}

/// What may let the disk hold a stream.
fn remedies(answer: &PlanResult) -> &'static str {
    match (answer.bounds.ratio, answer.question.memory) {
        (0, _) => "a faster disk",
        (_, None) => "a longer --startup or a faster disk",
        (_, Some(_)) => "more --memory, a longer --startup or a faster disk",
    }
}

fn outcome(answer: &PlanResult, others: &[(PolicyKind, CapacityResult)]) -> String {
    let question = &answer.question;
    let Some((row, held)) = answer.held() else {
        return format!(
            "held            none: no stream is admitted with any size of read; give {}\n",
            remedies(answer)
        );
    };
    let PlanRow { read, lasts, .. } = answer.bounds.rows[row];
    let each = match question.disks {
        1 => String::new(),
        disks => format!(", {} on {disks} disks", held.streams * disks),
    };
    let short = held.short_of.map_or("no resource was short", |resource| match resource {
        Resource::Disk => "then the disk is full",
        Resource::Memory => "then memory is full",
        Resource::Network => "then the network is full",
    });
    let mut lines = vec![(
        "held",
        format!(
            "{}{each} by {} with reads of {read}; {short}",
            count(held.streams, "stream"),
            SHOWN[0].name()
        ),
    )];
    if let (Some(shared), Some(popularity)) = (answer.shared, question.popularity) {
        let Popularity { titles, exponent, within } = popularity;
        let (streams, follow) = (shared.streams, shared.viewers.saturating_sub(shared.streams));
        lines.push((
            "shared",
            format!(
                "about {} of {} (Zipf {exponent}) who come within {}, with reads of {}: {} of the \
                 disks, {follow} follow; then {} full",
                count(shared.viewers, "viewer"),
                count(titles, "title"),
                show_duration(within),
                shared.read,
                count(streams, "stream"),
                if shared.short_of_memory { "memory is" } else { "the disks are" },
            ),
        ));
    }
    if let Some((cycle, buffer)) = answer.cycle() {
        let line = format!("{} for as many (eq. 3), {buffer} each (eq. 4: B = R T)", time(cycle));
        lines.push(("service cycle", line));
    }
    if let Some(needed) = answer.memory_needed() {
        let peak = ByteCount(held.memory.saturating_mul(question.disks));
        let text = format!("{needed} for two reads a stream; admission books up to {peak}");
        lines.push(("memory", text));
    }
    // A round lasts as long as a read plays, and a stream that just missed its place waits for all
    // of the next one.
    let rounds = time(lasts.saturating_mul(2));
    let line = format!("{} by admission; in rounds up to two, {rounds}", time(question.startup));
    lines.push(("first media in", line));
    for (policy, held) in others {
        // Only policies without a guarantee can be late; the count says what their streams cost.
        let late = match held.late {
            0 => String::new(),
            late => format!(", and {} too late", count(late, "read")),
        };
        let streams = count(held.streams, "stream");
        lines.push((policy.name(), format!("{streams} with the same reads{late}")));
    }
    facts(&lines)
}

/// A plan as JSON; `docs/reference/json.md` explains the names.
pub(super) fn json(answer: &PlanResult, others: &[(PolicyKind, CapacityResult)]) -> Value {
    let by_policy =
        |held: &[CapacityResult]| by_policy(SHOWN.into_iter().zip(held.iter().copied()));
    let mut report = json!(PlanReport::of(answer, by_policy));
    if let Some(best) = report["best"].as_object_mut() {
        let others = self::by_policy(others.iter().copied());
        best.insert("other_policies".to_owned(), others.into());
    }
    report
}

/// Admitted streams by policy.
fn by_policy(all: impl Iterator<Item = (PolicyKind, CapacityResult)>) -> Map<String, Value> {
    let one = |(policy, held): (PolicyKind, CapacityResult)| {
        (policy.name().to_owned(), json!(AdmittedStreams::from(held)))
    };
    all.map(one).collect()
}

/// Streams against size of read.
pub(super) fn plot(answer: &PlanResult) -> Plot {
    let rows = &answer.bounds.rows;
    let series = |name: &str, shape, of: &dyn Fn(usize, &PlanRow) -> Option<u64>| Series {
        name: name.to_owned(),
        shape,
        points: rows
            .iter()
            .enumerate()
            .filter_map(|(i, row)| Some((mib(row.read), of(i, row)? as f64)))
            .collect(),
    };
    // Memory for ever more small reads would flatten all else.
    let top = answer.bounds.ratio.max(1);
    let all = [
        series("usual", LineShape::Line, &|_, row| row.usual),
        series("certain, zone-exact", LineShape::Line, &|_, row| row.zone_exact),
        series("certain, any place", LineShape::Line, &|_, row| row.any_place),
        series("Özden", LineShape::Line, &|_, row| row.ozden),
        series("fit in memory", LineShape::Line, &|_, row| row.in_memory.filter(|n| *n <= top)),
        series("admitted by time-domain", LineShape::Line, &|i, _| {
            answer.admitted[i].as_ref().map(|held| held[0].streams)
        }),
        series("transfer alone", LineShape::Limit, &|_, _| Some(answer.bounds.ratio)),
    ];
    Plot::new(
        format!("{}: {}", answer.disk, answer.question.audience.describe()),
        "MiB a read",
        "streams of one disk",
        all.into_iter().filter(|series| !series.points.is_empty()).collect(),
    )
}

fn mib(size: ByteCount) -> f64 {
    size.0 as f64 / f64::from(1 << 20)
}

fn time(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    // Short reads differ in tenths of a millisecond, which `show_duration` does not show.
    if seconds >= 1.0 {
        format!("{seconds:.1}s")
    } else if seconds >= 0.1 {
        show_duration(time)
    } else {
        format!("{:.1}ms", seconds * 1e3)
    }
}

fn or_dash(number: Option<u64>) -> String {
    number.map_or("-".to_owned(), |number| number.to_string())
}
