//! The metrics that a server exposes, against those that the documentation describes and that the
//! alerts and the board in `packaging/` use; and the names in its status, against those described.

use crate::certificates::Authority;
use crate::directed::cluster;
use crate::fixture::{TestStore, media};
use server::{OtlpTarget, TracedPart, WebhookTarget};
use std::collections::BTreeSet;
use testkit::etcd::TestEtcd;

const DOCUMENTED: &str = include_str!("../../../../docs/reference/metrics.md");
const NAMES: &str = include_str!("../../../../docs/reference/json.md");
const ALERTS: &str = include_str!("../../../../packaging/prometheus/alerts.yml");
const BOARD: &str = include_str!("../../../../packaging/grafana/tenuto.json");

/// The names in a text that begin with `tenuto_`.
fn names(text: &str) -> BTreeSet<&str> {
    let words = text.split(|char: char| !char.is_ascii_alphanumeric() && char != '_');
    words.filter(|word| word.starts_with("tenuto_")).collect()
}

/// The names that a server exposes. A counter or histogram is named in OpenMetrics without its
/// suffix, and its samples with it.
fn exposed() -> BTreeSet<String> {
    let store = TestStore::with(&[&media().film]);
    let authority = Authority::new(&store.directory);
    // Of a node, encrypted: it exposes all that there can be.
    let member = TestEtcd::new().listen();
    let serving = store.serve_with(|config| {
        config.tls = Some(authority.identity("server", 30));
        config.cluster = Some(cluster(&store, &member));
        let nobody = Some("http://127.0.0.1:9".to_owned());
        config.otlp = OtlpTarget::new(nobody.clone(), TracedPart::ALL, |_| None);
        config.webhook = nobody.map(|url| WebhookTarget { url, secret: None });
    });
    let metrics = authority.client(&serving).get("/metrics").text().to_owned();
    let mut exposed = BTreeSet::new();
    for line in metrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = line.split_once(' ').unwrap();
        let suffixes: &[&str] = match kind {
            "counter" => &["_total"],
            "info" => &["_info"],
            "histogram" => &["", "_bucket", "_sum", "_count"],
            _ => &[""],
        };
        exposed.extend(suffixes.iter().map(|suffix| format!("{name}{suffix}")));
    }
    exposed
}

#[test]
fn every_metric_is_documented_and_every_alert_and_plot_has_its_metric() {
    let exposed = exposed();
    // Those of directors and of the meter are behind them.
    let server = DOCUMENTED.split("## The director's metrics").next().unwrap();
    let documented = names(server);
    let part_of_histogram = |name: &str| {
        ["_bucket", "_sum", "_count"].iter().any(|suffix| {
            name.strip_suffix(suffix).is_some_and(|histogram| documented.contains(histogram))
        })
    };
    for name in &exposed {
        assert!(
            documented.contains(name.as_str()) || part_of_histogram(name),
            "{name} is not in docs/reference/metrics.md"
        );
    }
    let board: serde_json::Value = serde_json::from_str(BOARD).unwrap();
    let board = board.to_string();
    for (used, by) in
        [(documented, "metrics.md"), (names(ALERTS), "alerts"), (names(&board), "board")]
    {
        assert!(used.len() >= 10, "{by}: {used:?}");
        for name in used.iter().filter(|name| !name.starts_with("tenuto_director_")) {
            assert!(exposed.contains(*name), "{by}: the server does not expose {name}");
        }
    }
}

#[test]
fn every_name_of_the_status_is_documented() {
    let (_, described) = NAMES.split_once("## A server's status").expect("a section");
    let described = described.split("\n## ").next().unwrap();
    let documented = |name: &str, of: &str| {
        let named = described.contains(&format!("`{name}`"));
        let named = named || described.contains(&format!("`{of}{name}`"));
        assert!(named, "{of}{name} is not in the server's status of docs/reference/json.md");
    };
    let serving = TestStore::with(&[&media().film]).serve();
    let status = serving.client().get("/status").json();
    let names = |value: &serde_json::Value| value.as_object().expect("an object").clone();
    names(&status).keys().for_each(|name| documented(name, ""));
    names(&status["disks"][0]).keys().for_each(|name| documented(name, "disks[]."));
}
