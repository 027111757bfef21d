//! Profiles and ramp scripts that a user names: a built-in one, or a file.

use crate::error::MeterError;
use crate::profiles::{self, Profile};
use crate::ramp::{self, Script};
use units::Reason;

/// The built-in profile with this name, or the one in the file with this name.
pub fn load_profile(name: &str) -> Result<Profile, MeterError> {
    // Built-in names go first, so that a file in the current directory cannot change what a name
    // means.
    if let Some(profile) = profiles::named(name) {
        return Ok(profile);
    }
    let text = std::fs::read_to_string(name).map_err(|error| {
        let message = match error.kind() {
            std::io::ErrorKind::NotFound => {
                format!("there is no profile '{name}', and no file of that name")
            }
            _ => format!("cannot read {name}: {error}"),
        };
        MeterError::usage(message).hint("`tenuto meter profiles` lists those that come along")
    })?;
    let wrong = |reason: Reason| MeterError::from(reason.about(name)).into_usage();
    text.parse().map_err(wrong)
}

/// The built-in ramp script with this name, or the one in the file with this name.
pub fn load_script(name: &str) -> Result<Script, MeterError> {
    if let Some(text) = ramp::text(name) {
        return Ok(Script::read(text).expect("a built-in script"));
    }
    let text =
        std::fs::read_to_string(name).map_err(|error| no_script(name, &error.to_string()))?;
    Script::read(&text).map_err(|error| MeterError::usage(format!("{name}: {error}")))
}

/// The text of the built-in ramp script with this name.
pub fn builtin_script(name: &str) -> Result<&'static str, MeterError> {
    ramp::text(name).ok_or_else(|| no_script(name, "it does not come along"))
}

fn no_script(name: &str, why: &str) -> MeterError {
    let names: Vec<String> = ramp::builtin().into_iter().map(|script| script.name).collect();
    MeterError::usage(format!("there is no script '{name}': {why}"))
        .hint(format!("name a file, or one that comes along: {}", names.join(", ")))
}
