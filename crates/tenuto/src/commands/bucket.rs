//! `bucket`: titles of record in an S3-compatible bucket.

use super::stores::mismatched;
use crate::access::ask;
use crate::args::stores::{
    BucketArgs, BucketCheckArgs, BucketCommand, BucketPushArgs, BucketRmArgs, BucketStoreArgs,
};
use crate::failure::{Code, Failure};
use crate::out::{self, Bar, Table};
use bucket::{BucketError, BucketFinding, Removed, TitleBucket};
use serde::Serialize;
use server::control::{Reply, Request};
use server::wire;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;
use store::TitleSelection;
use tenuto_agent::stop_on_signals;
use units::ByteCount;
use units::show::{count, first_of};

pub(crate) fn run(command: &BucketCommand) -> Result<(), Failure> {
    match command {
        BucketCommand::Push(BucketPushArgs { transfer: args, verify }) => {
            transfer(args, BucketTransfer::Push { verify: *verify })
        }
        BucketCommand::Fill(args) => transfer(args, BucketTransfer::Fill),
        BucketCommand::Ls(args) => ls(args),
        BucketCommand::Rm(args) => rm(args),
        BucketCommand::Check(args) => check(args),
    }
}

fn titles_of(args: &BucketArgs) -> Result<TitleBucket, Failure> {
    Ok(TitleBucket::new(args.endpoint.access(&args.tls)?, args.bucket.clone()))
}

#[derive(Clone, Copy, PartialEq)]
enum BucketTransfer {
    Push { verify: bool },
    Fill,
}

/// What `bucket push` and `bucket fill` did.
#[derive(Serialize)]
struct TransferReport {
    titles: Vec<TransferredTitle>,
    /// Titles of the store that have another content in the bucket, and were left as they are; of a
    /// fill of all titles.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    different: Vec<String>,
}

#[derive(Serialize)]
struct TransferredTitle {
    title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pushed: Option<wire::PushedTitle>,
    #[serde(skip_serializing_if = "Option::is_none")]
    filled: Option<wire::ListedTitle>,
    error: Option<TransferError>,
}

#[derive(Serialize)]
struct TransferError {
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

/// Transfers title after title. One that fails is reported, and the others go on.
fn transfer(args: &BucketStoreArgs, direction: BucketTransfer) -> Result<(), Failure> {
    let BucketStoreArgs { bucket: about, store, titles } = args;
    let bucket = titles_of(about)?;
    let (titles, different) = match titles.as_slice() {
        [] => all(&bucket, store, direction)?,
        named => (named.to_vec(), Vec::new()),
    };
    let mut report = TransferReport { titles: Vec::new(), different };
    let mut first = Ok(());
    for title in titles {
        let mut done =
            TransferredTitle { title: title.clone(), pushed: None, filled: None, error: None };
        let result = one(&bucket, store, direction, &mut done);
        if !about.report.json {
            match &result {
                Ok(()) => out::print(&line(&done, direction)),
                Err(failure) => out::complain(&about_title(failure, &title)),
            }
        }
        if let Err(failure) = result {
            done.error = Some(TransferError {
                message: failure.sentence.clone(),
                hint: failure.hint.clone(),
            });
            let interrupted = failure == Failure::interrupted();
            if first.is_ok() {
                first = Err(failure.code);
            }
            if interrupted {
                report.titles.push(done);
                break;
            }
        }
        report.titles.push(done);
    }
    about.report.show(&report, || match (report.titles.is_empty(), &report.different[..]) {
        (true, []) => "nothing is to be done: all titles are there\n".to_owned(),
        (_, different) => {
            let line = |title: &String| {
                format!(
                    "'{title}' has another content in the bucket, and stays as it is; to get the \
                     bucket's, remove it first (tenuto rm)\n"
                )
            };
            different.iter().map(line).collect()
        }
    });
    first.map_err(Failure::reported)
}

fn about_title(failure: &Failure, title: &str) -> Failure {
    Failure { sentence: format!("'{title}': {}", failure.sentence), ..failure.clone() }
}

/// The titles of one side; those to fill are the ones that the store does not have. Then the titles
/// that both have, with another content.
fn all(
    bucket: &TitleBucket,
    store: &Path,
    direction: BucketTransfer,
) -> Result<(Vec<String>, Vec<String>), Failure> {
    let all = Request::Ls(TitleSelection::default());
    let Reply::Titles(stored) = ask(store, &all)? else { mismatched() };
    let stored: BTreeMap<String, String> =
        stored.titles.into_iter().map(|title| (title.name, title.content)).collect();
    if matches!(direction, BucketTransfer::Push { .. }) {
        return Ok((stored.into_keys().collect(), Vec::new()));
    }
    let (both, missing): (Vec<String>, Vec<String>) =
        bucket.titles()?.into_iter().partition(|title| stored.contains_key(title));
    let mut different = Vec::new();
    for title in both {
        match bucket.manifest(&title) {
            Ok(manifest) if stored[&title] != manifest.content => {
                different.push(title);
            }
            // A damaged manifest, and a title that has just been removed, are not looked for here.
            Ok(_) | Err(BucketError::Damaged { .. } | BucketError::NoTitle { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok((missing, different))
}

fn one(
    bucket: &TitleBucket,
    store: &Path,
    direction: BucketTransfer,
    done: &mut TransferredTitle,
) -> Result<(), Failure> {
    let (title, bucket) = (done.title.clone(), bucket.clone());
    match direction {
        BucketTransfer::Push { verify } => {
            let Reply::Pushed(pushed) = ask(store, &Request::Push { title, bucket, verify })?
            else {
                mismatched()
            };
            let verified = as_asked(&pushed, verify);
            done.pushed = Some(pushed);
            verified?;
        }
        BucketTransfer::Fill => {
            let Reply::Filled(filled) = ask(store, &Request::Fill { title, bucket })? else {
                mismatched()
            };
            done.filled = Some(filled);
        }
    }
    Ok(())
}

/// Refuses the reply of a server that does not know `--verify`, and has only looked for objects.
fn as_asked(pushed: &wire::PushedTitle, verify: bool) -> Result<(), Failure> {
    if !verify || pushed.verified == Some(true) {
        return Ok(());
    }
    let message = "it is in the bucket, but the objects that were there are not verified: the \
                   server of the store is an older version, which does not know --verify";
    let hint = "let it start the installed version (kill -USR2 PID; its viewers go on), and repeat \
                the command";
    Err(Failure::new(message).hint(hint))
}

fn line(done: &TransferredTitle, direction: BucketTransfer) -> String {
    let title = &done.title;
    if let Some(filled) = &done.filled {
        return format!("'{title}' is in the store: {}\n", ByteCount(filled.bytes));
    }
    let Some(pushed) = &done.pushed else { return String::new() };
    let bytes = ByteCount(pushed.bytes);
    match pushed.keeps_conditions {
        None => {
            let verifies = direction == BucketTransfer::Push { verify: true };
            let (written, parts) = (count(pushed.written, "object"), count(pushed.parts, "object"));
            match (pushed.written, verifies) {
                (0, false) => format!("'{title}' was in the bucket\n"),
                (0, true) => format!("'{title}' was in the bucket: {parts} verified\n"),
                (_, false) => format!(
                    "'{title}' was in the bucket with {written} missing or cut off, written anew\n"
                ),
                (_, true) => format!(
                    "'{title}' was in the bucket: {parts} verified, {written} missing or damaged, \
                     written anew\n"
                ),
            }
        }
        Some(true) => {
            let (written, parts) = (pushed.written, count(pushed.parts, "object"));
            format!("'{title}' is in the bucket: {bytes}, {written} of {parts} written\n")
        }
        Some(false) => format!(
            "'{title}' is in the bucket: {bytes}\nnote: this bucket overwrites objects also where \
             it is asked not to (If-None-Match): push each title from one place only\n"
        ),
    }
}

/// A title of a bucket as `bucket ls` lists it.
#[derive(Serialize)]
struct BucketTitle {
    title: String,
    bytes: u64,
    seconds: f64,
    tracks: usize,
    parts: usize,
    created: u64,
    content: String,
}

#[derive(Serialize)]
struct BucketList {
    titles: Vec<BucketTitle>,
    /// Titles whose manifests cannot be read.
    damaged: Vec<BucketDamage>,
}

fn ls(args: &BucketArgs) -> Result<(), Failure> {
    let bucket = titles_of(args)?;
    let (mut titles, mut damaged) = (Vec::new(), Vec::new());
    for title in bucket.titles()? {
        let manifest = match bucket.manifest(&title) {
            Ok(manifest) => manifest,
            // Removed since it was listed.
            Err(BucketError::NoTitle { .. }) => continue,
            Err(BucketError::Damaged { what, place, .. }) => {
                damaged.push(BucketFinding { title, what, place }.into());
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        titles.push(BucketTitle {
            title,
            bytes: manifest.bytes,
            seconds: Duration::from_nanos(manifest.duration_ns).as_secs_f64(),
            tracks: manifest.tracks.len(),
            parts: manifest.parts().count(),
            created: manifest.created,
            content: manifest.content,
        });
    }
    let list = BucketList { titles, damaged };
    args.report.show(&list, || {
        if list.titles.is_empty() && list.damaged.is_empty() {
            return "no title\n".to_owned();
        }
        let mut table = Table::new(&["title", ">size", ">length", ">tracks", "sealed"]);
        for title in &list.titles {
            table.row(vec![
                title.title.clone(),
                ByteCount(title.bytes).to_string(),
                match title.seconds {
                    0.0 => "-".to_owned(),
                    seconds => units::show::length(seconds),
                },
                title.tracks.to_string(),
                units::show::moment(title.created),
            ]);
        }
        let titles = if list.titles.is_empty() { String::new() } else { table.show() };
        titles + &damage_page(&list.damaged)
    });
    if list.damaged.is_empty() { Ok(()) } else { Err(Failure::reported(Code::Damage)) }
}

/// The report of `bucket rm`.
#[derive(Serialize)]
struct BucketRemoval<'a> {
    title: &'a str,
    /// What was wrong with its manifest.
    damage: Option<String>,
    removed: u64,
    kept: u64,
    kept_bytes: u64,
    /// Other titles, whose manifests cannot be read.
    unreadable: Vec<String>,
    /// Keys of foreign objects that name some of the objects that were kept.
    foreign: Vec<String>,
}

fn rm(args: &BucketRmArgs) -> Result<(), Failure> {
    let BucketRmArgs { bucket, title } = args;
    let removed = titles_of(bucket)?.remove(title)?;
    let Removed { damage, parts, kept_parts, kept_bytes, unreadable, foreign } = removed;
    let (removed, kept) = (parts, kept_parts);
    let report = BucketRemoval { title, damage, removed, kept, kept_bytes, unreadable, foreign };
    bucket.report.show(&report, || {
        let mut page = match &report.damage {
            None => format!("'{title}' is removed\n"),
            Some(damage) => format!("'{title}' is removed; it was damaged: {damage}\n"),
        };
        if report.kept > 0 && !report.foreign.is_empty() {
            let (objects, bytes) = (count(report.kept, "object"), ByteCount(report.kept_bytes));
            page += &format!(
                "{objects}, {bytes}, stay because objects name them that are no titles: {}\n",
                keys(&report.foreign)
            );
        } else if report.kept > 0 {
            let (objects, bytes) = (count(report.kept, "object"), ByteCount(report.kept_bytes));
            let others = report.unreadable.iter().map(|title| format!("'{title}'"));
            let others = others.collect::<Vec<_>>().join(", ");
            page += &format!(
                "{objects}, {bytes}, may be of titles whose manifests are damaged, and stay: \
                 {others}\nremove those titles, too (`tenuto bucket rm`): with the last one go all \
                 objects that no title has\n"
            );
        }
        page
    });
    Ok(())
}

/// The report of `bucket check`.
#[derive(Serialize)]
struct BucketCheckReport {
    clean: bool,
    titles: u64,
    parts: u64,
    bytes: u64,
    unused_parts: u64,
    unused_bytes: u64,
    /// Keys of objects that are neither titles nor parts of titles.
    foreign: Vec<String>,
    findings: Vec<BucketDamage>,
}

#[derive(Serialize)]
struct BucketDamage {
    title: String,
    text: String,
    hint: String,
}

impl From<BucketFinding> for BucketDamage {
    fn from(finding: BucketFinding) -> Self {
        let BucketFinding { title, what, place } = finding;
        Self { title, text: what, hint: place.repair().to_owned() }
    }
}

/// A line for each damage, and what repairs it.
fn damage_page(all: &[BucketDamage]) -> String {
    let lines = all.iter().map(|damage| format!("'{}': {}\n", damage.title, damage.text));
    let hints: BTreeSet<&str> = all.iter().map(|damage| damage.hint.as_str()).collect();
    lines.chain(hints.into_iter().map(|hint| format!("to repair: {hint}\n"))).collect()
}

/// The first keys, and the number of the others.
fn keys(all: &[String]) -> String {
    let shown = all.iter().map(|key| key.escape_debug());
    first_of(shown, KEYS, all.len() as u64, " (--json)")
}

/// Keys that are named of foreign objects.
const KEYS: usize = 10;

fn check(args: &BucketCheckArgs) -> Result<(), Failure> {
    let bucket = titles_of(&args.bucket)?;
    let bar = Bar::new();
    let cancel = stop_on_signals()?;
    let found =
        bucket.check(args.scrub, &mut |done| bar.bytes(done.stage, done.done, done.total), &cancel);
    let found = found?;
    let findings = found.findings.into_iter();
    let report = BucketCheckReport {
        clean: findings.len() == 0,
        titles: found.titles,
        parts: found.parts,
        bytes: found.bytes,
        unused_parts: found.unused_parts,
        unused_bytes: found.unused_bytes,
        foreign: found.foreign,
        findings: findings.map(BucketDamage::from).collect(),
    };
    args.bucket.report.show(&report, || {
        let mut page = damage_page(&report.findings);
        let (titles, parts) = (count(report.titles, "title"), count(report.parts, "object"));
        page += &format!("{titles} in {parts}, {}", ByteCount(report.bytes));
        page += if args.scrub { ", all read\n" } else { ", not read (--scrub reads them)\n" };
        if report.unused_parts > 0 {
            let (parts, bytes) =
                (count(report.unused_parts, "object"), ByteCount(report.unused_bytes));
            page += &format!("{parts} of no title, {bytes}\n");
        }
        if !report.foreign.is_empty() {
            let foreign = &report.foreign;
            page += &format!(
                "{} below titles/ and parts/ that Tenuto leaves alone, because no title can have \
                 such a name: {}\n",
                count(foreign.len() as u64, "object"),
                keys(foreign)
            );
        }
        page
    });
    if report.clean { Ok(()) } else { Err(Failure::reported(Code::Damage)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_ignores_verify_is_found_out() {
        // What an older server answers, and a present one without and with the option.
        let rows = [
            ("", false, true),
            ("", true, false),
            (r#","verified":false"#, false, true),
            (r#","verified":true"#, true, true),
        ];
        for (verified, asked, is_good) in rows {
            let reply = format!(r#"{{"title":"a","bytes":1,"parts":2,"written":0{verified}}}"#);
            let pushed: wire::PushedTitle = serde_json::from_str(&reply).unwrap();
            assert_eq!(as_asked(&pushed, asked).is_ok(), is_good, "{reply}");
        }
    }
}
