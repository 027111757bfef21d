//! Ramps: the same transfers with more and more clients, as the test scripts of EBU TECH 3362
//! (section 5.4) have it.
//!
//! ```text
//!   name = "ebu-multi-read"       title = "..."
//!   profile = "ebu3362-read"      a profile's name, or a TOML file of the user's
//!   files = "own"                 or "one": each client has a file of its own, or all share one
//!   clients = { from = 4, to = 40, by = 4 }
//!   step_s = 3600                 of each number of clients
//!   whole_files = false           true: each transfer writes over all of its file ...
//!   replace = false               ... true: as a new file, which then takes the old one's name
//!   source = "..."
//! ```
//!
//! A script is data: it runs nothing ([`transfers`](crate::transfers) does). Those that come along
//! are in `scripts.toml`. The steps of one script draw from one seed each, so that a step is the
//! same transfers again whatever came before it.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A ramp script: a profile, the numbers of clients, and the time of each step.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// How it is called on the command line.
    pub name: String,
    /// One line about it.
    pub title: String,
    /// What clients do.
    pub profile: String,
    /// What they share.
    pub files: FileSharing,
    /// How many there are.
    pub clients: Clients,
    /// Seconds of each number of clients.
    pub step_s: u64,
    /// Each transfer writes over all of its file.
    #[serde(default)]
    pub whole_files: bool,
    /// Whether whole files are written: each is a new file that takes the old one's place.
    #[serde(default)]
    pub replace: bool,
    /// The source of the script.
    pub source: String,
}

/// What clients share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FileSharing {
    /// All go to one file.
    One,
    /// Each has its own.
    Own,
}

/// The numbers of clients: first, last and increment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Clients {
    /// In the first step.
    pub from: u32,
    /// In the last step at most.
    pub to: u32,
    /// More in each step.
    pub by: u32,
}

/// A part of a ramp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RampStep {
    /// How many work.
    pub clients: u32,
    /// For so long transfers begin.
    pub length: Duration,
    /// The seed of the random draws.
    pub seed: u64,
}

impl Script {
    /// A file's text.
    ///
    /// # Errors
    /// A sentence: what is wrong, with its line where that is known, and what would be right.
    pub fn read(text: &str) -> Result<Self, String> {
        let script: Self = toml::from_str(text).map_err(|error| {
            let at = error.span().map(|span| text[..span.start].matches('\n').count() + 1);
            let line = at.map(|line| format!("line {line}: ")).unwrap_or_default();
            let how = "`tenuto meter ramp ebu-multi-read --toml` prints a script";
            format!("not a script: {line}{}; {how}", error.message())
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

    /// One after another. `length`: instead of the script's.
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
            seed: seed << 16 ^ u64::from(clients),
        })
    }

    /// How many files there are.
    pub fn file_count(&self) -> u32 {
        match self.files {
            FileSharing::One => 1,
            FileSharing::Own => self.clients.to,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptFile {
    script: Vec<Script>,
}

/// The built-in scripts.
pub(crate) fn builtin() -> Vec<Script> {
    let table: ScriptFile = toml::from_str(SCRIPTS).expect("a test reads it");
    table.script
}

/// The TOML text of the built-in script of this name, to be changed and used.
pub(crate) fn text(name: &str) -> Option<&'static str> {
    let line = format!("\nname = \"{name}\"\n");
    let mut parts = SCRIPTS.split("[[script]]").skip(1);
    parts.find(|part| part.starts_with(&line)).map(str::trim_start)
}

const SCRIPTS: &str = include_str!("scripts.toml");

/// As many threads.
const MOST_CLIENTS: u32 = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_come_along_are_sound_and_ramp_as_published() {
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
    fn what_is_wrong_with_a_script_is_said() {
        let good = text("ebu-multi-read").unwrap();
        let wrong = |from: &str, to: &str| Script::read(&good.replace(from, to)).unwrap_err();
        assert!(wrong("from = 4", "from = 0").contains("take from 1 up"));
        assert!(wrong("to = 40", "to = 4000").contains("to 1000 at most"));
        assert!(wrong("step_s = 3600", "step_s = 9\nreplace = true").contains("only whole_files"));
        assert!(wrong("step_s", "steps").contains("line 6: unknown field `steps`"));
        assert!(wrong("= 3600", "= 0").contains("a second at least"));
        assert_eq!(text("ebu"), None);
    }
}
