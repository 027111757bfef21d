//! `check`: damage in each store and, of several stores, differences between copies.

use super::rebuild::rebuild;
use super::stores::mismatched;
use crate::access::{absolute, ask};
use crate::args::stores::CheckArgs;
use crate::failure::{Code, Failure};
use serde::Serialize;
use server::control::{Reply, Request};
use server::wire;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use store::{Store, TitleSelection};
use units::ByteCount;
use units::show::count;

pub(crate) fn check(args: &CheckArgs) -> Result<(), Failure> {
    let replicas = args.stores.are_several();
    match (args.rebuild, args.overwrite.destroy) {
        (true, _) if args.scrub || args.repair || replicas => {
            return Err(Failure::usage("--rebuild works on one store, and on its catalogue only")
                .hint("rebuild it, then check it with --scrub or against others"));
        }
        (false, _) if args.repair && !replicas => {
            return Err(Failure::usage("--repair needs a store with copies of the titles")
                .hint("name one with --replica; --rebuild recovers a lost catalogue"));
        }
        (true, _) => return rebuild(args),
        (false, true) => {
            return Err(Failure::usage("a check overwrites nothing")
                .hint("use --destroy with --rebuild only"));
        }
        (false, false) => {}
    }
    if replicas {
        return check_several(args);
    }
    let report = look(args, &args.stores.store)?;
    args.report.show(&report, || page(&report, None));
    if report.clean { Ok(()) } else { Err(Failure::reported(Code::Damage)) }
}

fn look(args: &CheckArgs, store: &Path) -> Result<wire::CheckReport, Failure> {
    let request = Request::Check { scrub: args.scrub };
    let Reply::Check(report) = ask(store, &request)? else { mismatched() };
    Ok(report)
}

/// The findings in several stores.
#[derive(Serialize)]
struct Report {
    clean: bool,
    /// What was repaired in each store, with `--repair`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    repairs: Vec<Repaired>,
    /// Titles that are alike in all stores.
    alike: usize,
    unlike: Vec<Unlike>,
    stores: Vec<Checked>,
}

#[derive(Serialize)]
struct Repaired {
    store: PathBuf,
    #[serde(flatten)]
    report: wire::RepairReport,
}

#[derive(Serialize)]
struct Checked {
    store: PathBuf,
    #[serde(flatten)]
    report: wire::CheckReport,
}

/// A title whose copies differ, or are missing in a store.
#[derive(Serialize)]
struct Unlike {
    title: String,
    /// The difference in words.
    how: String,
    missing_in: Vec<PathBuf>,
    copies: Vec<Held>,
}

/// A copy of a title. Copies with equal [`wire::ListedTitle::content`] hold the same.
#[derive(Serialize)]
struct Held {
    store: PathBuf,
    content: String,
    tracks: usize,
    bytes: u64,
}

fn check_several(args: &CheckArgs) -> Result<(), Failure> {
    refuse_twice(args)?;
    let mut repairs = Vec::new();
    if args.repair {
        args.stores.each(|store| {
            let report = repair(args, store).map_err(Failure::of_one_store)?;
            repairs.push(Repaired { store: store.to_owned(), report });
            Ok(())
        })?;
    }
    let mut stores: Vec<Checked> = Vec::new();
    let mut titles: BTreeMap<String, Vec<Held>> = BTreeMap::new();
    let failed = args.stores.each(|store| {
        // Checked before its titles are listed: a list of a damaged store may be incomplete.
        let report = look(args, store).map_err(Failure::of_one_store)?;
        let all = Request::Ls(TitleSelection::default());
        let Reply::Titles(here) = ask(store, &all)? else { mismatched() };
        for wire::ListedTitle { name, content, tracks, bytes, .. } in here.titles {
            let held = Held { store: store.to_owned(), content, tracks, bytes };
            titles.entry(name).or_default().push(held);
        }
        stores.push(Checked { store: store.to_owned(), report });
        Ok(())
    });
    let names = stores.iter().map(|checked| checked.store.clone()).collect::<Vec<_>>();
    let (alike, unlike): (Vec<_>, Vec<_>) = titles.into_iter().partition(|(_, copies)| {
        copies.len() == names.len() && copies.iter().all(|c| c.content == copies[0].content)
    });
    let unlike = unlike
        .into_iter()
        .map(|(title, copies)| unlike_of(&names, title, copies))
        .collect::<Result<Vec<_>, Failure>>()?;
    let clean = stores.iter().all(|checked| checked.report.clean);
    let clean = clean && repairs.iter().all(|repaired| repaired.report.left.is_empty());
    let report = Report { clean, repairs, alike: alike.len(), unlike, stores };
    // Shown before a failure is returned: the findings in the other stores are still valid.
    args.report.show(&report, || page_of_several(&report));
    failed?;
    // Damage has precedence over a difference, because it may be the cause of it.
    match (report.clean, report.unlike.is_empty()) {
        (true, true) => Ok(()),
        (false, _) => Err(Failure::reported(Code::Damage)),
        (true, false) => Err(Failure::reported(Code::Failed)),
    }
}

/// Repairs one of the stores from the others.
fn repair(args: &CheckArgs, store: &Path) -> Result<wire::RepairReport, Failure> {
    let all = std::iter::once(&args.stores.store).chain(&args.stores.replica);
    let others = all.filter(|other| *other != store).map(|other| absolute(other));
    let request = Request::Repair { from: others.collect::<Result<_, _>>()? };
    let Reply::Repaired(report) = ask(store, &request)? else { mismatched() };
    Ok(report)
}

/// Refuses a store that is named twice, before a check that may read for hours.
fn refuse_twice(args: &CheckArgs) -> Result<(), Failure> {
    let mut seen: Vec<(_, &Path)> = Vec::new();
    for store in std::iter::once(&args.stores.store).chain(&args.stores.replica) {
        // A store that cannot be opened is reported by its check.
        let Ok(found) = Store::peek(store) else { continue };
        if let Some((_, before)) = seen.iter().find(|(uuid, _)| *uuid == found.uuid) {
            let (store, before) = (store.display(), before.display());
            return Err(Failure::usage(format!("{store} is the same store as {before}"))
                .hint("name each store once"));
        }
        seen.push((found.uuid, store));
    }
    Ok(())
}

fn unlike_of(stores: &[PathBuf], title: String, copies: Vec<Held>) -> Result<Unlike, Failure> {
    let has = |store: &&PathBuf| copies.iter().any(|copy| copy.store == **store);
    let missing_in: Vec<PathBuf> = stores.iter().filter(|store| !has(store)).cloned().collect();
    let mut how = Vec::new();
    if !missing_in.is_empty() {
        let stores: Vec<_> = missing_in.iter().map(|store| store.display().to_string()).collect();
        how.push(format!("it is not in {}", stores.join(", ")));
    }
    // One pair is enough to report: which copy is right is for the user to decide in any case.
    if let Some(other) = copies.iter().find(|copy| copy.content != copies[0].content) {
        let (one, two) = (copies[0].store.display(), other.store.display());
        // Details are read for titles that differ only. Lists of titles have one checksum of the
        // content, which tells whether two titles differ but not how.
        let what = difference(&detail(&copies[0], &title)?, &detail(other, &title)?);
        how.push(format!("the copies in {one} and {two} differ: {what}"));
    }
    Ok(Unlike { title, how: how.join("; "), missing_in, copies })
}

fn detail(copy: &Held, title: &str) -> Result<wire::TitleDetail, Failure> {
    let request = Request::Info { title: Some(title.to_owned()) };
    let Reply::Title(detail) = ask(&copy.store, &request)? else { mismatched() };
    Ok(detail)
}

/// The first difference between two titles, in words.
fn difference(one: &wire::TitleDetail, other: &wire::TitleDetail) -> String {
    let (a, b) = (&one.track_list, &other.track_list);
    if a.len() != b.len() {
        return format!("{} and {}", a.len(), count(b.len(), "track"));
    }
    let kinds = |track: &wire::ListedTrack| (track.kind.clone(), track.codec.clone());
    for (a, b) in a.iter().zip(b) {
        let number = a.number;
        // Kinds before sizes, because another codec explains another size.
        if kinds(a) != kinds(b) {
            return format!("track {number} is {} {} and {} {}", a.kind, a.codec, b.kind, b.codec);
        }
        if (a.bytes, a.ldus) != (b.bytes, b.ldus) {
            return format!(
                "track {number} has {} and {} in {} and {}",
                a.bytes,
                count(b.bytes, "byte"),
                a.ldus,
                count(b.ldus, "LDU")
            );
        }
    }
    "equal tracks and sizes, different checksums".to_owned()
}

fn page_of_several(report: &Report) -> String {
    let mut text = String::new();
    let repairs = &report.repairs;
    for Repaired { store, report } in repairs {
        let store = store.display();
        for finding in &report.repaired {
            text += &format!("{store}: {}", line("repaired", finding));
        }
        for title in &report.copied {
            text += &format!("{store}: copied: '{}' ({})\n", title.name, ByteCount(title.bytes));
        }
        for wire::NotCopied { title, text: why } in &report.not_copied {
            text += &format!("{store}: not copied: '{title}': {why}\n");
        }
        for finding in &report.left {
            text += &format!("{store}: {}", line("damage", finding));
        }
    }
    for Checked { store, report } in &report.stores {
        // Every line names its store, so that `grep` finds the lines of one.
        let repair = repairs.iter().find(|repair| repair.store == *store);
        for line in page(report, repair.map(|repair| &repair.report)).lines() {
            text += &format!("{}: {line}\n", store.display());
        }
    }
    for unlike in &report.unlike {
        text += &format!("unlike: '{}': {}\n", unlike.title, unlike.how);
    }
    let (alike, stores) = (report.alike, report.stores.len());
    // The others could not be opened, which is said elsewhere.
    if stores < 2 {
        return text;
    }
    let titles = if alike == 1 { "title is" } else { "titles are" };
    text + &format!("{alike} {titles} alike in {stores} stores{}\n", advice(&report.unlike))
}

/// What to do about titles that are not alike in all stores: copies that are missing are made, and
/// of copies that differ the user knows which is right.
fn advice(unlike: &[Unlike]) -> String {
    let differs = |it: &&Unlike| it.copies.iter().any(|copy| copy.content != it.copies[0].content);
    let differing = unlike.iter().filter(differs).count();
    let missing = unlike.len() - differing;
    let mut text = String::new();
    if differing > 0 {
        let verb = if differing == 1 { "differs" } else { "differ" };
        text +=
            &format!(", {differing} {verb}: export the correct copy, or ingest its source again");
    }
    if missing > 0 {
        let verb = if missing == 1 { "is" } else { "are" };
        let before = if differing > 0 { ";" } else { "," };
        text += &format!(
            "{before} {missing} {verb} not in all of them: `tenuto check --repair` copies what is \
             missing into each, `tenuto library --copies` as often as is wanted"
        );
    }
    text
}

fn line(what: &str, finding: &wire::Finding) -> String {
    match &finding.title {
        Some(title) => format!("{what}: {} of '{title}': {}\n", finding.kind, finding.text),
        None => format!("{what}: {}: {}\n", finding.kind, finding.text),
    }
}

/// A check of a store, perhaps after its repair.
fn page(report: &wire::CheckReport, repair: Option<&wire::RepairReport>) -> String {
    let mut page: String = report.healed.iter().map(|finding| line("healed", finding)).collect();
    page.extend(report.findings.iter().map(|finding| line("damage", finding)));
    let read = report.bytes_read + repair.map_or(0, |repair| repair.bytes_read);
    let (titles, bytes) = (report.titles, ByteCount(read));
    let verdict = match (repair.map_or(0, |repair| repair.left.len()), report.findings.len()) {
        (0, 0) => "nothing to repair".to_owned(),
        (0, found) => count(found, "piece") + " of damage",
        // A check without `--scrub` does not look at it again.
        (left, _) => count(left, "piece") + " of damage that no copy repairs",
    };
    page + &format!("{verdict} in {} ({bytes} read)\n", count(titles, "title"))
}
