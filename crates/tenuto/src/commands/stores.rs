//! Commands on a store that are over in a moment.

use crate::access::ask;
use crate::cli::Args;
use crate::failure::Failure;
use crate::out::{self, Table, facts};
use crate::show;
use serde::Serialize;
use serde_json::json;
use server::control::{Reply, Request};
use server::wire;
use std::path::{Path, PathBuf};
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
    let stores: Vec<PathBuf> = args.all("STORE");
    let several = stores.len() > 1;
    let mut titles: Vec<Listed> = Vec::new();
    for store in &stores {
        let Reply::Titles(here) = ask(store, &Request::Ls)? else { strange() };
        for title in here {
            let alike =
                |l: &&mut Listed| l.title.name == title.name && l.title.content == title.content;
            match titles.iter_mut().find(alike) {
                Some(listed) => listed.stores.push(store.clone()),
                None => titles.push(Listed { title, stores: vec![store.clone()] }),
            }
        }
    }
    titles.sort_by(|a, b| a.title.name.cmp(&b.title.name));
    if args.has("json") {
        if !several {
            titles.iter_mut().for_each(|listed| listed.stores.clear());
        }
        out::print_json(&json!({ "titles": titles }));
    } else if args.has("long") {
        let mut heads =
            vec!["title", "kind", ">length", ">rate", ">size", ">tracks", "since (UTC)"];
        heads.extend(several.then_some("stores"));
        let mut table = Table::new(&heads);
        for Listed { title, stores } in &titles {
            let mut row = vec![
                title.name.clone(),
                title.kind.clone(),
                show::length(title.duration),
                BitRate(title.bit_rate).to_string(),
                ByteCount(title.bytes).to_string(),
                title.tracks.to_string(),
                show::moment(title.created),
            ];
            if several {
                let stores = stores.iter().map(|store| store.display().to_string());
                row.push(stores.collect::<Vec<_>>().join(", "));
            }
            table.row(row);
        }
        out::print(&table.show());
    } else {
        let names = titles.iter().map(|listed| listed.title.name.clone() + "\n");
        out::print(&names.collect::<String>());
    }
    Ok(())
}

/// A title, and the stores that have it.
#[derive(Serialize)]
struct Listed {
    #[serde(flatten)]
    title: wire::Title,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stores: Vec<PathBuf>,
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
    let request = Request::Rm { title: args.text("TITLE") };
    let mut removed = Vec::new();
    let failed = in_each(args, |store| {
        let Reply::Removed { title, in_use } = ask(store, &request)? else { strange() };
        if !args.has("json") {
            let later = if in_use { ", free when its last viewer has left" } else { "" };
            let (size, place) = (ByteCount(title.bytes), among(args, store));
            out::print(&format!("removed '{}'{place} ({size}{later})\n", title.name));
        }
        removed.push((store.to_owned(), title, in_use));
        Ok(())
    });
    if args.has("json") && !removed.is_empty() {
        let all = removed.iter().map(
            |(store, title, in_use)| json!({ "store": store, "title": title, "in_use": in_use }),
        );
        let (_, title, in_use) = &removed[0];
        let one = json!({ "title": title, "in_use": in_use });
        let stores = json!({ "stores": all.collect::<Vec<_>>() });
        out::print_json(if args.all::<PathBuf>("also").is_empty() { &one } else { &stores });
    }
    failed
}

/// Does the same in STORE and in every --also. One that fails does not stop the others; the first
/// reason is given back, the later ones are told.
pub(super) fn in_each(
    args: &Args<'_>,
    mut what: impl FnMut(&Path) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let also: Vec<PathBuf> = args.all("also");
    let mut first = Ok(());
    for store in std::iter::once(args.path("STORE")).chain(also.iter().cloned()) {
        let Err(mut failure) = what(&store) else { continue };
        if !also.is_empty() {
            failure.sentence = format!("{}: {}", store.display(), failure.sentence);
        }
        match first {
            Ok(()) => first = Err(failure),
            Err(_) => out::complain(&failure),
        }
    }
    first
}

/// Says in which store, where there are several.
fn among(args: &Args<'_>, store: &Path) -> String {
    let several = !args.all::<PathBuf>("also").is_empty();
    if several { format!(" from {}", store.display()) } else { String::new() }
}

pub(crate) fn rename(args: &Args<'_>) -> Result<(), Failure> {
    let (old, new) = (args.text("OLD"), args.text("NEW"));
    let request = Request::Rename { old: old.clone(), new: new.clone() };
    in_each(args, |store| ask(store, &request).map(|_| ()))?;
    if args.has("json") {
        out::print_json(&json!({ "old": old, "new": new }));
    } else {
        out::print(&format!("renamed '{old}' to '{new}'\n"));
    }
    Ok(())
}

/// A reply that does not belong to its request.
pub(super) fn strange() -> ! {
    unreachable!("both ends answer a request with its own reply; the client checks the version")
}
