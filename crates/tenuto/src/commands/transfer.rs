//! Media in, media out: `ingest`, `record` and `export`.

use super::stores::mismatched;
use crate::access::{absolute, ask, ask_and_hear};
use crate::args::shared::StoresArgs;
use crate::args::stores::{ExportArgs, IngestArgs, IngestKind, RecordArgs};
use crate::failure::{Code, Failure};
use crate::out;
use serde::Serialize;
use server::control::{RecordingSeries, Reply, Request};
use server::wire;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Duration;
use store::{RecordingInput, Store, StoreError};
use units::show::count;
use units::{BitRate, ByteCount, show};

pub(crate) fn ingest(args: &IngestArgs) -> Result<(), Failure> {
    let IngestArgs { stores, files: given, title, renditions, report, .. } = args;
    let renditions = *renditions;
    if title.is_some() && given.len() > 1 && !renditions {
        return Err(Failure::usage("--title names one title, but there are several files")
            .hint("ingest them one by one, or with --renditions as one title"));
    }
    if renditions && given.len() < 2 {
        return Err(Failure::usage("--renditions needs two or more files")
            .hint("name the files of the other renditions, too"));
    }
    if !args.subtitles.is_empty() && given.len() > 1 && !renditions {
        return Err(Failure::usage("--subtitles is for one title, but there are several files")
            .hint("ingest them one by one"));
    }
    refuse_same_store(stores)?;
    // A server that executes the request has a working directory of its own.
    let files: Vec<PathBuf> = given.iter().map(|file| absolute(file)).collect::<Result<_, _>>()?;
    let mut subtitles = args.subtitles.clone();
    for subtitles in &mut subtitles {
        subtitles.file = absolute(&subtitles.file)?;
    }
    let request = |files: Vec<PathBuf>| Request::Ingest {
        files,
        as_file: args.kind == IngestKind::File,
        title: title.clone(),
        allow_damaged: args.allow_damaged,
        renditions,
        program: args.program,
        subtitles: subtitles.clone(),
        thumbnails: args.thumbnails,
        fps: args.fps,
    };
    let Reply::Ingest(first) = ask(&stores.store, &request(files.clone()))? else { mismatched() };
    if !report.json {
        first.files.iter().for_each(tell);
    }
    let is_taken =
        |file: &&PathBuf| first.files.iter().any(|f| f.title.is_some() && f.file == **file);
    let taken: Vec<PathBuf> = match renditions {
        // The report has the title at one file, but a copy is made from all of them.
        true if first.files.iter().any(|file| file.title.is_some()) => files,
        true => Vec::new(),
        false => files.iter().filter(is_taken).cloned().collect(),
    };
    let mut copies = Vec::new();
    // One after another, because a copy is compared with the title in the first store.
    for store in &stores.replica {
        let files = if taken.is_empty() {
            Vec::new()
        } else {
            copy_into(store, &request(taken.clone()), &first)
        };
        if !report.json {
            files.iter().for_each(|file| tell_copy(store, file));
        }
        copies.push(Copies { store: store.clone(), files });
    }
    let copied = copies.iter().flat_map(|copies| &copies.files);
    let failed = first.files.iter().chain(copied).any(|file| file.error.is_some());
    if report.json {
        out::print_json(&Ingested { files: &first.files, copies: &copies });
    }
    // Without --json every file was reported above.
    if failed { Err(Failure::reported(Code::Failed)) } else { Ok(()) }
}

pub(crate) fn record(args: &RecordArgs) -> Result<(), Failure> {
    // A server that executes the request has a working directory of its own.
    let input = match &args.input {
        RecordingInput::File(path) => RecordingInput::File(absolute(path)?),
        other => other.clone(),
    };
    let request = Request::Record {
        input,
        title: args.title.clone(),
        seconds: args.duration.map(|duration| duration.as_secs_f64()),
        program: args.program,
        silence: args.silence.as_secs_f64(),
        rate: args.rate.map(|rate| rate.0),
        series: series(args),
    };
    let json = args.report.json;
    let heard = RefCell::new(heard_of(args));
    let hear = |event: &wire::RecordingEvent| {
        add_heard(&mut heard.borrow_mut(), event);
        if json { out::event(event) } else { tell_event(event) }
    };
    let report = match ask_and_hear(&args.store, &request, &hear) {
        Ok(Reply::Recorded(report)) => report,
        Ok(Reply::RecordedSeries(report)) => return show_series(&report, json),
        Ok(_) => mismatched(),
        Err(failure) if json && heard.borrow().parts > 0 => {
            let code = failure.code;
            let report = wire::SeriesReport { error: Some(lost(failure)), ..heard.into_inner() };
            out::print_json(&report);
            return Err(Failure::reported(code));
        }
        Err(failure) => return Err(failure),
    };
    if json {
        out::print_json(&report);
        let failed = report.error.is_some();
        return if failed { Err(Failure::reported(Code::Failed)) } else { Ok(()) };
    }
    out::print(&format!("{}\n", line(&report.title)));
    note_who_ended(report.ended_by.as_deref());
    // What was known at the beginning was told then.
    let told = heard.into_inner().left_out;
    let new = report.left_out.iter().filter(|what| !told.contains(what));
    new.for_each(|what| out::note(&format!("left out: {what}")));
    report.notes.iter().for_each(|what| out::note(what));
    report.error.as_ref().map_or(Ok(()), |error| Err(Failure::from(error)))
}

/// The report of a series of which nothing was heard, for one whose server reports nothing.
fn heard_of(args: &RecordArgs) -> wire::SeriesReport {
    wire::SeriesReport {
        folder: args.title.clone(),
        parts: 0,
        removed: 0,
        bytes: 0,
        duration: 0.0,
        end: "failed".to_owned(),
        ended_by: None,
        left_out: Vec::new(),
        notes: Vec::new(),
        error: None,
    }
}

fn add_heard(report: &mut wire::SeriesReport, event: &wire::RecordingEvent) {
    match event {
        wire::RecordingEvent::Part { title } => {
            report.parts += 1;
            report.bytes += title.bytes;
            report.duration += title.duration;
        }
        wire::RecordingEvent::PartRemoved { .. } => report.removed += 1,
        wire::RecordingEvent::StreamsLeftOut { streams } => report.left_out.clone_from(streams),
        wire::RecordingEvent::KeptShort { .. } | wire::RecordingEvent::InputLost { .. } => {}
    }
}

/// A series of which parts were heard fails without a report only where its server has gone.
fn lost(failure: Failure) -> wire::Failure {
    let hint = "the part that was being recorded becomes a title when the store is opened next; \
                start the recording again when its server runs";
    wire::Failure::new("server-lost", failure.sentence, hint)
}

/// How parts are recorded; `None` where one title is.
fn series(args: &RecordArgs) -> Option<RecordingSeries> {
    let RecordArgs { keep, part, reconnect, .. } = args;
    let is_one = keep.is_none() && part.is_none() && !reconnect;
    (!is_one).then(|| RecordingSeries {
        keep: keep.map(|keep| keep.as_secs_f64()),
        part: part.unwrap_or(PART).as_secs_f64(),
        reconnect: *reconnect,
    })
}

/// The play-out time of a part, if nothing else is asked for.
const PART: Duration = Duration::from_secs(600);

fn tell_event(event: &wire::RecordingEvent) {
    match event {
        wire::RecordingEvent::Part { title } => out::print(&format!("{}\n", line(title))),
        // What was asked for.
        wire::RecordingEvent::PartRemoved { why, .. } if why == "expired" => {}
        wire::RecordingEvent::PartRemoved { title, .. } => {
            out::note(&format!("'{title}' is removed: the store is full"));
        }
        wire::RecordingEvent::KeptShort { kept, wanted } => {
            let [kept, wanted] = [kept, wanted].map(|seconds| show::length(*seconds));
            out::note(&format!(
                "the store has no room for {wanted}: only the last {kept} are kept"
            ));
        }
        wire::RecordingEvent::StreamsLeftOut { streams } => {
            streams.iter().for_each(|what| out::note(&format!("left out: {what}")));
        }
        wire::RecordingEvent::InputLost { message, hint, wait } => {
            let hint = hint.as_ref().map_or(String::new(), |hint| format!("; {hint}"));
            let when = if *wait > 0.0 { format!("in {wait} s") } else { "at once".to_owned() };
            out::note(&format!("{message}{hint}; it is opened again {when}"));
        }
    }
}

fn show_series(report: &wire::SeriesReport, json: bool) -> Result<(), Failure> {
    if json {
        out::print_json(report);
        let failed = report.error.is_some();
        return if failed { Err(Failure::reported(Code::Failed)) } else { Ok(()) };
    }
    let (parts, length) = (count(report.parts, "part"), show::length(report.duration));
    let (folder, size) = (&report.folder, ByteCount(report.bytes));
    out::print(&format!("'{folder}' has {parts} more: {length}, {size}\n"));
    note_who_ended(report.ended_by.as_deref());
    report.left_out.iter().for_each(|what| out::note(&format!("left out: {what}")));
    report.notes.iter().for_each(|what| out::note(what));
    report.error.as_ref().map_or(Ok(()), |error| Err(Failure::from(error)))
}

/// Tells who has ended a recording, if it was not its user.
fn note_who_ended(who: Option<&str>) {
    if let Some(who) = who {
        out::note(&format!("an {who} of the server has ended the recording over its admin API"));
    }
}

/// The report of `ingest`.
#[derive(Serialize)]
struct Ingested<'a> {
    files: &'a [wire::IngestedFile],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    copies: &'a [Copies],
}

/// The copies in one more store.
#[derive(Serialize)]
struct Copies {
    store: PathBuf,
    files: Vec<wire::IngestedFile>,
}

/// Refuses a replica in a store that is named before, under this or another path.
fn refuse_same_store(stores: &StoresArgs) -> Result<(), Failure> {
    let mut known: Vec<(&PathBuf, _)> = Vec::new();
    for path in std::iter::once(&stores.store).chain(&stores.replica) {
        // What is wrong with a store is told when it is used.
        let Ok(found) = Store::peek(path) else { continue };
        if let Some((before, _)) = known.iter().find(|(_, uuid)| *uuid == found.uuid) {
            let (path, before) = (path.display(), before.display());
            return Err(Failure::usage(format!("{path} is the same store as {before}"))
                .hint("a replica is a copy in another store: name each store once"));
        }
        known.push((path, found.uuid));
    }
    Ok(())
}

/// Ingests the same files into another store. A copy that differs from the first is removed.
fn copy_into(
    store: &Path,
    request: &Request,
    first: &wire::IngestReport,
) -> Vec<wire::IngestedFile> {
    let titles = first.files.iter().filter(|file| file.title.is_some());
    let failed = |file: &wire::IngestedFile, code: &str, failure: Failure| wire::IngestedFile {
        title: None,
        error: Some(wire::Failure {
            code: code.to_owned(),
            message: failure.sentence,
            hint: failure.hint,
        }),
        ..file.clone()
    };
    let mut report = match ask(store, request) {
        Ok(Reply::Ingest(report)) => report,
        Ok(_) => mismatched(),
        Err(failure) => {
            let all = titles.map(|file| failed(file, "store", failure.clone()));
            return all.collect();
        }
    };
    for (copy, original) in report.files.iter_mut().zip(titles) {
        let (Some(title), Some(wanted)) = (&copy.title, &original.title) else { continue };
        if title.content != wanted.content {
            let name = &title.name;
            let why = format!("the copy of '{name}' differs: the file changed between the two");
            // If that fails, too, the title stays and is visible as a title of its own.
            let _ = ask(store, &Request::Rm { title: name.clone(), copy_only: true });
            *copy = failed(copy, "differs", Failure::new(why).hint("ingest it again"));
        }
    }
    report.files
}

fn tell_copy(store: &Path, file: &wire::IngestedFile) {
    let store = store.display();
    if let Some(title) = &file.title {
        out::print(&format!("'{}' is also in {store}\n", title.name));
    }
    if let Some(error) = &file.error {
        let repair = error.hint.as_ref().map_or(String::new(), |hint| format!("{hint}, and "));
        let hint = format!("{repair}ingest it here again; the title stays in the other stores");
        out::complain(&Failure::new(format!("no copy in {store}: {}", error.message)).hint(hint));
    }
}

fn tell(file: &wire::IngestedFile) {
    let name = file.file.file_name().unwrap_or_default().to_string_lossy();
    if let Some(title) = &file.title {
        out::print(&format!("{}\n", line(title)));
    }
    for what in &file.left_out {
        out::note(&format!("{name}: left out: {what}"));
    }
    for what in &file.notes {
        out::note(&format!("{name}: {what}"));
    }
    if let Some(error) = &file.error {
        out::complain(&Failure::from(error));
    }
}

fn line(title: &wire::ListedTitle) -> String {
    let (name, size) = (&title.name, ByteCount(title.bytes));
    // A file has no play-out time, and therefore no rate.
    if title.kind == "file" {
        return format!("'{name}' is in the store: {size}");
    }
    let (length, rate) = (show::length(title.duration), BitRate(title.bit_rate));
    let tracks = count(title.tracks, "track");
    format!("'{name}' is in the store: {length}, {tracks}, {rate}, {size}")
}

pub(crate) fn export(args: &ExportArgs) -> Result<(), Failure> {
    let out = absolute(&args.out)?;
    args.overwrite.check(&out)?;
    refuse_what_is_no_export(&out)?;
    let exists = out.symlink_metadata().is_ok();
    // The old file stays until the new one is complete.
    // The export refuses an existing file, so the new one needs another name in the same directory.
    let target = if exists { beside(&out) } else { out.clone() };
    let request = Request::Export { title: args.title.clone(), out: target.clone() };
    let asked = ask(&args.store, &request).map_err(|failure| match failure {
        Failure { code: Code::Damage, hint: None, .. } => failure.hint(
            "repair it from a store with a copy: `tenuto check STORE --replica OTHER --repair`; \
             without one, copy the parts that are whole from a mount",
        ),
        failure => failure,
    });
    let Reply::Export(mut report) = asked? else { mismatched() };
    if exists {
        for text in &mut report.texts {
            let name = text.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let name = name.strip_prefix(&mark()).unwrap_or(&name);
            replace(text, &out.with_file_name(name))?;
            *text = out.with_file_name(name);
        }
        replace(&target, &out)?;
        report.out = out;
    }
    if args.report.json {
        out::print_json(&report);
        return Ok(());
    }
    for what in &report.notes {
        out::note(what);
    }
    let (size, path) = (ByteCount(report.bytes), report.out.display());
    out::print(&format!("'{}' is in {path}: {size}\n", report.title));
    for text in &report.texts {
        out::print(&format!("its subtitles are in {}\n", text.display()));
    }
    Ok(())
}

/// Refuses to replace what no export made, whatever is allowed: devices, pipes, folders, and stores
/// with all their titles, also those that a server has open.
fn refuse_what_is_no_export(out: &Path) -> Result<(), Failure> {
    let Ok(found) = out.symlink_metadata() else { return Ok(()) };
    let path = out.display();
    if !found.is_file() && !found.is_symlink() {
        return Err(Failure::new(format!("{path} is not a regular file")).hint("name another"));
    }
    match Store::peek(out) {
        Err(StoreError::NotAStore { .. } | StoreError::File { .. } | StoreError::Device(_)) => {
            Ok(())
        }
        _ => Err(Failure::new(format!("{path} is a Tenuto store, with all its titles"))
            .hint("name another file; a store that is not needed any more is removed with rm")),
    }
}

fn replace(new: &Path, old: &Path) -> Result<(), Failure> {
    std::fs::rename(new, old)
        .map_err(|error| Failure::new(format!("cannot replace {}: {error}", old.display())))
}

/// An unused name next to `out`, with its extension, which decides on MP4 or MOV.
fn beside(out: &Path) -> PathBuf {
    let name = out.file_name().unwrap_or_default().to_string_lossy();
    out.with_file_name(format!("{}{name}", mark()))
}

/// The beginning of the names of files that become others.
fn mark() -> String {
    format!(".{}.", std::process::id())
}
