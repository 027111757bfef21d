//! Commands on a store that are over in a moment, and `check`.

use crate::access::ask;
use crate::cli::Args;
use crate::failure::{Code, Failure};
use crate::out::{self, Table, facts};
use crate::show;
use serde::Serialize;
use serde_json::json;
use server::control::{Reply, Request};
use server::wire;
use store::{FormatOptions, Store, StoreError};
use units::{BitRate, ByteCount};

pub(crate) fn format(args: &Args<'_>) -> Result<(), Failure> {
    let options = FormatOptions {
        size: args.maybe("size"),
        chunk: args.get("chunk"),
        label: args.text("label"),
        destroy: args.has("destroy"),
    };
    let info = Store::format(&args.path("TARGET"), &options).map_err(|error| match error {
        StoreError::TooSmall { .. } => Failure::from(error).hint("choose a larger --size"),
        other => other.into(),
    })?;
    let info = wire::StoreInfo::new(&info, None);
    if args.has("json") {
        out::print_json(&info);
    } else {
        out::print(&facts(&store_facts(&info)));
    }
    Ok(())
}

pub(crate) fn ls(args: &Args<'_>) -> Result<(), Failure> {
    let Reply::Titles(titles) = ask(&args.path("STORE"), &Request::Ls)? else { strange() };
    if args.has("json") {
        out::print_json(&Titles { titles: &titles });
    } else if args.has("long") {
        let mut table =
            Table::new(&["title", "kind", ">length", ">rate", ">size", ">tracks", "since (UTC)"]);
        for title in &titles {
            table.row(vec![
                title.name.clone(),
                title.kind.clone(),
                show::length(title.duration),
                BitRate(title.bit_rate).to_string(),
                ByteCount(title.bytes).to_string(),
                title.tracks.to_string(),
                show::moment(title.created),
            ]);
        }
        out::print(&table.show());
    } else {
        out::print(&titles.iter().map(|title| title.name.clone() + "\n").collect::<String>());
    }
    Ok(())
}

#[derive(Serialize)]
struct Titles<'a> {
    titles: &'a [wire::Title],
}

pub(crate) fn info(args: &Args<'_>) -> Result<(), Failure> {
    let title = args.maybe("TITLE");
    match ask(&args.path("STORE"), &Request::Info { title })? {
        Reply::Store(info) if args.has("json") => out::print_json(&info),
        Reply::Title(title) if args.has("json") => out::print_json(&title),
        Reply::Store(info) => {
            let mut lines = store_facts(&info);
            lines.push(("calibrated", calibrated(info.calibration.as_ref())));
            out::print(&facts(&lines));
        }
        Reply::Title(title) => out::print(&title_page(&title)),
        _ => strange(),
    }
    Ok(())
}

fn store_facts(info: &wire::StoreInfo) -> Vec<(&'static str, String)> {
    let bytes = |n| ByteCount(n).to_string();
    let sparse = if info.sparse { ", sparse: writes may find the file system full" } else { "" };
    let mut lines = vec![
        ("store", info.uuid.clone()),
        ("on", format!("a {} of {}{sparse}", kind_word(&info.kind), bytes(info.size))),
        ("chunk", bytes(info.chunk)),
        ("titles", info.titles.to_string()),
        (
            "free",
            format!(
                "{} of {}, at most {} in one piece",
                bytes(info.free_bytes),
                bytes(info.data_bytes),
                bytes(info.largest_free_bytes)
            ),
        ),
    ];
    if !info.label.is_empty() {
        lines.insert(1, ("label", info.label.clone()));
    }
    lines
}

fn kind_word(kind: &str) -> &str {
    if kind == "block" { "block device" } else { kind }
}

fn calibrated(calibration: Option<&wire::Calibration>) -> String {
    let Some(calibration) = calibration else {
        return "no; `tenuto calibrate` measures what the disk is guaranteed to read".to_owned();
    };
    let guarantees: Vec<String> = calibration.guarantees.iter().map(guarantee).collect();
    format!("{} UTC: {}", show::moment(calibration.measured_at), guarantees.join(", "))
}

/// `14 x 1 MiB per slot`.
fn guarantee(guarantee: &wire::ReadGuarantee) -> String {
    format!("{} x {}", guarantee.min_read, ByteCount(guarantee.read_size))
}

fn title_page(title: &wire::TitleDetail) -> String {
    let about = &title.title;
    let mut page = facts(&[
        ("title", about.name.clone()),
        ("kind", about.kind.clone()),
        ("length", show::length(about.duration)),
        ("rate", BitRate(about.bit_rate).to_string()),
        ("size", ByteCount(about.bytes).to_string()),
        ("index", ByteCount(title.index_bytes).to_string()),
        ("since", format!("{} UTC", show::moment(about.created))),
    ]);
    page.push('\n');
    let mut table = Table::new(&[
        ">track", "kind", "codec", "language", "shape", ">rate", ">size", ">LDUs", "extents",
    ]);
    for track in &title.track_list {
        table.row(vec![
            track.number.to_string(),
            track.kind.clone(),
            track.codec.clone(),
            track.language.clone(),
            shape(track),
            BitRate(track.bit_rate).to_string(),
            ByteCount(track.bytes).to_string(),
            track.ldus.to_string(),
            extents(&track.extents),
        ]);
    }
    page + &table.show()
}

fn shape(track: &wire::Track) -> String {
    match track.kind.as_str() {
        "video" => format!("{}x{}", track.width, track.height),
        "audio" => format!("{} Hz, {} ch", track.sample_rate, track.channels),
        _ => String::new(),
    }
}

/// Chunks: `64+12 80+3` is twelve chunks from the 64th on, and three more.
fn extents(extents: &[wire::Extent]) -> String {
    let extents: Vec<String> =
        extents.iter().map(|extent| format!("{}+{}", extent.start, extent.chunks)).collect();
    extents.join(" ")
}

pub(crate) fn rm(args: &Args<'_>) -> Result<(), Failure> {
    let title = args.text("TITLE");
    let Reply::Removed { title, in_use } = ask(&args.path("STORE"), &Request::Rm { title })? else {
        strange()
    };
    if args.has("json") {
        out::print_json(&Removed { title: &title, in_use });
    } else {
        let later = if in_use { ", free when its last viewer has left" } else { "" };
        let size = ByteCount(title.bytes);
        out::print(&format!("removed '{}' ({size}{later})\n", title.name));
    }
    Ok(())
}

#[derive(Serialize)]
struct Removed<'a> {
    title: &'a wire::Title,
    in_use: bool,
}

pub(crate) fn rename(args: &Args<'_>) -> Result<(), Failure> {
    let (old, new) = (args.text("OLD"), args.text("NEW"));
    ask(&args.path("STORE"), &Request::Rename { old: old.clone(), new: new.clone() })?;
    if args.has("json") {
        out::print_json(&json!({ "old": old, "new": new }));
    } else {
        out::print(&format!("renamed '{old}' to '{new}'\n"));
    }
    Ok(())
}

pub(crate) fn check(args: &Args<'_>) -> Result<(), Failure> {
    let request = Request::Check { scrub: args.has("scrub") };
    let Reply::Check(report) = ask(&args.path("STORE"), &request)? else { strange() };
    if args.has("json") {
        out::print_json(&report);
    } else {
        out::print(&check_page(&report));
    }
    if report.clean { Ok(()) } else { Err(Failure::reported(Code::Damage)) }
}

fn check_page(report: &wire::CheckReport) -> String {
    let line = |what: &str, finding: &wire::Finding| match &finding.title {
        Some(title) => format!("{what}: {} of '{title}': {}\n", finding.kind, finding.text),
        None => format!("{what}: {}: {}\n", finding.kind, finding.text),
    };
    let mut page: String = report.healed.iter().map(|finding| line("healed", finding)).collect();
    page.extend(report.findings.iter().map(|finding| line("damage", finding)));
    let (titles, bytes) = (report.titles, ByteCount(report.bytes_read));
    let verdict = match report.findings.len() {
        0 => "nothing to repair".to_owned(),
        1 => "1 piece of damage".to_owned(),
        n => format!("{n} pieces of damage"),
    };
    page + &format!("{verdict} in {titles} titles ({bytes} read)\n")
}

/// A reply that does not belong to its request.
pub(super) fn strange() -> ! {
    unreachable!("both ends answer a request with its own reply; the client checks the version")
}
