//! Access profiles: the demand of a stream on its storage, named after the format that is played.
//!
//! A profile is a few facts in a TOML file: bytes of a frame, frames per second, the share of
//! reads, the pattern, and the source of the figures. The built-in ones are in `builtin.toml`;
//! users name their own files. [`Profile::disagreements`] computes the figures again from their
//! definition.
//!
//! The module reads no file and runs nothing: [`streams`](crate::streams) does.

mod drawn;
mod profile;
mod verify;

pub use drawn::{Drawn, DrawnOperation, Draws, MILLION, OperationMix};
pub use profile::{Definition, Fps, Pattern, Profile, Rolled, Status, Transfers};

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProfileFile {
    profile: Vec<Profile>,
}

/// The built-in profiles, in order of their rates.
pub fn builtin() -> Vec<Profile> {
    let table: ProfileFile = toml::from_str(BUILTIN).expect("the built-in profiles");
    table.profile
}

/// The built-in profile with this name.
pub fn named(name: &str) -> Option<Profile> {
    builtin().into_iter().find(|profile| profile.name == name)
}

/// The TOML text of a built-in profile, to be changed and used.
pub fn text(name: &str) -> Option<&'static str> {
    part_named(name, BUILTIN.split("[[profile]]"))
}

/// The part of a TOML file that begins with this name.
pub(crate) fn part_named(
    name: &str,
    parts: std::str::Split<'static, &str>,
) -> Option<&'static str> {
    let line = format!("\nname = \"{name}\"\n");
    parts.skip(1).find(|part| part.starts_with(&line)).map(str::trim_start)
}

/// What is wrong with a TOML file, after the number of the line.
pub(crate) fn with_line(error: &toml::de::Error, text: &str) -> String {
    let at = error.span().map(|span| text[..span.start].matches('\n').count() + 1);
    let line = at.map(|line| format!("line {line}: ")).unwrap_or_default();
    format!("{line}{}", error.message())
}

const BUILTIN: &str = include_str!("builtin.toml");

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn built_in_profiles_are_valid_and_agree_with_their_definitions() {
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
    fn each_built_in_profile_has_a_text_that_parses_to_it() {
        for profile in builtin() {
            let text = text(&profile.name).expect("a built-in profile");
            assert_eq!(text.parse::<Profile>().unwrap(), profile, "{text}");
        }
        assert_eq!(text("title"), None);
    }

    /// The rates that the sources state, or that follow from them.
    #[test]
    fn camera_and_master_formats_have_the_published_rates() {
        let rates = [
            ("xavc-l100-uhd-25", 100_000_000),
            ("imf-j2k-uhd", 799_999_872),
            ("r3d-8k-8-1", 1_296_000_000),
            ("arriraw-2.8k", 6_998_400 * 24 * 8),
            ("arriraw-3.4k", 11_255_958 * 24 * 8),
            ("st2110-hd-50", 2_073_600_000),
            ("st2110-uhd-50", 8_294_400_000),
        ];
        for (name, rate) in rates {
            assert_eq!(named(name).unwrap().rate().unwrap().0, rate, "{name}");
        }
    }

    #[test]
    fn an_edited_profile_keeps_its_name_and_source() {
        let edited = text("xavc300-25").unwrap().replace("bytes = 1_230_500", "bytes = 1_400_000");
        let profile: Profile = edited.parse().unwrap();
        let built_in = named("xavc300-25").unwrap();
        assert_eq!((&profile.name, &profile.source), (&built_in.name, &built_in.source));
        assert_eq!(profile.bytes, 1_400_000);
        assert!(!profile.disagreements().is_empty(), "`--verify` tells that it was edited");
    }
}
