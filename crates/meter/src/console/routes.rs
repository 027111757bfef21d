//! The resources of the console.
//!
//! | | |
//! |---|---|
//! | `GET /console/` | the page |
//! | `GET /status?run=N&after=M` | what the console may measure, and the measurement that runs: of measurement N the samples from M on |
//! | `GET /api/v1/meter/choices` | profiles and simulated disks |
//! | `POST /api/v1/meter/runs` | starts a measurement |
//! | `POST /api/v1/meter/stop` | stops it |
//! | `GET /api/v1/meter/reports` | the reports that are kept |
//! | `DELETE /api/v1/meter/reports?name=NAME` | removes one |
//! | `GET /api/v1/meter/reports/page?name=NAME` | its page; `/summary` and `/seconds`: its figures |
//! | `GET /api/v1/meter/comparison?a=NAME&b=NAME` | two of them, as by `meter compare --json` |

use super::ConsoleState;
use super::access;
use super::http::problem;
use super::measuring::NotStarted;
use super::order::MeasureOrder;
use super::reports::ReportFile;
use crate::profiles::{self, Profile};
use disk::DiskModel;
use http_service::{HttpRequest, HttpResponse, console_file};
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use units::{Hinted, Reason};

/// The answer to a request.
pub(super) fn answer(state: &ConsoleState, request: &HttpRequest<'_>) -> HttpResponse {
    if let Some(refusal) = access::refusal(request, state.token.as_ref()) {
        return refusal;
    }
    let method = if request.method == "HEAD" { "GET" } else { request.method };
    if let ("GET", Some(name)) = (method, request.path().strip_prefix("/console/")) {
        return console_file(name).unwrap_or_else(|| not_found("the console has no such file"));
    }
    match (method, request.path()) {
        ("GET", "/" | "/console") => {
            HttpResponse::with_body(302, "text/plain", "").field("Location", "/console/")
        }
        ("GET", "/status") => status(state, request),
        ("GET", "/api/v1/meter/choices") => choices(),
        ("POST", "/api/v1/meter/runs") => start(state, request),
        ("POST", "/api/v1/meter/stop") => {
            if state.measuring.stop() {
                return HttpResponse::json(200, &json!({}));
            }
            problem(409, "nothing-runs", "no measurement runs", None)
        }
        ("GET", "/api/v1/meter/reports") => {
            state.reports.list().map_or_else(failed, |list| HttpResponse::json(200, &list))
        }
        ("DELETE", "/api/v1/meter/reports") => remove(state, request),
        ("GET", "/api/v1/meter/reports/page") => file(state, request, ReportFile::Page),
        ("GET", "/api/v1/meter/reports/summary") => file(state, request, ReportFile::Summary),
        ("GET", "/api/v1/meter/reports/seconds") => file(state, request, ReportFile::Seconds),
        ("GET", "/api/v1/meter/comparison") => compare(state, request),
        _ => not_found("the meter's console has no such resource"),
    }
}

fn not_found(message: &str) -> HttpResponse {
    problem(404, "not-found", message, None)
}

fn failed(why: Reason) -> HttpResponse {
    problem(500, "failed", &why.to_string(), why.hint.as_deref())
}

fn refused(why: &Reason) -> HttpResponse {
    problem(422, "refused", &why.to_string(), why.hint.as_deref())
}

fn status(state: &ConsoleState, request: &HttpRequest<'_>) -> HttpResponse {
    let number = |name| request.query(name).and_then(|text| text.parse().ok()).unwrap_or(0_u64);
    let after = usize::try_from(number("after")).unwrap_or(usize::MAX);
    let meter = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "directory": state.reports.directory().display().to_string(),
        "allowed": state.allowed.names(),
    });
    let run = state.measuring.json(number("run"), after);
    HttpResponse::json(200, &json!({ "meter": meter, "run": run }))
}

fn choices() -> HttpResponse {
    let profile = |profile: &Profile| {
        json!({
            "name": profile.name,
            "title": profile.title,
            "bits_per_s": profile.rate().map(|rate| rate.0),
        })
    };
    // Those without a rate of their own, and those that are listed for reference, are not run so.
    let runnable = |profile: &&Profile| profile.rate().is_some() && profile.cannot_run().is_none();
    let profiles: Vec<Value> = profiles::builtin().iter().filter(runnable).map(profile).collect();
    let models: Vec<Value> = DiskModel::presets()
        .iter()
        .map(|model| json!({ "name": model.name(), "bytes": model.capacity().0 }))
        .collect();
    HttpResponse::json(200, &json!({ "profiles": profiles, "models": models }))
}

fn start(state: &ConsoleState, request: &HttpRequest<'_>) -> HttpResponse {
    let order: MeasureOrder = match serde_json::from_slice(request.body) {
        Ok(order) => order,
        Err(error) => return refused(&error.to_string().into()),
    };
    let arguments = match order.arguments(&state.allowed) {
        Ok(arguments) => arguments,
        Err(why) => return refused(&why),
    };
    let name = match state.reports.new_name(order.name.as_deref(), &order.base_name()) {
        Ok(name) => name,
        Err(why) => return refused(&why),
    };
    match state.measuring.start(&state.meter, arguments, order, &name, &state.reports) {
        Ok(()) => HttpResponse::json(201, &json!({ "name": name })),
        Err(NotStarted::Busy(other)) => {
            let message = format!("{other} is being measured: two would measure each other");
            let hint = "wait until it has ended, or stop it";
            problem(409, "busy", &message, Some(hint))
        }
        Err(NotStarted::Failed(why)) => failed(why),
    }
}

fn file(state: &ConsoleState, request: &HttpRequest<'_>, file: ReportFile) -> HttpResponse {
    let name = request.query("name").unwrap_or_default();
    let Some(bytes) = state.reports.file(&name, file) else {
        return not_found("there is no such report, or it has no such file");
    };
    let content_type = match file {
        ReportFile::Page => "text/html; charset=utf-8",
        ReportFile::Summary => "application/json",
        ReportFile::Seconds => "text/csv; charset=utf-8",
    };
    HttpResponse::with_body(200, content_type, bytes)
        .field("Content-Security-Policy", REPORT_POLICY)
        .field("X-Content-Type-Options", "nosniff")
        .field("Referrer-Policy", "no-referrer")
}

fn remove(state: &ConsoleState, request: &HttpRequest<'_>) -> HttpResponse {
    let name = request.query("name").unwrap_or_default();
    if state.reports.path(&name).is_none() {
        return not_found("there is no such report");
    }
    state.reports.remove(&name).map_or_else(failed, |()| HttpResponse::json(200, &json!({})))
}

fn compare(state: &ConsoleState, request: &HttpRequest<'_>) -> HttpResponse {
    let path = |name| state.reports.path(&request.query(name).unwrap_or_default());
    let (Some(a), Some(b)) = (path("a"), path("b")) else {
        return not_found("one of the two reports is not there");
    };
    let Ok(_comparing) = state.comparing.try_lock() else {
        let hint = "try again in some seconds";
        return problem(409, "busy", "two others are compared", Some(hint));
    };
    let Some((program, words)) = state.meter.split_first() else {
        return failed("the console has no program to start".into());
    };
    let output = Command::new(program)
        .args(words)
        .arg("compare")
        .args([a, b])
        .arg("--json")
        .stdin(Stdio::null())
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) => return failed(error.reason().about("cannot start the comparison")),
    };
    match serde_json::from_slice::<Value>(&output.stdout) {
        Ok(compared) => HttpResponse::json(200, &compared),
        Err(_) => refused(&said(&String::from_utf8_lossy(&output.stderr))),
    }
}

/// The error and the hint that a command has written.
fn said(stderr: &str) -> Reason {
    let after = |word: &str| stderr.lines().find_map(|line| line.strip_prefix(word));
    let message = after("error: ").unwrap_or("the two cannot be compared");
    match after("hint: ") {
        Some(hint) => Reason::new(message, hint),
        None => message.into(),
    }
}

/// A report of anybody, also a changed one, sends nothing anywhere and knows nothing of the
/// console: its page has an origin of its own.
const REPORT_POLICY: &str = "sandbox allow-scripts; default-src 'none'; \
    script-src 'unsafe-inline'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'";
