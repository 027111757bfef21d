//! Short commands on a store: `format`, `ls`, `info`, `rm`, `rename`.

use crate::access::{ask, ask_for_title};
use crate::args::shared::StoresArgs;
use crate::args::stores::{
    FormatArgs, InfoArgs, LsArgs, RelabelArgs, RenameArgs, ResizeArgs, RmArgs, TrimArgs,
};
use crate::failure::Failure;
use crate::out::{self, Table, facts};
use serde::Serialize;
use serde_json::json;
use server::control::{Reply, Request};
use server::wire;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use store::{FormatOptions, Store, StoreError, TitleSelection};
use units::{BitRate, ByteCount, show};

pub(crate) fn format(args: &FormatArgs) -> Result<(), Failure> {
    let options = FormatOptions {
        size: args.size,
        chunk: args.chunk,
        label: args.label.clone(),
        destroy: args.overwrite.destroy,
    };
    let info = wire::StoreInfo::new(&Store::format(&args.target, &options)?, None);
    args.report.show(&info, || facts(&store_facts(&info)));
    Ok(())
}

pub(crate) fn ls(args: &LsArgs) -> Result<(), Failure> {
    let several = args.stores.len() > 1;
    let (folder, after, search) = (args.folder.clone(), args.after.clone(), args.search.clone());
    let limit = args.limit.and_then(NonZeroU32::new);
    let request = Request::Ls(TitleSelection { folder, after, search, limit });
    let mut titles: Vec<Listed> = Vec::new();
    let mut places: HashMap<(String, String), usize> = HashMap::new();
    // Up to this name each store has listed its titles.
    let mut until: Option<String> = None;
    for store in &args.stores {
        let asked = ask(store, &request).map_err(|failure| match several {
            true => failure.about(store),
            false => failure,
        });
        let Reply::Titles(here) = asked? else { mismatched() };
        until = until.into_iter().chain(here.next).min();
        for title in here.titles {
            // An equal name with other content is another title, and the list shows both.
            match places.entry((title.name.clone(), title.content.clone())) {
                Entry::Occupied(place) => titles[*place.get()].stores.push(store.clone()),
                Entry::Vacant(place) => {
                    place.insert(titles.len());
                    titles.push(Listed { title, stores: vec![store.clone()] });
                }
            }
        }
    }
    // Each store lists its own titles by name; together they are sorted again.
    titles.sort_by(|a, b| a.title.name.cmp(&b.title.name));
    titles.retain(|listed| until.as_ref().is_none_or(|until| listed.title.name <= *until));
    let is_cut = args.limit.is_some_and(|limit| cut(&mut titles, limit));
    let next = if is_cut { titles.last().map(|last| last.title.name.clone()) } else { until };
    if !several {
        titles.iter_mut().for_each(|listed| listed.stores.clear());
    }
    args.report.show(&json!({ "titles": titles, "next": next }), || match args.long {
        true => long_list(&titles, several),
        false => titles.iter().map(|listed| listed.title.name.clone() + "\n").collect(),
    });
    if let Some(next) = next.filter(|_| !args.report.json) {
        out::note(&format!("there are more titles: --after '{next}' lists them"));
    }
    Ok(())
}

/// Leaves the first titles of a list: at most so many, and those with the name of the last of them,
/// because the next page begins behind that name. Returns whether there were more.
fn cut(titles: &mut Vec<Listed>, limit: u32) -> bool {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let Some(last) = titles.get(limit.wrapping_sub(1)).map(|last| last.title.name.clone()) else {
        return false;
    };
    let all = titles.len();
    titles.truncate(titles.partition_point(|listed| listed.title.name <= last));
    titles.len() < all
}

fn long_list(titles: &[Listed], several: bool) -> String {
    let mut heads = vec!["title", "kind", ">length", ">rate", ">size", ">tracks", "since (UTC)"];
    heads.extend(several.then_some("stores"));
    let mut table = Table::new(&heads);
    for Listed { title, stores } in titles {
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
    table.show()
}

/// A title, and the stores that have it.
#[derive(Serialize)]
struct Listed {
    #[serde(flatten)]
    title: wire::ListedTitle,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stores: Vec<PathBuf>,
}

pub(crate) fn info(args: &InfoArgs) -> Result<(), Failure> {
    match ask(&args.store, &Request::Info { title: args.title.clone() })? {
        // `format` prints these facts, too, without the calibration that a new store cannot have.
        Reply::Store(info) => args.report.show(&info, || {
            let mut lines = store_facts(&info);
            lines.extend(info.write_failure.as_ref().map(|why| {
                let until = "until its server is restarted in place";
                ("written to", format!("no more, because a write failed ({why}), {until}"))
            }));
            lines.push(("calibrated", calibrated(info.calibration.as_ref())));
            lines.extend(info.scrub.as_ref().map(|scrub| ("scrubbed", scrubbed(scrub))));
            lines.extend(info.recordings.iter().map(|it| {
                let (title, bytes) = (&it.title, ByteCount(it.bytes));
                ("recording", format!("'{title}' since {} UTC, {bytes}", show::moment(it.since)))
            }));
            facts(&lines)
        }),
        Reply::Title(title) => args.report.show(&title, || title_page(&title)),
        _ => mismatched(),
    }
    Ok(())
}

fn store_facts(info: &wire::StoreInfo) -> Vec<(&'static str, String)> {
    let bytes = |n| ByteCount(n).to_string();
    let sparse = if info.sparse { ", sparse: writes may find the file system full" } else { "" };
    let kind = if info.kind == "block" { "block device" } else { &info.kind };
    let mut lines = vec![
        ("store", info.uuid.clone()),
        ("on", format!("a {} of {}{sparse}", kind, bytes(info.size))),
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

fn calibrated(calibration: Option<&wire::Calibration>) -> String {
    let Some(calibration) = calibration else {
        return "no; `tenuto calibrate` measures what the disk is guaranteed to read".to_owned();
    };
    let guarantee =
        |g: &wire::ReadGuarantee| format!("{} x {}", g.min_read, ByteCount(g.read_size));
    let guarantees: Vec<String> = calibration.guarantees.iter().map(guarantee).collect();
    let provisional = match calibration.provisional {
        true => format!("; measured on {}", super::calibrate::measured(calibration)),
        false => String::new(),
    };
    let when = show::moment(calibration.measured_at);
    format!("{when} UTC: {}{provisional}", guarantees.join(", "))
}

fn scrubbed(scrub: &wire::Scrub) -> String {
    let damage = |pieces: u32| match pieces {
        0 => "no damage".to_owned(),
        pieces => show::count(pieces, "piece") + " of damage (`tenuto check --scrub` lists it)",
    };
    let last = match scrub.last {
        Some(last) => format!("{} UTC", show::moment(last)),
        None => "not yet".to_owned(),
    };
    let last_damage =
        scrub.last_damage.map_or(String::new(), |pieces| ": ".to_owned() + &damage(pieces));
    let (done, all) = (ByteCount(scrub.bytes), ByteCount(scrub.bytes + scrub.bytes_left));
    if scrub.bytes == 0 && scrub.damage == 0 {
        return last + &last_damage;
    }
    let since = show::moment(scrub.begun);
    let now = damage(scrub.damage);
    format!("{last}{last_damage}; since {since} UTC {done} of {all}: {now}")
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
        ">track",
        "kind",
        "codec",
        "language",
        "shape",
        ">rate",
        ">size",
        ">LDUs",
        "extents (first chunk+chunks)",
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
            // Positions are in chunks: multiplied by the chunk size they are offsets in the data
            // region.
            extents(&track.extents),
        ]);
    }
    page.push_str(&table.show());
    if !title.text_list.is_empty() {
        page.push('\n');
        page.push_str(&text_table(&title.text_list));
    }
    if let Some(wire::ListedThumbnails { count, interval, width, height, bytes }) = title.thumbnails
    {
        let size = ByteCount(bytes);
        let about = format!("{count} of {width}x{height}, one each {interval} s, {size}");
        page.push('\n');
        page.push_str(&facts(&[("thumbnails", about)]));
    }
    page
}

fn text_table(texts: &[wire::ListedText]) -> String {
    let mut table = Table::new(&[">text", "language", "title", "for", ">cues"]);
    for text in texts {
        let words = [
            (text.default, "default"),
            (text.forced, "forced"),
            (text.hearing_impaired, "hearing impaired"),
        ];
        let words = words.into_iter().filter(|(is, _)| *is).map(|(_, word)| word);
        table.row(vec![
            text.number.to_string(),
            text.language.clone(),
            text.title.clone(),
            words.collect::<Vec<_>>().join(", "),
            text.cues.to_string(),
        ]);
    }
    table.show()
}

fn shape(track: &wire::ListedTrack) -> String {
    match track.kind.as_str() {
        "video" => format!("{}x{}", track.width, track.height),
        "audio" => {
            let purposes = track.purposes.iter().map(|purpose| match purpose.as_str() {
                "visual_impaired" => ", audio description",
                "hearing_impaired" => ", clear speech",
                "comment" => ", commentary",
                "dub" => ", dub",
                _ => "",
            });
            let purposes: String = purposes.collect();
            format!("{} Hz, {} ch{purposes}", track.sample_rate, track.channels)
        }
        _ => String::new(),
    }
}

/// Extents as text: `64+12 80+3` is twelve chunks from chunk 64 on, and three from chunk 80 on.
fn extents(extents: &[wire::Extent]) -> String {
    let extents: Vec<String> =
        extents.iter().map(|extent| format!("{}+{}", extent.start, extent.chunks)).collect();
    extents.join(" ")
}

pub(crate) fn rm(args: &RmArgs) -> Result<(), Failure> {
    let request = Request::Rm { title: args.title.clone(), copy_only: false };
    let several = args.stores.are_several();
    let mut removed = Vec::new();
    let failed = change_copies(&args.stores, &request, |store, reply| {
        let Reply::Removed(wire::RemovedTitle { title, in_use }) = reply else { mismatched() };
        if !args.report.json {
            let later = if in_use { ", free when its last viewer has left" } else { "" };
            let from = if several { format!(" from {}", store.display()) } else { String::new() };
            let size = ByteCount(title.bytes);
            // Printed store by store, because a later store may fail.
            out::print(&format!("removed '{}'{from} ({size}{later})\n", title.name));
        }
        removed.push((store.to_owned(), title, in_use));
    });
    // If no store removed the title, the error alone is the answer.
    if args.report.json && !removed.is_empty() {
        let all = removed.iter().map(
            |(store, title, in_use)| json!({ "store": store, "title": title, "in_use": in_use }),
        );
        let (_, title, in_use) = &removed[0];
        out::print_json(&match several {
            true => json!({ "stores": all.collect::<Vec<_>>() }),
            false => json!({ "title": title, "in_use": in_use }),
        });
    }
    failed
}

pub(crate) fn rename(args: &RenameArgs) -> Result<(), Failure> {
    let RenameArgs { old, new, .. } = args;
    let request = Request::Rename { old: old.clone(), new: new.clone() };
    let several = args.stores.are_several();
    if several {
        refuse_if_taken(&args.stores, old, new)?;
    }
    let mut renamed: Vec<PathBuf> = Vec::new();
    let failed = change_copies(&args.stores, &request, |store, _| {
        if !args.report.json {
            let place = if several { format!(" in {}", store.display()) } else { String::new() };
            out::print(&format!("renamed '{old}' to '{new}'{place}\n"));
        }
        renamed.push(store.to_owned());
    });
    if args.report.json && !renamed.is_empty() {
        out::print_json(&match several {
            true => json!({ "old": old, "new": new, "stores": renamed }),
            false => json!({ "old": old, "new": new }),
        });
    }
    failed
}

/// Changes a title in each of these stores that has it, and calls `done` with the reply of each. A
/// library has a title in some of its stores: it is an error only if none of them has it.
/// Refuses a rename that another title stands in the way of in any of the stores, before copies
/// have different names.
fn refuse_if_taken(stores: &StoresArgs, old: &str, new: &str) -> Result<(), Failure> {
    let has = |store: &Path, title: &str| {
        ask(store, &Request::Info { title: Some(title.to_owned()) }).is_ok()
    };
    let all = std::iter::once(&stores.store).chain(&stores.replica);
    match all.into_iter().find(|store| old != new && has(store, new) && has(store, old)) {
        Some(store) => {
            let error = StoreError::Exists { name: new.to_owned() };
            Err(Failure::from(error).about(store))
        }
        None => Ok(()),
    }
}

fn change_copies(
    stores: &StoresArgs,
    request: &Request,
    mut done: impl FnMut(&Path, Reply),
) -> Result<(), Failure> {
    let (mut found, mut absent) = (false, None);
    stores.each(|store| {
        match ask_for_title(store, request)? {
            Ok(reply) => {
                found = true;
                done(store, reply);
            }
            Err(failure) => drop(absent.get_or_insert(failure)),
        }
        Ok(())
    })?;
    match absent {
        Some(failure) if !found && stores.are_several() => {
            Err(Failure { sentence: format!("{} in any store", failure.sentence), ..failure })
        }
        Some(failure) if !found => Err(failure),
        _ => Ok(()),
    }
}

pub(crate) fn relabel(args: &RelabelArgs) -> Result<(), Failure> {
    debug_assert!(args.new_identity, "the parser requires it: there is nothing else to change");
    let store = &args.store;
    let before = Store::peek(store)?.uuid.to_string();
    let uuid = Store::relabel(store).map_err(owned_by_another)?.to_string();
    args.report.show(&json!({ "uuid": uuid, "before": before }), || {
        format!("{} is now store {uuid}; before: {before}\n", store.display())
    });
    Ok(())
}

pub(crate) fn resize(args: &ResizeArgs) -> Result<(), Failure> {
    let store = &args.store;
    let before = Store::peek(store)?.size;
    let info = Store::resize(store, args.size).map_err(owned_by_another)?;
    args.report.show(&json!({ "before": before.0, "size": info.size.0 }), || {
        format!("{} is now {} long; before: {before}\n", store.display(), info.size)
    });
    Ok(())
}

pub(crate) fn trim(args: &TrimArgs) -> Result<(), Failure> {
    let Reply::Trimmed(report) = ask(&args.store, &Request::Trim)? else { mismatched() };
    let sparse = match report.sparse {
        true => "; its file has holes now: writes may find the file system full",
        false => "",
    };
    args.report
        .show(&report, || format!("{} of free space discarded{sparse}\n", ByteCount(report.bytes)));
    Ok(())
}

fn owned_by_another(error: StoreError) -> Failure {
    match error {
        StoreError::Owned { .. } => {
            Failure::from(error).hint("stop the server or command that has it open")
        }
        other => other.into(),
    }
}

/// Ends the program at a reply that does not belong to its request.
pub(super) fn mismatched() -> ! {
    unreachable!("both ends answer a request with its own reply; the client checks the version")
}
