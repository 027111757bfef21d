//! Ramps: the same transfers with an increasing number of clients, as in the test scripts of EBU
//! TECH 3362 (section 5.4).
//!
//! ```text
//!   name = "ebu-multi-read"       title = "..."
//!   profile = "ebu3362-read"      a profile's name, or a TOML file of the user's
//!   files = "own"                 or "one": each client has its own file, or all share one
//!   clients = { from = 4, to = 40, by = 4 }
//!   step_s = 3600                 seconds of each number of clients
//!   whole_files = false           true: each transfer overwrites its whole file ...
//!   replace = false               ... true: as a new file, which then gets the old one's name
//!   source = "..."
//! ```
//!
//! A script is data: it runs nothing ([`transfers`](crate::transfers) does). The built-in scripts
//! are in `scripts.toml`. Each step of a script draws from its own seed, so that a step consists of
//! the same transfers whatever ran before it.

use crate::profiles;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use std::time::Duration;

/// A ramp script: a profile, the numbers of clients, and the time of each step.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The name on the command line.
    pub name: String,
    /// A description in one line.
    pub title: String,
    /// The profile of the clients' transfers.
    pub profile: String,
    /// Whether clients share a file.
    pub files: FileSharing,
    /// The numbers of clients.
    #[serde(deserialize_with = "clients")]
    pub clients: Clients,
    /// Seconds of each step.
    pub step_s: u64,
    /// Whether each transfer overwrites its whole file.
    #[serde(default)]
    pub whole_files: bool,
    /// Whether whole files are written: each is a new file that takes the old one's place.
    #[serde(default)]
    pub replace: bool,
    /// The source of the script.
    pub source: String,
}

/// Whether clients share a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FileSharing {
    /// All clients use one file.
    One,
    /// Each client has its own file.
    Own,
}

/// The numbers of clients: first, last and increment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Clients {
    /// The number in the first step.
    pub from: u32,
    /// The largest number in the last step.
    pub to: u32,
    /// The increase from step to step.
    pub by: u32,
}

/// One step of a ramp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RampStep {
    /// The number of clients.
    pub clients: u32,
    /// The time in which transfers begin.
    pub length: Duration,
    /// The seed of the random draws.
    pub seed: u64,
}

impl Script {
    /// Parses the text of a script's file.
    ///
    /// # Errors
    /// A sentence with the error, its line where that is known, and the remedy.
    pub fn read(text: &str) -> Result<Self, String> {
        let script: Self = toml::from_str(text).map_err(|error| {
            let what = profiles::with_line(&error, text);
            let how = "`tenuto meter ramp ebu-multi-read --toml` prints a script";
            format!("not a script: {what}; {how}")
        })?;
        let Clients { from, to, by } = script.clients;
        if from == 0 || by == 0 || to < from || to > MOST_CLIENTS {
            return Err(format!(
                "clients = {{ from = {from}, to = {to}, by = {by} }}; take from 1 up, by 1 or more, to \
                 {MOST_CLIENTS} at most"
            ));
        }
        if script.replace && !script.whole_files {
            return Err("replace = true; only whole_files = true are replaced".to_owned());
        }
        if script.step_s == 0 {
            return Err("step_s = 0; a step takes a second at least".to_owned());
        }
        Ok(script)
    }

    /// The steps in order. `length` overrides the script's length of a step.
    pub fn steps(
        &self,
        length: Option<Duration>,
        seed: u64,
    ) -> impl Iterator<Item = RampStep> + '_ {
        let length = length.unwrap_or(Duration::from_secs(self.step_s));
        let Clients { from, to, by } = self.clients;
        let counts = (from..=to).step_by(usize::try_from(by).expect("32 bits fit"));
        counts.map(move |clients| RampStep {
            clients,
            length,
            // The numbers of clients stay below 2^16, so that no two steps share a seed.
            seed: seed << 16 ^ u64::from(clients),
        })
    }

    /// The number of files.
    pub fn file_count(&self) -> u32 {
        match self.files {
            FileSharing::One => 1,
            FileSharing::Own => self.clients.to,
        }
    }
}

/// Clients from a table; the error says how they are written.
fn clients<'de, D: Deserializer<'de>>(from: D) -> Result<Clients, D::Error> {
    let value = toml::Value::deserialize(from)?;
    let read = match value.is_table() {
        true => Clients::deserialize(value).map_err(|error| error.message().to_owned()),
        false => Err(format!("clients = {value}")),
    };
    let how = "write clients = { from = 4, to = 40, by = 4 }";
    read.map_err(|wrong| D::Error::custom(format!("{wrong}; {how}")))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptFile {
    script: Vec<Script>,
}

/// The built-in scripts.
pub(crate) fn builtin() -> Vec<Script> {
    let table: ScriptFile = toml::from_str(SCRIPTS).expect("the built-in scripts");
    table.script
}

/// The TOML text of the built-in script with this name, to be changed and used.
pub(crate) fn text(name: &str) -> Option<&'static str> {
    profiles::part_named(name, SCRIPTS.split("[[script]]"))
}

const SCRIPTS: &str = include_str!("scripts.toml");

/// The largest number of clients, each of which is a thread.
const MOST_CLIENTS: u32 = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_scripts_are_valid_and_ramp_as_published() {
        let all = builtin();
        assert!(all.len() >= 4);
        for script in &all {
            let text = text(&script.name).unwrap();
            assert_eq!(&Script::read(text).unwrap(), script, "{text}");
            assert!(crate::profiles::named(&script.profile).is_some(), "{}", script.profile);
            let steps: Vec<u32> = script.steps(None, 1).map(|step| step.clients).collect();
            let published: [Vec<u32>; 2] =
                [(1..=10).collect(), (1..=10).map(|number| number * 4).collect()];
            assert!(published.contains(&steps), "{}: {steps:?}", script.name);
            assert!(script.steps(None, 1).all(|step| step.length.as_secs() == 3600));
        }
    }

    #[test]
    fn an_error_in_a_script_is_reported() {
        let good = text("ebu-multi-read").unwrap();
        let wrong = |from: &str, to: &str| Script::read(&good.replace(from, to)).unwrap_err();
        assert!(wrong("from = 4", "from = 0").contains("take from 1 up"));
        assert!(wrong("to = 40", "to = 4000").contains("to 1000 at most"));
        assert!(wrong("step_s = 3600", "step_s = 9\nreplace = true").contains("only whole_files"));
        let clients = "{ from = 4, to = 40, by = 4 }";
        for (to, said) in [
            ("[1, 0]", "line 5: clients = [1, 0]; write clients = { from"),
            ("4", "line 5: clients = 4; write clients = { from"),
            ("{ from = 4 }", "line 5: missing field `to`; write clients = { from"),
        ] {
            assert!(wrong(clients, to).contains(said), "{}", wrong(clients, to));
        }
        assert!(wrong("step_s", "steps").contains("line 6: unknown field `steps`"));
        assert!(wrong("= 3600", "= 0").contains("a second at least"));
        assert_eq!(text("ebu"), None);
    }
}
