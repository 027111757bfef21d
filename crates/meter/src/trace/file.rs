//! Writes a drawn profile as the TOML that `Profile` parses.

use crate::profiles::{OperationMix, Profile};
use std::fmt::Write as _;

/// The file of a profile that was made by [`profile`](super::profile).
pub(crate) fn text(profile: &Profile) -> String {
    // JSON's strings are TOML's basic strings.
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let mut text = format!(
        "name = {}\ntitle = {}\nbytes = {}\n",
        quoted(&profile.name),
        quoted(&profile.title),
        profile.bytes
    );
    let mut line = |line: std::fmt::Arguments<'_>| {
        let _ = writeln!(text, "{line}");
    };
    if let Some(fps) = profile.fps {
        line(format_args!("fps = \"{fps}\""));
    }
    line(format_args!("read_percent = {}", profile.read_percent));
    line(format_args!("random_percent = {}", profile.random_percent));
    line(format_args!("pattern = \"{}\"", profile.pattern.word()));
    line(format_args!("definition = {{ kind = \"table\" }}"));
    line(format_args!("source = {}", quoted(&profile.source)));
    line(format_args!("status = \"{}\"", profile.status.word()));
    let Some(drawn) = &profile.drawn else { return text };
    line(format_args!("\n[drawn]"));
    if let Some(rate) = drawn.operations_per_1000_s {
        line(format_args!("operations_per_1000_s = {rate}"));
    }
    line(format_args!("reads_per_million = {}", drawn.reads_per_million));
    for (name, mix) in [("reads", &drawn.reads), ("writes", &drawn.writes)] {
        let Some(OperationMix { sequential_per_million, sizes }) = mix else { continue };
        line(format_args!("\n[drawn.{name}]"));
        line(format_args!("sequential_per_million = {sequential_per_million}"));
        line(format_args!("sizes = ["));
        for (bytes, of) in sizes {
            line(format_args!("  [{bytes}, {of}],"));
        }
        line(format_args!("]"));
    }
    text
}
