//! A profile made from a trace of a program's reads and writes (`meter profile-from`).

use super::record::ExperimentReport;
use crate::error::MeterError;
use crate::observer::Observer;
use crate::trace::{self, TraceError};
use serde_json::json;
use std::path::Path;
use units::{ByteCount, Hinted};

/// The largest trace that is read into memory.
const MOST: u64 = 4 << 30;

/// The profile, as TOML, that makes the same demand as the trace in the file at `path`. With
/// `only`, files or devices whose name does not contain it are left out.
pub fn profile_from(
    path: &Path,
    name: &str,
    only: Option<&str>,
    observer: &dyn Observer,
) -> Result<ExperimentReport, MeterError> {
    let bytes = read(path)?;
    let trace = trace::read(&bytes, only).map_err(|error| {
        let failure = MeterError::of(&error.reason().about(path.display()));
        match error {
            TraceError::Nothing(_) if only.is_some() => {
                failure.hint("no file or device in the trace has the text of --only in its name")
            }
            _ => failure,
        }
    })?;
    let shape = trace::shape(&trace);
    let places = if shape.places_known {
        ""
    } else {
        ", which has no offsets: all operations count as sequential"
    };
    let source = format!("{} trace {}{places}", trace.format, path.display());
    let profile = trace::profile(name, &source, &shape);
    // A trace can have values that the meter would refuse in a profile.
    profile.check().map_err(|reason| reason.about(path.display()))?;
    if shape.took.is_none() {
        observer.note("the trace has no times, so the profile has no rate and runs at full speed");
    }
    let summary = json!({
        "format": trace.format,
        "operations": shape.operations,
        "seconds": shape.took.map(|took| took.as_secs_f64()),
        "places_known": shape.places_known,
        "profile": profile,
    });
    let text = toml::to_string(&profile).expect("a profile has text keys");
    Ok(ExperimentReport { summary, text, verdict: Ok(()) })
}

fn read(path: &Path) -> Result<Vec<u8>, MeterError> {
    let failed = MeterError::cannot("read", path);
    let about = std::fs::metadata(path).map_err(failed)?;
    if about.len() > MOST {
        let (name, size, most) = (path.display(), ByteCount(about.len()), ByteCount(MOST));
        let message = format!("{name} is {size}, more than the {most} that are read");
        return Err(MeterError::new(message)
            .hint("trace for a shorter time, or keep only a part of its lines"));
    }
    std::fs::read(path).map_err(failed)
}
