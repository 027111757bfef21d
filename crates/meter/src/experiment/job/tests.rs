//! Jobs on simulated storage and in temporary directories.

use super::*;
use crate::error::MeterErrorKind;
use crate::target::Layout;
use serde_json::Value;
use std::sync::atomic::AtomicU32;

/// An observer that never stops, and keeps crossings of thresholds.
#[derive(Default)]
struct Unseen {
    stop: Arc<AtomicBool>,
    crossings: Mutex<Vec<(String, Value)>>,
}

impl Observer for Unseen {
    fn crossing(&self, text: &str, event: &Value) {
        self.crossings.lock().unwrap().push((text.to_owned(), event.clone()));
    }

    fn stop(&self) -> &Arc<AtomicBool> {
        &self.stop
    }
}

/// A temporary directory, which is removed with its content.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("meter-job-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn run(job: &str, out: Option<PathBuf>) -> Result<ExperimentReport, MeterError> {
    run_seen(job, out, &Unseen::default())
}

fn run_seen(
    job: &str,
    out: Option<PathBuf>,
    observer: &Unseen,
) -> Result<ExperimentReport, MeterError> {
    static JOBS: AtomicU32 = AtomicU32::new(0);
    let dir = Place::new(&format!("file-{}", JOBS.fetch_add(1, Ordering::Relaxed)));
    let file = dir.path().join("job.toml");
    std::fs::write(&file, job).unwrap();
    let config = JobConfig {
        file,
        duration: None,
        usual: Duration::from_secs(60),
        buffer: 8,
        size: ByteCount(64 << 20),
        destructive: false,
        access: S3Access::from_variables(&|_| None),
        agents: None,
        realtime: false,
        spin: false,
        metrics: None,
        out,
    };
    run_job(&config, observer)
}

fn groups(groups: &[(&str, &str)]) -> String {
    let group = |(name, keys): &(&str, &str)| format!("[[group]]\nname = \"{name}\"\n{keys}\n");
    let text: String = groups.iter().map(group).collect();
    format!(
        "duration = \"20s\"\n[global]\nprofile = \"xdcam422\"\ntarget = \"sim:ssd-sata\"\n{text}"
    )
}

fn held(report: &ExperimentReport) -> Vec<bool> {
    let all = report.summary["groups"].as_array().unwrap();
    all.iter().map(|group| group["held"].as_bool().unwrap()).collect()
}

/// 88 streams are what the model holds, as `meter capacity` finds.
#[test]
fn groups_on_one_simulated_disk_share_its_rate() {
    let alone = run(&groups(&[("a", "streams = 88")]), None).unwrap();
    assert_eq!((held(&alone), alone.verdict), (vec![true], Ok(())));
    let half = run(&groups(&[("a", "streams = 44"), ("b", "streams = 44")]), None).unwrap();
    assert_eq!((held(&half), half.verdict), (vec![true; 2], Ok(())));
    let more = run(&groups(&[("a", "streams = 60"), ("b", "streams = 60")]), None).unwrap();
    assert_eq!(held(&more), [false; 2]);
    assert_eq!(more.verdict.unwrap_err().kind, MeterErrorKind::NotHeld);
    let two = [("a", "streams = 60"), ("b", "streams = 60\ntarget = \"sim:ssd-nvme\"")];
    let apart = run(&groups(&two), None).unwrap();
    assert_eq!((held(&apart), apart.verdict), (vec![true; 2], Ok(())));
}

/// With eight frames of buffer the second group is late, and with 500 the first one not.
#[test]
fn each_group_has_its_own_verdict() {
    let two = [("deep", "streams = 60\nbuffer_frames = 500"), ("shallow", "streams = 60")];
    let report = run(&groups(&two), None).unwrap();
    let late = |group: usize| report.summary["groups"][group]["late"].as_u64().unwrap();
    assert!(late(0) == 0 && late(1) > 0, "{:#}", report.summary);
    assert!(report.text.contains("not held"), "{}", report.text);
}

/// Twenty streams move 1 Gb/s, in every window of a client's buffer.
#[test]
fn a_group_below_its_threshold_is_not_held_and_is_reported_by_name() {
    let two = [
        ("enough", "streams = 20\nthreshold = \"900Mbps\""),
        ("little", "streams = 20\nthreshold = \"1100Mbps\"\nthreshold_window = \"1s\""),
    ];
    let seen = Unseen::default();
    let report = run_seen(&groups(&two), None, &seen).unwrap();
    assert_eq!(held(&report), [true, false], "{:#}", report.summary);
    assert_eq!(report.verdict.unwrap_err().kind, MeterErrorKind::NotHeld);
    let crossings = seen.crossings.lock().unwrap();
    let [(text, event)] = &crossings[..] else { panic!("{crossings:?}") };
    assert!(text.starts_with("little: below 1.1 Gb/s at 1.00 s"), "{text}");
    assert_eq!((&event["event"], &event["group"]), (&"threshold".into(), &"little".into()));
    let threshold = &report.summary["groups"][1]["threshold"];
    assert_eq!(threshold["crossings"][0]["below"], true, "{threshold}");
    assert!(report.text.contains("little\nnot held: the rate fell below"), "{}", report.text);
}

#[test]
fn reads_and_writes_of_a_real_directory_begin_together_and_are_recounted() {
    let (place, out) = (Place::new("target"), Place::new("out"));
    let target = place.path().display();
    let job = format!(
        "duration = \"400ms\"\n[global]\ntarget = \"{target}\"\nprofile = \"xdcam422\"\n\
         buffered = true\nsize = \"16MiB\"\nbuffer_frames = 200\n\
         [[group]]\nname = \"read\"\nstreams = 2\n\
         [[group]]\nname = \"write\"\ndirection = \"write\"\nlayout = \"file-per-frame\"\n\
         [[group]]\nname = \"slow\"\nrate = \"10Mbps\"\nlayout = \"file-per-stream\"\n"
    );
    let dir = out.path().join("report");
    let report = run(&job, Some(dir.clone())).unwrap();
    let frames: Vec<u64> = report.summary["groups"]
        .as_array()
        .unwrap()
        .iter()
        .map(|group| group["frames"].as_u64().unwrap())
        .collect();
    assert_eq!(frames, [20, 10, 2], "{:#}", report.summary);
    let written = report.summary["groups"][1]["bytes_written"].as_u64();
    assert_eq!(written, Some(2_500_000));
    let again = super::super::recount_runs(&dir, &Unseen::default()).unwrap();
    assert_eq!(again.summary["summary_agrees"], Value::Bool(true), "{:#}", again.summary);
    assert!(dir.join("runs/002-write/seconds.csv").exists());
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "all files are removed");
}

#[test]
fn an_impossible_group_is_named() {
    let said = |keys| run(&groups(&[("a", ""), ("odd", keys)]), None).err().unwrap();
    let wrong = said("profile = \"ebu3362-edit\"");
    assert_eq!(wrong.kind, MeterErrorKind::Usage);
    assert!(wrong.message.starts_with("group odd: profile"), "{wrong:?}");
    assert!(wrong.message.contains("cannot be run"), "{wrong:?}");
    assert!(said("target = \"sim:none\"").message.contains("no disk model"));
    assert!(said("profile = \"none\"").message.starts_with("group odd: there is no profile"));
}

#[test]
fn groups_on_one_file_have_parts_of_their_own() {
    let dir = Place::new("file");
    let file = dir.path().join("films");
    std::fs::write(&file, vec![7; 8 << 20]).unwrap();
    let keys = format!("target = \"{}\"\nbuffered = true\nbuffer_frames = 200", file.display());
    let (out, two) = (dir.path().join("out"), [("a", &*keys), ("b", &*keys)]);
    let job = groups(&two).replace("20s", "200ms");
    run(&job, Some(out.clone())).unwrap().verdict.unwrap();
    let offsets = |run: &str| {
        let log = crate::log::read(&out.join("runs").join(run)).unwrap();
        let records = log.flat_map(Result::unwrap);
        records.map(|record| record.offset).collect::<Vec<_>>()
    };
    let (first, second) = (offsets("001-a"), offsets("002-b"));
    assert!(first.iter().all(|offset| *offset < 4 << 20), "{first:?}");
    assert!(second.iter().all(|offset| *offset >= 4 << 20), "{second:?}");
}

#[test]
fn layouts_of_a_model_are_parts_of_one_file() {
    let job = groups(&[("a", "layout = \"file-per-frame\""), ("b", "layout = \"shared-file\"")]);
    let report = run(&job, None).unwrap();
    let layout = |group: usize| report.summary["groups"][group]["scenario"]["layout"].clone();
    assert_eq!([layout(0), layout(1)], [Layout::OneFile, Layout::SharedFile].map(Layout::name));
}
