//! The reports that are kept: each is a directory that a command of the meter made with `--out`.

use super::order::check_name;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};
use units::{Hinted, Reason, locked};

/// A directory of reports.
#[derive(Debug)]
pub(super) struct KeptReports {
    directory: PathBuf,
    /// What a list shows of each report, and the time and length of the file that says so: a
    /// summary with every second of a day takes a while to read.
    known: Mutex<HashMap<PathBuf, (SystemTime, u64, Value)>>,
}

/// A file of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReportFile {
    /// The page for people.
    Page,
    /// The results for programs.
    Summary,
    /// The figures of each second of a run.
    Seconds,
}

impl ReportFile {
    fn name(self) -> &'static str {
        match self {
            Self::Page => "report.html",
            Self::Summary => SUMMARY,
            Self::Seconds => "seconds.csv",
        }
    }
}

const SUMMARY: &str = "summary.json";

impl KeptReports {
    /// The reports in a directory, which is made if it is not there.
    pub(super) fn open(directory: &Path) -> Result<Self, Reason> {
        let about = |error: io::Error| error.reason().about(directory.display());
        fs::create_dir_all(directory).map_err(about)?;
        let directory = directory.canonicalize().map_err(about)?;
        Ok(Self { directory, known: Mutex::default() })
    }

    /// Where they are.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The directory of a report that is there; `None` for any other name.
    pub(super) fn path(&self, name: &str) -> Option<PathBuf> {
        let is_part = !name.starts_with('.') && !name.contains(['/', '\0']) && !name.is_empty();
        let path = self.directory.join(name);
        (is_part && is_report(&path)).then_some(path)
    }

    /// A name for a new report: the wanted one if it is free, or one that begins with `base`.
    pub(super) fn new_name(&self, wanted: Option<&str>, base: &str) -> Result<String, Reason> {
        let is_free = |name: &str| self.directory.join(name).symlink_metadata().is_err();
        if let Some(wanted) = wanted {
            check_name(wanted)?;
            if !is_free(wanted) {
                let message = format!("there is already something named {wanted}");
                return Err(Reason::new(message, "take another name, or remove the report"));
            }
            return Ok(wanted.to_owned());
        }
        let names = (2..MOST).map(|number| format!("{base}-{number}"));
        let mut names = std::iter::once(base.to_owned()).chain(names);
        names.find(|name| is_free(name)).ok_or_else(|| {
            Reason::new("there are too many reports", "remove some, or name another directory")
        })
    }

    /// What is known of each, the newest first.
    pub(super) fn list(&self) -> Result<Value, Reason> {
        let failed = |error: io::Error| error.reason().about(self.directory.display());
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.directory).map_err(failed)?.flatten() {
            let Ok(name) = entry.file_name().into_string() else { continue };
            let Some(path) = self.path(&name) else { continue };
            let Ok(file) = path.join(SUMMARY).metadata() else { continue };
            found.push((file.modified().unwrap_or(UNIX_EPOCH), file.len(), name, path));
        }
        found.sort_unstable_by(|a, b| (b.0, &a.2).cmp(&(a.0, &b.2)));
        let all = found.len();
        found.truncate(MOST_LISTED);
        let mut known = locked(&self.known);
        let mut still_known = HashMap::new();
        let mut reports = Vec::new();
        for (modified, len, name, path) in found {
            let before =
                known.remove(&path).filter(|before| (before.0, before.1) == (modified, len));
            let read = || summary(&path).map_or_else(|| json!({}), |value| about(&value));
            let mut report = before.map_or_else(read, |(_, _, about)| about);
            still_known.insert(path.clone(), (modified, len, report.clone()));
            let seconds = modified.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
            report["name"] = name.into();
            report["modified"] = seconds.into();
            report["has_page"] = path.join(ReportFile::Page.name()).is_file().into();
            reports.push(report);
        }
        *known = still_known;
        Ok(json!({ "reports": reports, "all": all }))
    }

    /// A file of a report; `None` where there is none.
    pub(super) fn file(&self, name: &str, file: ReportFile) -> Option<Vec<u8>> {
        let path = self.path(name)?.join(file.name());
        // Of a link it is not known where it leads.
        let about = path.symlink_metadata().ok()?;
        let is_read = about.is_file() && about.len() <= LARGEST_FILE;
        is_read.then(|| fs::read(path).ok()).flatten()
    }

    /// Removes a report with all its files.
    pub(super) fn remove(&self, name: &str) -> Result<(), Reason> {
        let path = self.path(name).ok_or("there is no such report")?;
        fs::remove_dir_all(&path).map_err(|error| error.reason().about(path.display()))
    }
}

/// Whether a directory, and no link to one, holds a report.
fn is_report(path: &Path) -> bool {
    let is_directory = path.symlink_metadata().is_ok_and(|about| about.is_dir());
    is_directory && path.join(SUMMARY).is_file()
}

fn summary(path: &Path) -> Option<Value> {
    let path = path.join(SUMMARY);
    let is_read = path.metadata().ok()?.len() <= LARGEST_FILE;
    is_read.then(|| serde_json::from_slice(&fs::read(path).ok()?).ok()).flatten()
}

/// What a list shows of a report: what was measured, and what was found.
fn about(summary: &Value) -> Value {
    let scenario = &summary["scenario"];
    let is_search = summary["runs"].is_array() && summary.get("too_many").is_some();
    let is_run = summary["frames"].is_u64() && summary["streams"].is_u64();
    let kind = match (is_search, is_run) {
        (true, _) => "capacity",
        (_, true) => "run",
        _ => "other",
    };
    let none = |name: &str| summary[name].as_u64().unwrap_or(0) == 0;
    let held = match kind {
        "capacity" => json!(summary["streams"].as_u64().is_some_and(|streams| streams > 0)),
        "run" => {
            let grows = summary["backlog_grows"].as_bool().unwrap_or(false);
            json!(none("late_by_storage") && none("below_best") && !grows)
        }
        _ => Value::Null,
    };
    json!({
        "kind": kind,
        "target": scenario["target"],
        "profile": scenario["profile"]["name"],
        "duration": scenario["duration"],
        "streams": summary["streams"],
        "too_many": summary["too_many"],
        "frames": summary["frames"],
        "late": summary["late"],
        "bits_per_s": summary["bits_per_s"],
        "held": held,
        "valid": summary["valid"],
        "confirmed": summary["confirmed"],
        "complete": summary["complete"],
    })
}

/// Reports with one beginning of their names.
const MOST: u32 = 10_000;
/// Reports in a list.
const MOST_LISTED: usize = 500;
/// A page of a search with all its plots has less than one MiB.
const LARGEST_FILE: u64 = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn reports_are_directories_with_a_summary_and_nothing_else_is_read_or_removed() {
        let base = std::env::temp_dir().join(format!("tenuto-reports-{}", std::process::id()));
        let kept = KeptReports::open(&base.join("reports")).unwrap();
        let write = |path: &str, text: &str| {
            let path = base.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let run = r#"{"streams":3,"frames":9,"late":1,"late_by_storage":1,"backlog_grows":false,
            "scenario":{"target":"sim:a","profile":{"name":"<b>"}}}"#;
        write("reports/a run", run);
        write("reports/run/summary.json", run);
        write("reports/run/report.html", "<p>");
        write("reports/found/summary.json", r#"{"streams":5,"too_many":6,"runs":[]}"#);
        write("reports/broken/summary.json", "{");
        write("reports/films/a.mkv", "");
        write("elsewhere/summary.json", run);
        write("elsewhere/secret", "");
        symlink(base.join("elsewhere"), base.join("reports/link")).unwrap();
        symlink(base.join("elsewhere/secret"), base.join("reports/found/report.html")).unwrap();
        // The second time from what is known.
        for _ in 0..2 {
            let list = kept.list().unwrap();
            let mut shown: Vec<String> = list["reports"]
                .as_array()
                .unwrap()
                .iter()
                .map(|report| {
                    format!(
                        "{} {} {} {}",
                        report["name"], report["kind"], report["streams"], report["held"]
                    )
                })
                .collect();
            shown.sort();
            assert_eq!(
                shown.join("\n").replace('"', ""),
                "broken null null null\nfound capacity 5 true\nrun run 3 false"
            );
        }
        for (name, page) in [("run", Some(b"<p>".to_vec())), ("found", None), ("link", None)] {
            assert_eq!(kept.file(name, ReportFile::Page), page, "{name}");
        }
        for name in ["link", "films", "a run", ".", "..", "", "run/../found", "../elsewhere"] {
            assert!(kept.remove(name).is_err(), "{name}");
        }
        kept.remove("run").unwrap();
        assert!(!base.join("reports/run").exists() && base.join("elsewhere/secret").exists());
        assert_eq!(kept.new_name(None, "found").unwrap(), "found-2");
        assert!(kept.new_name(Some("found"), "").is_err());
        fs::remove_dir_all(base).unwrap();
    }
}
