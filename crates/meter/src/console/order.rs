//! What a browser orders: a run or a capacity search, as the arguments of the command.
//!
//! Only storage without a risk can be ordered: simulated disks, no storage at all, and what is in
//! the allowed directories. Nothing is overwritten, no address is opened, and no file is read as a
//! profile or a disk model. All else is the command line's.

use crate::allowed::AllowedDirectories;
use crate::profiles;
use disk::DiskModel;
use serde::Deserialize;
use std::ffi::OsString;
use units::Reason;

/// The kind of a measurement.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum OrderKind {
    /// `meter run`.
    Run,
    /// `meter capacity`.
    Capacity,
}

impl OrderKind {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Capacity => "capacity",
        }
    }
}

/// A measurement that was ordered. What is missing is as on the command line.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MeasureOrder {
    pub(super) kind: OrderKind,
    /// The name of the report; without it one is made.
    pub(super) name: Option<String>,
    pub(super) target: String,
    pub(super) profile: String,
    /// Streams of a run.
    pub(super) streams: Option<u32>,
    /// Length of a run, in seconds.
    pub(super) duration: Option<f64>,
    /// The largest number that a search tries.
    pub(super) max_streams: Option<u32>,
    /// Length of the last run of a search, in seconds.
    pub(super) confirm: Option<f64>,
    /// Bytes of the files that are made in a directory.
    pub(super) size: Option<u64>,
}

impl MeasureOrder {
    /// The arguments of the meter's command, without `--out`.
    pub(super) fn arguments(&self, allowed: &AllowedDirectories) -> Result<Vec<OsString>, Reason> {
        if !profiles::builtin().iter().any(|profile| profile.name == self.profile) {
            let message = format!("there is no profile '{}' here", self.profile);
            return Err(Reason::new(message, "profiles of your own are for the command line"));
        }
        let target = self.target(allowed)?;
        let mut words = vec![
            OsString::from(self.kind.word()),
            format!("--profile={}", self.profile).into(),
            format!("--target={target}").into(),
        ];
        let mut add = |name: &str, value: Option<String>| {
            words.extend(value.map(|value| OsString::from(format!("--{name}={value}"))));
        };
        let seconds = |value: f64| format!("{value}s");
        add("duration", self.duration.map(seconds));
        add("size", self.size.map(|bytes| bytes.to_string()));
        match self.kind {
            OrderKind::Run => add("streams", self.streams.map(|count| count.to_string())),
            OrderKind::Capacity => {
                add("max-streams", self.max_streams.map(|count| count.to_string()));
                add("confirm", self.confirm.map(seconds));
            }
        }
        Ok(words)
    }

    /// The target as the command takes it.
    fn target(&self, allowed: &AllowedDirectories) -> Result<String, Reason> {
        let target = &*self.target;
        if let Some(model) = target.strip_prefix("sim:") {
            if DiskModel::preset(model).is_some() {
                return Ok(target.to_owned());
            }
            let message = format!("there is no disk model '{model}' here");
            return Err(Reason::new(message, "models of your own are for the command line"));
        }
        if target == "null:" {
            return Ok(target.to_owned());
        }
        if target.contains("://") {
            let message = format!("{target} is an address: a browser may load no other machine");
            return Err(Reason::new(message, "measure it with `tenuto meter run --target`"));
        }
        allowed.inside(target, "this console").map_err(|why| {
            let hint = "start the console with --allow DIR for each directory to measure in";
            Reason { hint: Some(hint.to_owned()), ..why }
        })
    }

    /// The beginning of a name for the report: what is measured on what.
    pub(super) fn base_name(&self) -> String {
        let target = self.target.trim_end_matches('/');
        let target = target.rsplit(['/', ':']).find(|part| !part.is_empty()).unwrap_or("target");
        let name = format!("{}-{}-{target}", self.kind.word(), self.profile);
        let is_kept = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        name.chars().map(|c| if is_kept(c) { c } else { '-' }).take(LONGEST_BASE).collect()
    }
}

/// Whether a report may be made with this name: it is that of its directory.
pub(super) fn check_name(name: &str) -> Result<(), Reason> {
    let is_kept = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if begins && name.len() <= LONGEST_NAME && name.chars().all(is_kept) {
        return Ok(());
    }
    let hint = "take up to 80 letters, digits, '.', '-' and '_'; the first a letter or a digit";
    Err(Reason::new(format!("'{name}' cannot be the name of a report"), hint))
}

const LONGEST_NAME: usize = 80;
/// Leaves room for a number.
const LONGEST_BASE: usize = 70;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_become_arguments_or_are_refused_with_what_to_do() {
        let dir = std::env::temp_dir().join(format!("tenuto-order-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("films")).unwrap();
        std::os::unix::fs::symlink("/", dir.join("films/out")).unwrap();
        let allowed = AllowedDirectories::new(&[dir.join("films")]).unwrap();
        let films = dir.join("films").canonicalize().unwrap().display().to_string();
        let rows = [
            (
                r#""run","target":"sim:ssd-sata","streams":3,"duration":1.5"#,
                "run --profile=xdcam422 --target=sim:ssd-sata --duration=1.5s --streams=3",
            ),
            (
                r#""capacity","target":"DIR","max_streams":9,"size":1"#,
                "capacity --profile=xdcam422 --target=DIR --size=1 --max-streams=9",
            ),
            (r#""run","target":"null:""#, "run --profile=xdcam422 --target=null:"),
            (r#""run","target":"sim:/etc/passwd""#, "there is no disk model '/etc/passwd' here"),
            (
                r#""run","target":"http://other/""#,
                "http://other/ is an address: a browser may load no other machine",
            ),
            (
                r#""run","target":"s3://films""#,
                "s3://films is an address: a browser may load no other machine",
            ),
            (
                r#""run","target":"DIR/out""#,
                "DIR/out lies outside of what this console may touch: DIR",
            ),
            (
                r#""run","target":"DIR/..""#,
                "DIR/.. lies outside of what this console may touch: DIR",
            ),
            (r#""run","target":"DIR/none""#, "DIR/none: No such file or directory (os error 2)"),
        ];
        for (order, wanted) in rows {
            let order = order.replace("DIR", &films);
            let order = format!(r#"{{"profile":"xdcam422","kind":{order}}}"#);
            let order: MeasureOrder = serde_json::from_str(&order).unwrap();
            let shown = match order.arguments(&allowed) {
                Ok(words) => {
                    words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
                }
                Err(why) => why.to_string(),
            };
            assert_eq!(shown.replace(&films, "DIR"), wanted);
        }
        let file = r#"{"kind":"run","target":"null:","profile":"/etc/passwd"}"#;
        let order: MeasureOrder = serde_json::from_str(file).unwrap();
        let refused = order.arguments(&allowed).unwrap_err();
        assert_eq!(refused.to_string(), "there is no profile '/etc/passwd' here");
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn names_are_made_of_what_is_measured_and_name_one_directory() {
        let order = |target: &str| MeasureOrder {
            kind: OrderKind::Run,
            name: None,
            target: target.to_owned(),
            profile: "xdcam422".to_owned(),
            streams: None,
            duration: None,
            max_streams: None,
            confirm: None,
            size: None,
        };
        for (target, name) in [
            ("sim:ssd-sata", "run-xdcam422-ssd-sata"),
            ("/mnt/films and/", "run-xdcam422-films-and"),
            ("null:", "run-xdcam422-null"),
            ("/", "run-xdcam422-target"),
        ] {
            assert_eq!(order(target).base_name(), name);
            check_name(name).unwrap();
        }
        for name in ["", ".", "..", "a/b", ".a", "-a", "a b", "<b>", &"a".repeat(81)] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
