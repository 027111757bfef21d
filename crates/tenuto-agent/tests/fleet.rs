//! The agent's program, copied to a host by `meter run --hosts`. In place of ssh: a shell script
//! that runs the command on this machine.

use meter::agents::AgentsConfig;
use meter::{
    MeterError, Observer, RateAlarmConfig, RunLength, S3Access, StreamRunConfig, StreamsConfig,
    TargetPath, TargetSpec, load_profile, run_streams,
};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use units::ByteCount;

const SSH: &str = "#!/bin/sh
[ $1 = -V ] && { echo OpenSSH_9.2p1 >&2; exit; }
while [ $1 != -- ]; do shift; done
TMPDIR=${0%/*}/host; export TMPDIR
exec sh -c \"$3\"
";

/// A folder with the script, and with folders for the host's temporary files and its media.
struct Host(PathBuf);

impl Host {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("tenuto-agent-{name}-{}", std::process::id()));
        for inner in ["host", "films"] {
            std::fs::create_dir_all(dir.join(inner)).unwrap();
        }
        std::fs::write(dir.join("ssh"), SSH).unwrap();
        Self(dir)
    }

    fn run(&self, program: &Path) -> Result<Value, MeterError> {
        let agents = AgentsConfig {
            agents: Vec::new(),
            token: None,
            hosts: vec!["one".to_owned()],
            ssh: format!("sh {}", self.0.join("ssh").display()),
            program: Some(program.to_owned()),
            workers: 2,
        };
        let config = StreamRunConfig {
            streams: StreamsConfig {
                profile: load_profile("dvcpro50")?,
                target: TargetSpec {
                    target: self.0.join("films").display().to_string(),
                    path: TargetPath::Typed,
                    size: ByteCount(16 << 20),
                    fill_level: None,
                    names: None,
                    existing: false,
                    buffered: false,
                    destructive: false,
                    method: "best".parse().unwrap(),
                    drop_caches: false,
                    verify: false,
                    access: S3Access::default(),
                    agents: Some(agents),
                },
                layout: None,
                buffer: 8,
                duration: RunLength::Exactly(Duration::from_secs(1)),
                realtime: false,
                spin: false,
                metrics: None,
            },
            count: 2,
            alarm: RateAlarmConfig::default(),
            hold: false,
            out: None,
        };
        Ok(run_streams(&config, &Silent::default())?.summary)
    }

    fn files(&self) -> usize {
        let count = |inner| std::fs::read_dir(self.0.join(inner)).unwrap().count();
        count("host") + count("films")
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[derive(Default)]
struct Silent(Arc<AtomicBool>);

impl Observer for Silent {
    fn stop(&self) -> &Arc<AtomicBool> {
        &self.0
    }
}

fn agent() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_tenuto-agent"))
}

#[test]
fn the_copied_agent_measures_and_leaves_no_files() {
    let host = Host::new("measures");
    let summary = host.run(agent()).unwrap_or_else(|error| panic!("{error:?}"));
    // Two streams of 25 frames a second for a second, whatever was late on a busy machine.
    assert_eq!(summary["frames"], 50, "{summary}");
    assert_eq!(summary["agents"][0]["workers"].as_array().unwrap().len(), 2, "{summary}");
    assert_eq!(host.files(), 0);
}

#[test]
fn a_program_that_is_no_agent_is_refused_before_it_is_started() {
    let host = Host::new("refuses");
    assert!(host.run(Path::new("/bin/true")).is_err());
    assert_eq!(host.files(), 0);
}

#[test]
fn the_program_states_its_version_and_what_is_missing() {
    let said = |words: &[&str]| {
        let output = Command::new(agent()).args(words).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(text).unwrap())
    };
    let version = format!("tenuto-agent {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(said(&["--version"]), (Some(0), version));
    let (code, text) = said(&["/tmp"]);
    assert_eq!(code, Some(2));
    assert!(text.starts_with("error: --token-file is missing\nhint: openssl rand"), "{text}");
    assert_eq!(said(&[]).0, Some(2));
}
