//! The demo's results: the players' reports and the server's samples of all rounds, as JSON, as
//! rows and as sentences.

use super::server::Watch;
use serde_json::{Value, json};
use std::fmt::Write as _;
use tenuto_client::{PlayReport, Totals};
use units::show::count;
use units::{ByteCount, rounded};

/// All results of one demo.
pub(crate) struct Results {
    pub(crate) origin: String,
    pub(crate) disk: String,
    pub(crate) calibration: Value,
    pub(crate) capacity: Capacity,
    pub(crate) with: DemoRound,
    pub(crate) evening: DemoRound,
    /// The popular evening with nginx instead, where it could run.
    pub(crate) nginx: Option<DemoRound>,
    pub(crate) without: DemoRound,
    pub(crate) commands: Vec<String>,
}

/// One round: the players' report and what the server's status showed meanwhile (nothing of nginx).
pub(crate) struct DemoRound {
    pub(crate) name: String,
    pub(crate) report: PlayReport,
    pub(crate) watch: Watch,
}

/// Predicted capacity: the guaranteed rate of the disk over the mean rate of the titles.
#[derive(Clone, Debug)]
pub(crate) struct Capacity {
    /// Viewers of a title of mean rate.
    pub(crate) viewers: u64,
    /// Bits per second that the disk guarantees.
    pub(crate) disk_rate: f64,
    /// Bits per second of the mean title.
    pub(crate) title_rate: f64,
    /// Number of titles.
    pub(crate) titles: usize,
    pub(crate) min_read: u64,
    pub(crate) read_size: u64,
    pub(crate) slot: f64,
    /// Buffer memory of the server, in bytes.
    pub(crate) memory: u64,
}

impl Capacity {
    /// From a server's `/status` and `/titles`.
    pub(crate) fn of(status: &Value, titles: &Value, memory: u64) -> Self {
        let disk = &status["disks"][0];
        let number = |key: &str| disk[key].as_u64().unwrap_or_default();
        // A server of another version may not report its slot; this is the default.
        let slot = status["slot"].as_f64().filter(|slot| *slot > 0.0).unwrap_or(0.5);
        let rates: Vec<f64> = titles["titles"]
            .as_array()
            .into_iter()
            .flatten()
            // Titles of kind `file` are never played.
            .filter(|title| title["kind"] == "media")
            .filter_map(|title| title["bit_rate"].as_f64())
            .collect();
        let (min_read, read_size) = (number("min_read"), number("read_size"));
        let disk_rate = min_read as f64 * read_size as f64 * 8.0 / slot;
        let title_rate = rates.iter().sum::<f64>() / rates.len().max(1) as f64;
        let viewers = if title_rate > 0.0 { rounded((disk_rate / title_rate).floor()) } else { 0 };
        let titles = rates.len();
        Self { viewers, disk_rate, title_rate, titles, min_read, read_size, slot, memory }
    }

    /// The prediction as a sentence.
    pub(crate) fn sentence(&self) -> String {
        format!(
            "Predicted: the guarantee is {} of {} in {:.0} ms, which is {}; a title has {} on \
             average: about {}.",
            count(self.min_read, "read"),
            ByteCount(self.read_size),
            self.slot * 1e3,
            rate(self.disk_rate),
            rate(self.title_rate),
            count(self.viewers, "viewer")
        )
    }
}

impl DemoRound {
    /// The round in one line.
    pub(crate) fn sentence(&self) -> String {
        let totals = &self.report.totals;
        format!(
            "{}: {} arrived, {} admitted, {} refused{}, {} of {}",
            self.name,
            totals.arrived,
            totals.admitted,
            totals.refused,
            reasons(totals),
            count(totals.stalls, "stall"),
            count(totals.viewers_with_stalls, "viewer")
        )
    }

    /// The largest number of viewers that watched at the same time.
    pub(crate) fn max_concurrent(&self) -> u32 {
        self.report.samples.iter().map(|s| s.playing + s.stalled).max().unwrap_or_default()
    }

    /// Reads completed as a share of the guaranteed ones, over busy slots: mean and maximum; `None`
    /// without a busy slot.
    pub(crate) fn disk_use(&self) -> Option<(f64, f64)> {
        let shares: Vec<f64> = self
            .watch
            .busy()
            .iter()
            .filter(|(_, _, min_read)| *min_read > 0)
            .map(|(_, reads, min_read)| *reads as f64 / *min_read as f64)
            .collect();
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        let most = shares.iter().copied().fold(0.0, f64::max);
        (!shares.is_empty()).then_some((mean, most))
    }

    fn json(&self) -> Value {
        let slots: Vec<Value> = self
            .watch
            .busy()
            .iter()
            .map(|(slot, reads, min_read)| {
                json!({ "slot": slot, "reads": reads, "min_read": min_read })
            })
            .collect();
        let (mean, most) = self.disk_use().unwrap_or_default();
        let first = self.report.viewers.iter().find_map(|viewer| viewer.refusal.as_ref());
        json!({
            "parameters": self.report.parameters,
            "complete": self.report.complete,
            "totals": self.report.totals,
            "first_refusal": first,
            "max_concurrent_viewers": self.max_concurrent(),
            "startup_ms": self.report.startup_ms,
            "stalled_ms": self.report.stalled_ms,
            "drift_ms": self.report.drift_ms,
            "disk_use": { "mean": mean, "most": most, "slots": slots },
            "buffers_max_bytes": self.watch.buffers,
            "server": self.watch.last,
        })
    }
}

impl Results {
    /// The content of `summary.json`.
    pub(crate) fn json(&self) -> Value {
        let capacity = &self.capacity;
        json!({
            "footage": self.origin,
            "disk": self.disk,
            "calibration": self.calibration,
            "predicted": {
                "viewers": capacity.viewers,
                "disk_bits_per_s": capacity.disk_rate,
                "title_bits_per_s": capacity.title_rate,
                "titles": capacity.titles,
                "min_read": capacity.min_read,
                "read_size": capacity.read_size,
                "slot_s": capacity.slot,
                "memory_bytes": capacity.memory,
            },
            "with_admission": self.with.json(),
            "popular_evening": self.evening.json(),
            "evening_with_nginx": self.nginx.as_ref().map(DemoRound::json),
            "without_admission": self.without.json(),
            "commands": self.commands,
        })
    }

    /// All rounds, in the order of the table.
    pub(crate) fn rounds(&self) -> Vec<&DemoRound> {
        let tenuto = [&self.with, &self.evening];
        tenuto.into_iter().chain(&self.nginx).chain([&self.without]).collect()
    }

    /// The table of all rounds: measure, then a column for each round.
    pub(crate) fn rows(&self) -> Vec<Vec<String>> {
        let row = |name: &str, value: &dyn Fn(&DemoRound) -> String| {
            std::iter::once(name.to_owned()).chain(self.rounds().into_iter().map(value)).collect()
        };
        vec![
            row("viewers arrived", &|r| r.report.totals.arrived.to_string()),
            row("admitted", &|r| r.report.totals.admitted.to_string()),
            row("refused", &|r| {
                format!("{}{}", r.report.totals.refused, reasons(&r.report.totals))
            }),
            row("failed or unanswered", &|r| {
                (r.report.totals.failed + r.report.totals.unanswered).to_string()
            }),
            row("stalls", &|r| r.report.totals.stalls.to_string()),
            row("viewers with a stall", &|r| r.report.totals.viewers_with_stalls.to_string()),
            row("time stalled", &|r| format!("{:.1} %", r.report.totals.stall_ratio * 100.0)),
            row("longest stall of a viewer", &|r| seconds(r.report.stalled_ms.max)),
            row("start-up, half within", &|r| seconds(r.report.startup_ms.p50)),
            row("start-up, 95 % within", &|r| seconds(r.report.startup_ms.p95)),
            row("start-up, all within", &|r| seconds(r.report.startup_ms.max)),
            row("reads to guaranteed reads", &|r| {
                r.disk_use().map_or("-".to_owned(), |(mean, _)| format!("{:.0} %", mean * 100.0))
            }),
            row("delivered", &|r| rate(r.report.totals.bits_per_s)),
        ]
    }

    /// The head of the table.
    pub(crate) fn head(&self) -> Vec<String> {
        let names = self.rounds().into_iter().map(|round| round.name.clone());
        std::iter::once(String::new()).chain(names).collect()
    }

    /// The table as text for a terminal.
    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        for row in std::iter::once(self.head()).chain(self.rows()) {
            let line: String = row[1..].iter().map(|cell| format!("{cell:<22}")).collect();
            let _ = writeln!(out, "{}", format!("{:<28}{line}", row[0]).trim_end());
        }
        out
    }
}

/// The highest rate that a calibration guarantees at any read size, in bits per second.
pub(crate) fn guaranteed_rate(calibration: &Value) -> f64 {
    // The command prints the record itself, or within an object that also names the store.
    let record = calibration.get("calibration").unwrap_or(calibration);
    let slot = record["slot"].as_f64().filter(|slot| *slot > 0.0).unwrap_or(0.5);
    let rates = record["guarantees"].as_array().into_iter().flatten().map(|guarantee| {
        let number = |key: &str| guarantee[key].as_f64().unwrap_or_default();
        number("min_read") * number("read_size") * 8.0 / slot
    });
    rates.fold(0.0, f64::max)
}

fn reasons(totals: &Totals) -> String {
    let by: Vec<String> =
        totals.refused_by.iter().map(|(resource, count)| format!("{resource} {count}")).collect();
    if by.is_empty() { String::new() } else { format!(" ({})", by.join(", ")) }
}

/// Bits per second with a unit.
pub(crate) fn rate(bits: f64) -> String {
    if bits >= 1e9 { format!("{:.2} Gb/s", bits / 1e9) } else { format!("{:.1} Mb/s", bits / 1e6) }
}

fn seconds(millis: f64) -> String {
    format!("{:.2} s", millis / 1e3)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use tenuto_client::{Distribution, Parameters};

    /// Results of nine viewers on a disk for three: six refused, or all admitted and stalled.
    pub(crate) fn results() -> Results {
        let round = |name: &str, totals: Totals, startups: &[f64]| DemoRound {
            name: name.to_owned(),
            report: PlayReport {
                parameters: Parameters {
                    urls: vec!["http://127.0.0.1:8080".to_owned()],
                    titles: 30,
                    viewers: 9,
                    arrivals: "poisson:370ms".to_owned(),
                    seed: 1,
                    duration_s: Some(25.0),
                    start_s: 2.0,
                    buffer_s: 30.0,
                    dead_band_ms: 10.0,
                    rtsp_transport: "tcp".to_owned(),
                    bandwidth_bits_per_s: None,
                    retry: false,
                    view: String::new(),
                    switching: "never".to_owned(),
                },
                complete: true,
                seconds: 25.0,
                totals,
                startup_ms: Distribution::of(startups.iter().copied()),
                answer_ms: Distribution::default(),
                connect_ms: Distribution::default(),
                handshake_ms: Distribution::default(),
                first_byte_ms: Distribution::default(),
                stalled_ms: Distribution::default(),
                drift_ms: Distribution::default(),
                viewers: Vec::new(),
                renditions: Vec::new(),
                samples: Vec::new(),
                saved: Vec::new(),
            },
            watch: Watch { slots: [(4, (6, 3)), (5, (3, 3))].into(), ..Watch::default() },
        };
        let refused_by = [("disk".to_owned(), 6)].into();
        let arrived = 9;
        let with = Totals { arrived, admitted: 3, refused: 6, refused_by, ..Totals::default() };
        let evening = Totals { arrived, admitted: 9, ..Totals::default() };
        let (stalls, viewers_with_stalls) = (20, 9);
        let without = Totals {
            arrived,
            admitted: 9,
            stalls,
            viewers_with_stalls,
            stall_ratio: 0.25,
            ..Totals::default()
        };
        Results {
            origin: "30 titles made with FFmpeg".to_owned(),
            disk: "a disk".to_owned(),
            calibration: Value::Null,
            capacity: Capacity::of(&Value::Null, &Value::Null, 1 << 26),
            with: round("with admission", with, &[300.0, 500.0, 700.0]),
            evening: round("popular evening", evening, &[200.0]),
            nginx: None,
            without: round("without admission", without, &[4000.0]),
            commands: vec!["tenuto serve a.store".to_owned()],
        }
    }

    #[test]
    fn the_table_has_a_column_for_each_round() {
        let text = results().text();
        let line = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
            line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect::<Vec<_>>()
        };
        assert_eq!(line("refused"), ["refused", "6 (disk 6)", "0", "0"]);
        assert_eq!(line("stalls"), ["stalls", "0", "0", "20"]);
        assert_eq!(line("time stalled"), ["time stalled", "0.0 %", "0.0 %", "25.0 %"]);
        let startup = ["start-up, half within", "0.50 s", "0.20 s", "4.00 s"];
        assert_eq!(line("start-up, half"), startup);
        assert_eq!(line("reads to"), ["reads to guaranteed reads", "150 %", "150 %", "150 %"]);
        let json = results().json();
        assert_eq!(json["with_admission"]["totals"]["refused_by"]["disk"], 6);
        assert_eq!(json["without_admission"]["disk_use"]["slots"][0]["reads"], 6);
        assert!(json["evening_with_nginx"].is_null());
    }

    #[test]
    fn nginx_has_a_column_where_it_could_run() {
        let mut results = results();
        let peer = DemoRound { watch: Watch::default(), ..self::results().evening };
        results.nginx = Some(DemoRound { name: "evening with nginx".to_owned(), ..peer });
        let columns = results.head();
        assert_eq!(columns[1..4], ["with admission", "popular evening", "evening with nginx"]);
        let reads = results.rows().into_iter().find(|row| row[0].starts_with("reads to"));
        assert_eq!(reads.unwrap()[2..4], ["150 %", "-"]);
    }

    #[test]
    fn capacity_is_the_rate_of_the_disk_over_that_of_a_title() {
        let status = json!({ "slot": 0.5, "disks": [{ "min_read": 50, "read_size": 1 << 20 }] });
        let titles = json!({ "titles": [
            { "kind": "media", "bit_rate": 4_000_000 },
            { "kind": "media", "bit_rate": 6_000_000 },
            { "kind": "file", "bit_rate": 0 },
        ]});
        let capacity = Capacity::of(&status, &titles, 1 << 29);
        assert_eq!((capacity.viewers, capacity.titles), (167, 2));
        let sentence = capacity.sentence();
        assert!(sentence.contains("50 reads of 1 MiB in 500 ms"), "{sentence}");
        assert!(sentence.contains("838.9 Mb/s") && sentence.contains("5.0 Mb/s"), "{sentence}");
        assert_eq!(Capacity::of(&json!({}), &json!({}), 0).viewers, 0);
    }

    #[test]
    fn the_guaranteed_rate_is_that_of_the_best_read_size() {
        let calibration = json!({ "slot": 0.5, "guarantees": [
            { "read_size": 1 << 20, "min_read": 40 },
            { "read_size": 4 << 20, "min_read": 15 },
        ]});
        assert_eq!(guaranteed_rate(&calibration), 15.0 * f64::from(4 << 20) * 16.0);
        assert_eq!(guaranteed_rate(&Value::Null), 0.0);
    }
}
