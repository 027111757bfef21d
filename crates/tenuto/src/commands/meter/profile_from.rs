//! `meter profile-from`: a trace's profile, as TOML.

use crate::args::meter::ProfileFromArgs;
use crate::failure::Failure;
use crate::out;
use meter::trace::{self, TraceError, profile, shape, text};
use serde_json::json;
use std::path::Path;
use units::{ByteCount, Hinted};

/// The largest trace that is read into memory.
const MOST: u64 = 4 << 30;

pub(super) fn run(args: &ProfileFromArgs) -> Result<(), Failure> {
    let (path, only) = (&args.trace, args.only.as_deref());
    let bytes = read(path)?;
    let trace = trace::read(&bytes, only).map_err(|error| {
        let failure = Failure::from(error.reason().about(path.display()));
        match error {
            TraceError::Nothing(_) if only.is_some() => {
                failure.hint("no file or device in the trace has the text of --only in its name")
            }
            _ => failure,
        }
    })?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = args.name.clone().unwrap_or_else(|| stem.into_owned());
    let shape = shape(&trace);
    let places = if shape.places_known {
        ""
    } else {
        ", which has no offsets: all operations count as sequential"
    };
    let source = format!("{} trace {}{places}", trace.format, path.display());
    let profile = profile(&name, &source, &shape);
    // A trace can have values that the meter would refuse in a profile.
    profile.check().map_err(|error| Failure::from(error.reason().about(path.display())))?;
    if shape.took.is_none() {
        out::note("the trace has no times, so the profile has no rate and runs at full speed");
    }
    let object = json!({
        "format": trace.format,
        "operations": shape.operations,
        "seconds": shape.took.map(|took| took.as_secs_f64()),
        "places_known": shape.places_known,
        "profile": profile,
    });
    args.report.show(&object, || text(&profile));
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |error| Failure::new(format!("cannot read {}: {error}", path.display()));
    let about = std::fs::metadata(path).map_err(failed)?;
    if about.len() > MOST {
        return Err(Failure::new(format!(
            "{} is {}, more than the {} that are read",
            path.display(),
            ByteCount(about.len()),
            ByteCount(MOST)
        ))
        .hint("trace for a shorter time, or keep only a part of its lines"));
    }
    std::fs::read(path).map_err(failed)
}
