//! `--live`: the figures of a run on a terminal while it is in progress.
//!
//! ```text
//!   measuring thread ── figures, dropped where the screen is busy ──▶ drawing thread ──▶ stderr
//!
//!   play-out  0:12 of 1:00   40 streams   12,000 frames, 3 late
//!             2 Gb/s of 2 Gb/s   response 50 % 1.2 ms, 99 % 2.0 ms, longest 9 ms   queue 3 + 0
//!    512 ms │                         ▒        responses of each second by length,
//!    256 ms │                        ░▓░       in red those that are late
//!      1 ms │█████████████████████████▓▓
//! ```
//!
//! Drawing takes place in a thread of its own: a terminal that is slow must not delay the run.

use crate::out;
use meter::report::{LiveFigures, LiveKind, heat_band, heat_band_begins};
use std::fmt::Write as _;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;
use units::show;

/// The screen of one command; it remains on the terminal when it is dropped.
pub(super) struct LiveScreen {
    send: Option<SyncSender<Vec<LiveFigures>>>,
    thread: Option<JoinHandle<()>>,
}

impl LiveScreen {
    pub(super) fn open() -> Self {
        // One more than is being drawn: what a reader sees next is then never older than that.
        let (send, figures) = sync_channel(1);
        let thread = std::thread::Builder::new().name("live".into()).spawn(move || draw(&figures));
        // Without a thread nothing is drawn, and the run is none the worse.
        Self { send: Some(send), thread: thread.ok() }
    }

    /// Shows figures, unless the terminal is busy with earlier ones.
    pub(super) fn show(&self, groups: &[LiveFigures]) {
        if let Some(send) = &self.send {
            let _ = send.try_send(groups.to_vec());
        }
    }
}

impl Drop for LiveScreen {
    fn drop(&mut self) {
        self.send = None;
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn draw(figures: &Receiver<Vec<LiveFigures>>) {
    let mut height = 0;
    for groups in figures {
        let lines = screen(&groups, out::width());
        out::redraw(height, &lines);
        height = lines.len();
        std::thread::sleep(BETWEEN);
    }
}

/// The shortest time between two screens.
const BETWEEN: Duration = Duration::from_millis(100);

/// The lines of a screen of this width, in characters.
fn screen(groups: &[LiveFigures], width: usize) -> Vec<String> {
    let groups: Vec<&LiveFigures> = groups.iter().filter(|group| group.streams > 0).collect();
    let named = groups.iter().filter(|group| !group.name.is_empty());
    let indent = named.map(|group| group.name.len() + 2).max().unwrap_or(0);
    let mut lines = Vec::new();
    for group in &groups {
        let [first, second] = figures(group);
        lines.push(cut(format!("{:<indent$}{first}", group.name), width));
        lines.push(cut(format!("{:<indent$}{second}", ""), width));
    }
    lines.extend(heat(&groups, width));
    lines
}

fn cut(line: String, width: usize) -> String {
    if line.chars().count() <= width { line } else { line.chars().take(width).collect() }
}

/// The figures of a group in two lines.
fn figures(group: &LiveFigures) -> [String; 2] {
    let length = |time: Duration| show::length(time.as_secs_f64());
    if group.kind == LiveKind::Clients {
        return figures_of_clients(group);
    }
    let streams = show::count(group.streams, "stream");
    let frames = show::thousands(group.frames);
    let mut first = format!(
        "{} of {}   {streams}   {frames} frames, {} late",
        length(group.elapsed),
        length(group.duration),
        show::thousands(group.late)
    );
    if group.late_by_meter > 0 {
        let _ = write!(first, ", {} by this machine", show::thousands(group.late_by_meter));
    }
    if group.failed > 0 {
        let _ = write!(first, ", {} failed", show::thousands(group.failed));
    }
    let [p50, p99, longest] = group.response.map(short);
    let second = format!(
        "{} of {}   response 50 % {p50}, 99 % {p99}, longest {longest}; in time {}   queue {} + {} waiting",
        group.rate,
        group.asked,
        short(group.allowed),
        group.in_flight,
        group.waiting
    );
    [first, second]
}

/// The figures of clients of transfers.
fn figures_of_clients(group: &LiveFigures) -> [String; 2] {
    let length = |time: Duration| show::length(time.as_secs_f64());
    let mut first = format!(
        "{} of {}   {}   {} {}",
        length(group.elapsed),
        length(group.duration),
        show::count(group.streams, "client"),
        show::thousands(group.frames),
        show::plural(&group.frames, "transfer")
    );
    if group.failed > 0 {
        let _ = write!(first, ", {} failed", show::thousands(group.failed));
    }
    let asked = match group.asked.0 {
        0 => String::new(),
        _ => format!(" of {}", group.asked),
    };
    let [p50, p99, longest] = group.response.map(short);
    let second = format!(
        "{}{asked}   response of blocks 50 % {p50}, 99 % {p99}, longest {longest}",
        group.rate
    );
    [first, second]
}

/// A time in two or three digits.
fn short(time: Duration) -> String {
    if time < Duration::from_micros(100) {
        return format!("{} us", time.as_micros());
    }
    let ms = time.as_secs_f64() * 1e3;
    if ms < 10.0 { format!("{ms:.1} ms") } else { show::millis(ms) }
}

/// The heat map of all groups together: a column for each second, a row for each octave of times.
fn heat(groups: &[&LiveFigures], width: usize) -> Vec<String> {
    let columns = groups.iter().map(|group| group.heat.len()).max().unwrap_or(0);
    let bands = groups.iter().flat_map(|group| &group.heat).map(Vec::len).max().unwrap_or(0);
    let count = |column: usize, row: usize| -> u32 {
        let in_row = |seconds: &Vec<u32>| seconds.iter().skip(row * 2).take(2).sum::<u32>();
        groups.iter().filter_map(|group| group.heat.get(column)).map(in_row).sum()
    };
    let shown = columns.min(width.saturating_sub(LABEL + 2));
    let from = columns - shown;
    let warm: Vec<usize> = (0..bands.div_ceil(2))
        .filter(|row| (from..columns).any(|column| count(column, *row) > 0))
        .collect();
    let (Some(lowest), Some(highest)) = (warm.first(), warm.last()) else { return Vec::new() };
    // The first time that is late in some group; those in its own row may be in time.
    let streams = groups.iter().filter(|group| group.kind == LiveKind::Streams);
    let allowed = streams.map(|group| group.allowed).min();
    let late = allowed.map_or(usize::MAX, |allowed| heat_band(allowed) / 2 + 1);
    let cells = (from..columns).flat_map(|column| warm.iter().map(move |row| (column, *row)));
    let most = cells.map(|(column, row)| count(column, row)).max().unwrap_or(1);
    let mut lines = Vec::new();
    // The shortest times are of least interest, and share the lowest of the rows.
    let lowest = (*lowest).max((highest + 1).saturating_sub(MOST_ROWS));
    for row in (lowest..=*highest).rev() {
        let begins = short(heat_band_begins(row * 2));
        let cells: String = (from..columns).map(|column| shade(count(column, row), most)).collect();
        let cells = cells.trim_end();
        let (red, plain) = if row >= late { (RED, PLAIN) } else { ("", "") };
        lines.push(format!("{begins:>LABEL$} │{red}{cells}{plain}"));
    }
    lines.push(format!("{:>LABEL$}  the last {shown} s, now at the right", ""));
    lines
}

/// The character of a cell: each step is four times as many, below the fullest cell.
fn shade(count: u32, most: u32) -> char {
    match (count, most / count.max(1)) {
        (0, _) => ' ',
        (_, 0..4) => '█',
        (_, 4..16) => '▓',
        (_, 16..64) => '▒',
        _ => '░',
    }
}

/// The width of the labels of rows.
const LABEL: usize = 8;

/// The largest height of the heat map.
const MOST_ROWS: usize = 12;

const RED: &str = "\x1b[31m";
const PLAIN: &str = "\x1b[0m";

#[cfg(test)]
mod tests {
    use super::*;
    use units::BitRate;

    fn group(name: &str) -> LiveFigures {
        let ms = Duration::from_millis;
        let mut heat = vec![vec![0; 48]; 6];
        for (second, bands) in heat.iter_mut().enumerate() {
            bands[heat_band(ms(2))] = 400;
            bands[heat_band(ms(400))] = [0, 0, 1, 20, 90, 0][second];
        }
        LiveFigures {
            name: name.to_owned(),
            streams: 20,
            asked: BitRate(1_000_000_000),
            elapsed: Duration::from_secs(12),
            duration: Duration::from_secs(60),
            allowed: ms(200),
            frames: 6000,
            late: 111,
            rate: BitRate(980_000_000),
            response: [ms(2), ms(399), ms(512)],
            in_flight: 3,
            heat,
            ..LiveFigures::default()
        }
    }

    fn shown(groups: &[LiveFigures], width: usize) -> String {
        screen(groups, width).join("\n").replace(RED, "<").replace(PLAIN, ">") + "\n"
    }

    #[test]
    fn late_responses_are_red_and_frequent_ones_dark() {
        expect_test::expect![[r#"
            12.0 s of 1:00   20 streams   6,000 frames, 111 late
            980 Mb/s of 1 Gb/s   response 50 % 2.0 ms, 99 % 399 ms, longest 512 ms; in time 200 ms   queue 3 + 0 waiting
              268 ms │<  ░▒▓>
              134 ms │
               67 ms │
               34 ms │
               17 ms │
              8.4 ms │
              4.2 ms │
              2.1 ms │
              1.0 ms │██████
                      the last 6 s, now at the right
        "#]].assert_eq(&shown(&[group("")], 120));
    }

    #[test]
    fn clients_have_transfers_and_no_deadline() {
        let clients = LiveFigures { kind: LiveKind::Clients, asked: BitRate(0), ..group("") };
        expect_test::expect![[r#"
            12.0 s of 1:00   20 clients   6,000 transfers
            980 Mb/s   response of blocks 50 % 2.0 ms, 99 % 399 ms, longest 512 ms
              268 ms │  ░▒▓
              134 ms │
               67 ms │
               34 ms │
               17 ms │
              8.4 ms │
              4.2 ms │
              2.1 ms │
              1.0 ms │██████
                      the last 6 s, now at the right
        "#]]
        .assert_eq(&shown(&[clients], 120));
    }

    #[test]
    fn groups_are_lines_and_their_responses_one_map() {
        let ingest = LiveFigures { late_by_meter: 2, failed: 1, ..group("ingest") };
        let unseen = LiveFigures::default();
        expect_test::expect![[r#"
            play-out  12.0 s of 1:00   20 streams   6,000 frames, 111 la
                      980 Mb/s of 1 Gb/s   response 50 % 2.0 ms, 99 % 39
            ingest    12.0 s of 1:00   20 streams   6,000 frames, 111 la
                      980 Mb/s of 1 Gb/s   response 50 % 2.0 ms, 99 % 39
              268 ms │<  ░▒▓>
              134 ms │
               67 ms │
               34 ms │
               17 ms │
              8.4 ms │
              4.2 ms │
              2.1 ms │
              1.0 ms │██████
                      the last 6 s, now at the right
        "#]]
        .assert_eq(&shown(&[group("play-out"), unseen, ingest], 60));
        assert_eq!(shown(&[LiveFigures::default()], 80), "\n");
    }
}
