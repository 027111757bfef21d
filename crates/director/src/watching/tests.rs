//! Watches of an etcd in memory: what a view has after each fault.

use super::*;
use crossbeam_channel::{Receiver, unbounded};
use testkit::etcd::{TestEtcd, TestEtcdMember};

/// A watched cluster of a test, and what was said.
struct Watching {
    watched: Arc<WatchedCluster>,
    said: Receiver<String>,
}

impl Watching {
    fn start(members: &[&TestEtcdMember]) -> Self {
        let config = EtcdConfig {
            endpoints: members.iter().map(|member| member.address().parse().unwrap()).collect(),
            cluster: ClusterName::new("c").unwrap(),
            access: <_>::default(),
        };
        let (sender, said) = unbounded();
        let say: Say = Arc::new(move |text: &str| sender.send(text.to_owned()).unwrap_or(()));
        Self { watched: WatchedCluster::start(&config, say).unwrap(), said }
    }

    /// Waits until the view has this epoch and these nodes.
    fn sees(&self, epoch: u64, nodes: &str) {
        let shown = || {
            let view = self.watched.view();
            let now = self.watched.now();
            let alive = view.nodes().filter(|(_, node)| node.answers(now));
            let nodes = alive.map(|(_, node)| node.id().to_string()).collect::<Vec<_>>().join(" ");
            (view.epoch(), nodes)
        };
        let start = Instant::now();
        while shown() != (epoch, nodes.to_owned()) {
            assert!(start.elapsed() < PATIENCE, "{:?} instead of {epoch} {nodes}", shown());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// An etcd with one node, and epoch 1.
fn etcd() -> TestEtcd {
    let etcd = TestEtcd::new();
    etcd.put("/tenuto/c/epoch", "1");
    etcd.put("/tenuto/c/nodes/n1", &digest(100));
    etcd
}

fn digest(lease: u32) -> String {
    let share = r#"{"guaranteed":1,"free":1}"#;
    format!(
        r#"{{"address":"http://a","weight":1,"lease":{lease},"disks":[{share}],"network":{share},"memory":{share}}}"#
    )
}

/// Far longer than any step takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn a_view_follows_the_records() {
    let etcd = etcd();
    let member = etcd.listen();
    let view = Watching::start(&[&member]);
    view.sees(1, "n1");
    etcd.put("/tenuto/c/nodes/n2", &digest(100));
    etcd.put("/tenuto/c/epoch", "2");
    etcd.put("/tenuto/other/epoch", "9");
    view.sees(2, "n1 n2");
    etcd.delete("/tenuto/c/nodes/n1");
    view.sees(2, "n2");
    for (key, value) in [("nodes/n3", "{"), ("reservations/1", "1"), ("epoch", "3")] {
        etcd.put(&format!("/tenuto/c/{key}"), value);
    }
    view.sees(3, "n2");
    assert_eq!((view.watched.unusable(), view.watched.lists(), etcd.writes()), (2, 1, 0));
    assert!(view.watched.age().unwrap() < PATIENCE && view.said.is_empty());
}

#[test]
fn a_list_of_many_records_has_pages() {
    let etcd = etcd();
    for number in 0..4500 {
        etcd.put(&format!("/tenuto/c/titles/t{number}"), r#"{"rate":1,"size":1}"#);
    }
    let view = Watching::start(&[&etcd.listen()]);
    view.sees(1, "n1");
    assert_eq!(view.watched.view().titles().count(), 4500);
}

#[test]
fn a_watch_goes_on_at_another_member() {
    let etcd = etcd();
    let (first, second) = (etcd.listen(), etcd.listen());
    let view = Watching::start(&[&first, &second]);
    view.sees(1, "n1");
    first.refuse(true);
    etcd.put("/tenuto/c/epoch", "2");
    view.sees(2, "n1");
    assert_eq!(view.watched.watched_from().endpoint, second.address());
    assert_eq!((view.watched.lists(), view.said.is_empty()), (1, true));
}

#[test]
fn a_watch_that_ends_goes_on_without_a_list() {
    let etcd = etcd();
    let view = Watching::start(&[&etcd.listen()]);
    view.sees(1, "n1");
    for epoch in 2..5 {
        etcd.end_watches();
        etcd.put("/tenuto/c/epoch", &epoch.to_string());
        view.sees(epoch, "n1");
    }
    assert_eq!((view.watched.lists(), view.said.is_empty()), (1, true));
}

#[test]
fn compacted_changes_are_listed() {
    let etcd = etcd();
    let member = etcd.listen();
    let view = Watching::start(&[&member]);
    view.sees(1, "n1");
    member.refuse(true);
    etcd.put("/tenuto/c/epoch", "2");
    etcd.put("/tenuto/c/epoch", "3");
    etcd.compact();
    member.refuse(false);
    view.sees(3, "n1");
    assert_eq!(view.watched.lists(), 2);
}

#[test]
fn an_etcd_that_was_restored_is_listed() {
    let etcd = etcd();
    let member = etcd.listen();
    let before = etcd.snapshot();
    etcd.put("/tenuto/c/nodes/n2", &digest(100));
    etcd.put("/tenuto/c/epoch", "2");
    let view = Watching::start(&[&member]);
    view.sees(2, "n1 n2");
    etcd.restore(before);
    view.sees(1, "n1");
    etcd.put("/tenuto/c/epoch", "5");
    view.sees(5, "n1");
}

#[test]
fn a_node_is_alive_as_long_as_its_record_is_there() {
    let etcd = etcd();
    etcd.put("/tenuto/c/nodes/n2", &digest(1));
    let view = Watching::start(&[&etcd.listen()]);
    view.sees(1, "n1 n2");
    // The lease in its digest was one second; an etcd that is full takes no other digest.
    std::thread::sleep(Duration::from_millis(1100));
    view.sees(1, "n1 n2");
    etcd.delete("/tenuto/c/nodes/n2");
    view.sees(1, "n1");
}

#[test]
fn a_view_stays_while_etcd_is_away() {
    let etcd = etcd();
    etcd.put("/tenuto/c/nodes/n2", &digest(1));
    let member = etcd.listen();
    let view = Watching::start(&[&member]);
    view.sees(1, "n1 n2");
    member.refuse(true);
    let trouble = view.said.recv_timeout(PATIENCE).unwrap();
    assert!(trouble.starts_with("etcd cannot be used: "), "{trouble}");
    assert!(view.watched.watched_from().error.is_some());
    // The lease in its digest was one second.
    std::thread::sleep(Duration::from_millis(1100));
    view.sees(1, "n1 n2");
    member.refuse(false);
    assert_eq!(view.said.recv_timeout(PATIENCE).unwrap(), "etcd can be used again");
    assert!(view.said.is_empty());
}

#[test]
fn records_of_another_format_are_not_used() {
    let etcd = etcd();
    etcd.put("/tenuto/c/format", r#"{"format":999,"cluster":"c"}"#);
    let view = Watching::start(&[&etcd.listen()]);
    let trouble = view.said.recv_timeout(PATIENCE).unwrap();
    assert!(trouble.contains("format 999"), "{trouble}");
    assert!(!view.watched.is_listed());
}

#[test]
fn what_is_known_goes_on_after_a_short_silence_of_the_same_etcd() {
    let stamp = |etcd, revision| Stamp { etcd, revision };
    let secs = Duration::from_secs;
    let rows = [
        ("the same", stamp(1, 7), secs(0), true),
        ("news", stamp(1, 9), secs(4), true),
        ("another etcd", stamp(2, 9), secs(0), false),
        ("restored", stamp(1, 6), secs(0), false),
        ("restored and written to, or only silent", stamp(1, 9), LONG_SILENCE, false),
    ];
    for (what, now, silence, wanted) in rows {
        assert_eq!(continues(stamp(1, 7), now, silence), wanted, "{what}");
    }
}
