//! Members against an etcd in memory: what they write, and what they do when it fails.

use super::*;
use crate::operations::ClusterRecords;
use cluster::forgetting::{ForgetRefusal, forget_node};
use cluster::{CapacityShare, ClusterName, NodeDisk};
use crossbeam_channel::unbounded;
use std::sync::atomic::{AtomicBool, Ordering};
use testkit::etcd::{TestEtcd, TestEtcdMember};
use units::{BitRate, ByteCount};

/// A member of a test, and what it has said.
struct Tested {
    member: Member,
    said: Receiver<MemberMessage>,
}

fn records() -> MemberRecords {
    let title = |name: &str| TitleName::new(name).unwrap();
    let copy = CopyRecord::ready(NodeDisk(0), None);
    let size = TitleSize { rate: BitRate(5), size: ByteCount(9) };
    let digest = NodeDigest {
        address: "http://a".to_owned(),
        rack: None,
        weight: 1,
        lease: 0,
        disks: vec![CapacityShare::all_free(100)],
        network: CapacityShare::all_free(100),
        memory: CapacityShare::all_free(100),
        space: Vec::new(),
    };
    MemberRecords {
        digest,
        copies: [(title("film"), vec![copy])].into(),
        titles: [(title("film"), size)].into(),
        viewers: BTreeMap::new(),
    }
}

fn config(members: &[&TestEtcdMember], lease: u64) -> MemberConfig {
    MemberConfig {
        etcd: EtcdConfig {
            endpoints: members.iter().map(|member| member.address().parse().unwrap()).collect(),
            cluster: ClusterName::new("c").unwrap(),
            access: <_>::default(),
        },
        node: NodeId::new("n").unwrap(),
        lease: Duration::from_secs(lease),
    }
}

impl Tested {
    fn start(members: &[&TestEtcdMember], lease: u64) -> Self {
        let (sender, said) = unbounded();
        let say = move |message| sender.send(message).unwrap_or(());
        let member = Member::start(config(members, lease), records, say).unwrap();
        Self { member, said }
    }

    /// The next message.
    fn says(&self) -> MemberMessage {
        self.said.recv_timeout(PATIENCE).expect("a message")
    }

    fn is_registered_at(&self, member: &TestEtcdMember) {
        let etcd = member.address().to_owned();
        assert_eq!(self.says(), MemberMessage::Registered { etcd });
        assert!(self.member.is_registered());
    }
}

fn keys(etcd: &TestEtcd) -> String {
    let keys = etcd.records().into_iter().map(|(key, _)| {
        let key = key.replace("/tenuto/c/", "");
        // Without the group of the titles.
        if key.starts_with("held/") { key.rsplit_once('/').unwrap().0.to_owned() } else { key }
    });
    keys.collect::<Vec<_>>().join(" ")
}

fn until(mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "it takes too long");
        std::thread::sleep(Duration::from_millis(5));
    }
}

const ALL: &str = "copies/film/n format held/n members/n nodes/n titles/film";
/// What stays of a node that is away.
const AWAY: &str = "format held/n members/n titles/film";
/// Far longer than any step takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn a_node_is_there_while_it_runs_and_its_titles_stay_known() {
    let etcd = TestEtcd::new();
    let member = etcd.listen();
    let node = Tested::start(&[&member], 10);
    node.is_registered_at(&member);
    until(|| keys(&etcd) == ALL);
    let leased = ["nodes/n", "copies/film/n", "titles/film", "format"]
        .map(|key| etcd.is_leased(&format!("/tenuto/c/{key}")));
    assert_eq!(leased, [true, true, false, false].map(Some));
    let digest = etcd.records().into_iter().find(|(key, _)| key.ends_with("nodes/n")).unwrap().1;
    assert!(digest.contains("\"lease\":10"), "{digest}");
    let status = node.member.status();
    assert!(status.registered && status.lease_remaining <= Duration::from_secs(10));
    assert_eq!((status.etcd_endpoint.as_str(), status.last_error), (member.address(), None));
    node.member.stop();
    assert_eq!(keys(&etcd), AWAY);
}

#[test]
fn a_node_that_was_forgotten_registers_as_a_new_one() {
    let etcd = TestEtcd::new();
    let member = etcd.listen();
    let node = Tested::start(&[&member], 10);
    until(|| keys(&etcd) == ALL);
    let config = config(&[&member], 10);
    let mut records = ClusterRecords::new(&config.etcd).unwrap();
    let found = |records: &mut ClusterRecords| {
        let view = records.view().unwrap();
        forget_node(&view, &config.node).map(|forgetting| (view, forgetting))
    };
    assert_eq!(found(&mut records).unwrap_err(), ForgetRefusal::Registered);
    node.member.stop();
    etcd.put("/tenuto/c/drained/n", "true");
    etcd.put("/tenuto/c/orders/n", r#"{"later":1}"#);
    let (view, forgetting) = found(&mut records).unwrap();
    // What has come meanwhile is not removed.
    etcd.put("/tenuto/c/titles/film", r#"{"rate":5,"size":9}"#);
    assert!(!records.forget(Some(&config.node), &forgetting, &view).unwrap());
    let (view, forgetting) = found(&mut records).unwrap();
    assert_eq!(forgetting.lost, [TitleName::new("film").unwrap()].into());
    assert!(records.forget(Some(&config.node), &forgetting, &view).unwrap());
    assert_eq!(keys(&etcd), "format");
    assert_eq!(found(&mut records).unwrap_err(), ForgetRefusal::Unknown);
    let again = Tested::start(&[&member], 10);
    until(|| keys(&etcd) == ALL);
    // It is there, and keeps its records.
    assert!(!records.forget(Some(&config.node), &forgetting, &view).unwrap());
    assert_eq!(keys(&etcd), ALL);
    again.member.stop();
}

#[test]
fn a_lease_that_was_lost_is_granted_again_with_all_records() {
    let etcd = TestEtcd::new();
    let member = etcd.listen();
    let node = Tested::start(&[&member], 3);
    node.is_registered_at(&member);
    until(|| keys(&etcd) == ALL);
    etcd.expire_lease_of("/tenuto/c/nodes/n");
    assert_eq!(keys(&etcd), AWAY);
    assert!(matches!(node.says(), MemberMessage::Lost(_)));
    node.is_registered_at(&member);
    until(|| keys(&etcd) == ALL);
}

#[test]
fn a_node_goes_on_at_another_member_of_etcd() {
    let etcd = TestEtcd::new();
    let (first, second) = (etcd.listen(), etcd.listen());
    let node = Tested::start(&[&first, &second], 10);
    node.is_registered_at(&first);
    assert_eq!(node.member.status().clock, None);
    second.tell_date("Sun, 06 Nov 1994 08:49:37 GMT");
    first.refuse(true);
    until(|| node.member.status().etcd_endpoint == second.address());
    assert!(node.member.is_registered());
    // Its clock is far behind, which is said once, and changes nothing of the lease.
    let MemberMessage::ClocksDiffer { etcd, difference } = node.says() else { panic!("clocks") };
    assert_eq!(etcd, second.address());
    assert!(difference.is_large() && difference.seconds() < 0.0, "{difference}");
    until(|| node.member.status().clock.is_some_and(|it| it <= difference));
    assert!(node.member.is_registered() && node.said.is_empty());
}

#[test]
fn a_member_of_etcd_that_is_slow_is_left() {
    let etcd = TestEtcd::new();
    let (slow, quick) = (etcd.listen(), etcd.listen());
    slow.delay(Duration::from_secs(600));
    let node = Tested::start(&[&slow, &quick], 10);
    node.is_registered_at(&quick);
    assert_eq!(node.member.status().last_error, None);
}

#[test]
fn a_node_that_is_cut_off_is_not_registered_after_its_lease() {
    let etcd = TestEtcd::new();
    let member = etcd.listen();
    let node = Tested::start(&[&member], 2);
    node.is_registered_at(&member);
    member.refuse(true);
    until(|| !node.member.is_registered());
    let message = node.says();
    assert!(matches!(message, MemberMessage::Lost(_)), "{message:?}");
    assert!(node.member.status().last_error.is_some());
    // The lease itself is still there. Nothing more was said of the one cause.
    member.refuse(false);
    node.is_registered_at(&member);
    assert!(node.said.is_empty());
}

#[test]
fn the_second_node_of_a_name_waits_until_the_first_has_gone() {
    let etcd = TestEtcd::new();
    let member = etcd.listen();
    let first = Tested::start(&[&member], 2);
    first.is_registered_at(&member);
    let second = Tested::start(&[&member], 2);
    assert_eq!(second.says(), MemberMessage::NameTaken);
    assert!(!second.member.is_registered());
    first.member.stop();
    second.is_registered_at(&member);
}

#[test]
fn records_of_another_format_are_left_alone() {
    let etcd = TestEtcd::new();
    let member = etcd.listen();
    etcd.put("/tenuto/c/format", r#"{"format":999,"cluster":"c"}"#);
    let node = Tested::start(&[&member], 2);
    let MemberMessage::Unusable(why) = node.says() else { panic!("it is usable") };
    assert!(why.contains("format 999"), "{why}");
    assert_eq!((etcd.writes(), keys(&etcd)), (0, "format".to_owned()));
    assert!(!node.member.is_registered());
}

#[test]
fn an_etcd_that_was_restored_gets_the_records_again() {
    let etcd = TestEtcd::new();
    let member = etcd.listen();
    let before = etcd.snapshot();
    let node = Tested::start(&[&member], 3);
    node.is_registered_at(&member);
    etcd.restore(before);
    assert!(matches!(node.says(), MemberMessage::Lost(_)));
    node.is_registered_at(&member);
    until(|| keys(&etcd) == ALL);
}

/// A title may have the name of a folder of others. Its record goes when nobody has a copy of it,
/// whatever the others have.
#[test]
fn a_title_leaves_the_cluster_beside_titles_in_a_folder_of_its_name() {
    let title = |name: String| TitleName::new(&name).unwrap();
    // More than one page of keys in one folder, and keys on both sides of the others in order.
    let inside = (0..2100).map(|number| format!("a/0/{number}"));
    let inside: Vec<_> = inside.chain(["a/b".to_owned(), "a/z/1".to_owned()]).collect();
    for (other, stays) in [("copies/a/0", true), ("copies/a/zz", true), ("copies/a-b/n", false)] {
        let etcd = TestEtcd::new();
        let member = etcd.listen();
        let has_left = Arc::new(AtomicBool::new(false));
        let source = {
            let (has_left, inside) = (Arc::clone(&has_left), inside.clone());
            move || {
                let all = records();
                let (copies, size) = (all.copies.values().next(), all.titles.values().next());
                let (copies, size) = (copies.unwrap().clone(), *size.unwrap());
                let a = (!has_left.load(Ordering::Relaxed)).then(|| "a".to_owned());
                let names = || a.iter().chain(&inside).cloned().map(title);
                MemberRecords {
                    copies: names().map(|title| (title, copies.clone())).collect(),
                    titles: names().map(|title| (title, size)).collect(),
                    ..records()
                }
            }
        };
        let (sender, said) = unbounded();
        let say = move |message| sender.send(message).unwrap_or(());
        let member = Member::start(config(&[&member], 10), source, say).unwrap();
        let node = Tested { member, said };
        // What a node has in a group is written in the pass after that of the title.
        let is_held =
            |(key, value): &(String, String)| key.contains("/held/n/") && value.contains("\"a\":");
        let has = |key: &str| {
            let key = format!("/tenuto/c/{key}");
            etcd.records().iter().any(|(found, _)| *found == key)
        };
        until(|| has("titles/a/z/1") && etcd.records().iter().any(is_held));
        etcd.put(&format!("/tenuto/c/{other}"), r#"[{"disk":0,"state":"ready"}]"#);
        has_left.store(true, Ordering::Relaxed);
        until(|| !has("copies/a/n") && !etcd.records().iter().any(is_held));
        assert_eq!((has("titles/a"), has(other)), (stays, true), "{other}");
        assert!(has("copies/a/b/n") && has("titles/a/b") && has("titles/a/0/2099"));
        node.member.stop();
    }
}

#[test]
fn leases_have_bounds() {
    let etcd = TestEtcd::new();
    let member = etcd.listen();
    for lease in [1, 601] {
        assert!(Member::start(config(&[&member], lease), records, |_| ()).is_err());
    }
    let none = Member::start(config(&[], 10), records, |_| ());
    assert_eq!(none.unwrap_err().message, "no member of etcd is named");
}
