//! The side of fio, from its JSON report.

use crate::{Course, Used};
use serde_json::Value;
use std::process::Command;

pub(crate) fn turn(course: &Course) -> Used {
    let mut fio = Command::new("fio");
    fio.args(["--name=read", "--rw=read", "--direct=1", "--ioengine=io_uring"]);
    fio.args(["--fixedbufs", "--registerfiles", "--output-format=json"]);
    fio.arg(format!("--iodepth={}", course.depth));
    fio.arg(format!("--bs={}", course.size));
    fio.arg(format!("--loops={}", course.times));
    fio.arg(format!("--filename={}", course.file.display()));
    if course.huge_pages {
        fio.arg("--mem=mmaphuge");
    }
    let output = fio.output().expect("the package fio is there");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "fio: {said}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("fio reports in JSON");
    let job = &report["jobs"][0];
    let of = |value: &Value| value.as_f64().expect("a number in fio's report");
    let seconds = of(&job["job_runtime"]) / 1e3;
    let reads = of(&job["read"]["total_ios"]);
    let busy = (of(&job["usr_cpu"]) + of(&job["sys_cpu"])) / 100.0;
    Used {
        micros: busy * seconds * 1e6 / reads,
        rate: of(&job["read"]["io_bytes"]) / seconds,
        beginning: None,
    }
}
