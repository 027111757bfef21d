//! Access profiles: what a stream requires of its storage, named after the format that is played.
//!
//! A profile is a few facts in a TOML file: bytes of a frame, frames a second, the share of reads,
//! the pattern, and where the figures come from. Those that come along are in `builtin.toml`;
//! people name files of their own. [`Profile::disagreements`] computes the figures again from what
//! they are said to follow from.
//!
//! It reads no file and runs nothing: [`streams`](crate::streams) does.

mod drawn;
mod profile;
mod verify;

pub use drawn::{Drawn, DrawnOperation, Draws, MILLION, OperationMix};
pub use profile::{Definition, Fps, Pattern, Profile, ProfileError, Rolled, Status, Transfers};

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProfileFile {
    profile: Vec<Profile>,
}

/// The built-in profiles, formats of the lowest rate first.
pub fn builtin() -> Vec<Profile> {
    let table: ProfileFile = toml::from_str(BUILTIN).expect("a test reads it");
    table.profile
}

/// The built-in profile of this name.
pub fn named(name: &str) -> Option<Profile> {
    builtin().into_iter().find(|profile| profile.name == name)
}

/// Its file, to change and use.
pub fn text(name: &str) -> Option<&'static str> {
    let line = format!("\nname = \"{name}\"\n");
    let mut parts = BUILTIN.split("[[profile]]").skip(1);
    parts.find(|part| part.starts_with(&line)).map(str::trim_start)
}

const BUILTIN: &str = include_str!("builtin.toml");

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn those_that_come_along_are_sound_and_agree_with_their_definitions() {
        let all = builtin();
        assert!(all.len() >= 30, "{}", all.len());
        let names: BTreeSet<&str> = all.iter().map(|profile| profile.name.as_str()).collect();
        assert_eq!(names.len(), all.len(), "names are different");
        for profile in &all {
            profile.check().unwrap_or_else(|error| panic!("{}: {error}", profile.name));
            assert_eq!(profile.disagreements(), Vec::<String>::new(), "{}", profile.name);
            assert!(!profile.source.is_empty() && !profile.title.is_empty(), "{}", profile.name);
        }
    }

    #[test]
    fn each_has_a_file_that_reads_as_itself() {
        for profile in builtin() {
            let text = text(&profile.name).expect("it came from there");
            assert_eq!(text.parse::<Profile>().unwrap(), profile, "{text}");
        }
        assert_eq!(text("title"), None);
    }
}
