//! Files in, files out: `ingest` and `export`.

use super::stores::strange;
use crate::access::{absolute, ask};
use crate::cli::Args;
use crate::failure::{Code, Failure};
use crate::out;
use crate::show;
use server::control::{Reply, Request};
use server::wire;
use std::path::{Path, PathBuf};
use units::{BitRate, ByteCount};

pub(crate) fn ingest(args: &Args<'_>) -> Result<(), Failure> {
    let given: Vec<PathBuf> = args.all("FILE");
    let title: Option<String> = args.maybe("title");
    let renditions = args.has("renditions");
    if title.is_some() && given.len() > 1 && !renditions {
        return Err(Failure::usage("--title names one title, but there are several files")
            .hint("take them in one by one, or with --renditions as one title"));
    }
    if renditions && given.len() < 2 {
        return Err(Failure::usage("--renditions needs a file for each, at least two")
            .hint("name the film in its other sizes, too"));
    }
    let request = Request::Ingest {
        files: given.iter().map(|file| absolute(file)).collect::<Result<_, _>>()?,
        as_file: args.text("as") == "file",
        title,
        allow_damaged: args.has("allow-damaged"),
        renditions,
    };
    let Reply::Ingest(report) = ask(&args.path("STORE"), &request)? else { strange() };
    if args.has("json") {
        out::print_json(&report);
    } else {
        report.files.iter().for_each(tell);
    }
    match report.files.iter().find_map(|file| file.error.as_ref()) {
        None => Ok(()),
        // In words they have been told above, file by file.
        Some(_) => Err(Failure::reported(Code::Failed)),
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

fn line(title: &wire::Title) -> String {
    let (name, size) = (&title.name, ByteCount(title.bytes));
    if title.kind == "file" {
        return format!("'{name}' is in the store: {size}");
    }
    let (length, rate) = (show::length(title.duration), BitRate(title.bit_rate));
    let plural = if title.tracks == 1 { "" } else { "s" };
    format!("'{name}' is in the store: {length}, {} track{plural}, {rate}, {size}", title.tracks)
}

pub(crate) fn export(args: &Args<'_>) -> Result<(), Failure> {
    let out = absolute(&args.path("OUT"))?;
    let title = args.text("TITLE");
    let exists = out.symlink_metadata().is_ok();
    if exists && !args.has("destroy") {
        let sentence = format!("{} would be overwritten", out.display());
        return Err(Failure::new(sentence).hint("if that is meant, allow it with --destroy"));
    }
    // The old file stays until the new one is complete.
    let target = if exists { beside(&out) } else { out.clone() };
    let request = Request::Export { title, out: target.clone() };
    let Reply::Export(mut report) = ask(&args.path("STORE"), &request)? else { strange() };
    if exists {
        std::fs::rename(&target, &out)
            .map_err(|error| Failure::new(format!("cannot replace {}: {error}", out.display())))?;
        report.out = out;
    }
    if args.has("json") {
        out::print_json(&report);
        return Ok(());
    }
    for what in &report.notes {
        out::note(what);
    }
    let (size, path) = (ByteCount(report.bytes), report.out.display());
    out::print(&format!("'{}' is in {path}: {size}\n", report.title));
    Ok(())
}

/// A name next to `out` that nobody has: it keeps the extension, which decides on MP4 or MOV.
fn beside(out: &Path) -> PathBuf {
    let name = out.file_name().unwrap_or_default().to_string_lossy();
    out.with_file_name(format!(".{}.{name}", std::process::id()))
}
