//! Directors that plan, against an etcd in memory.

use super::*;
use cluster::{
    CapacityShare, ClusterName, ContentTag, CopyRecord, CopyTarget, Headroom, NodeDigest, NodeDisk,
};
use testkit::etcd::{TestEtcd, TestEtcdMember};
use units::{BitRate, ByteCount};

/// A director that plans placement, and what it has said.
struct Tested {
    planning: Planning,
    unmet: Arc<UnmetDemand>,
    said: Arc<Mutex<Vec<String>>>,
}

fn title(name: &str) -> TitleName {
    TitleName::new(name).unwrap()
}

fn sizes(names: &[&str]) -> BTreeMap<TitleName, TitleSize> {
    let size = TitleSize { rate: BitRate(5), size: ByteCount(10) };
    names.iter().map(|name| (title(name), size)).collect()
}

impl Tested {
    fn start(
        member: &TestEtcdMember,
        address: &str,
        mut titles: impl FnMut() -> Result<BTreeMap<TitleName, TitleSize>, String> + Send + 'static,
    ) -> Self {
        Self::start_with(member, address, move || titles().map(ListedTitles::from))
    }

    fn start_with(
        member: &TestEtcdMember,
        address: &str,
        titles: impl FnMut() -> TitleListResult + Send + 'static,
    ) -> Self {
        let etcd = EtcdConfig {
            endpoints: vec![member.address().parse().unwrap()],
            cluster: ClusterName::new("c").unwrap(),
            access: <_>::default(),
        };
        let said = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&said);
        let say: Say = Arc::new(move |text: &str| locked(&heard).push(text.to_owned()));
        let watched = WatchedCluster::start(&etcd, Arc::clone(&say)).unwrap();
        let rules = CopyRules { extra: 0.0, ..CopyRules::default() };
        let config = PlanningConfig { rules, titles: Box::new(titles) };
        let unmet = Arc::new(UnmetDemand::new(Instant::now()));
        let settings = DirectorSettings { headroom: Headroom::None, ..DirectorSettings::default() };
        let (id, address) = (format!("id-of-{address}"), address.to_owned());
        let (of_director, patience) = (Arc::clone(&unmet), Duration::from_secs(1));
        let director = PlanningDirector { id, address, unmet: of_director, patience, settings };
        let planning = Planning::start(&etcd, director, watched, config, say).unwrap();
        Self { planning, unmet, said }
    }
}

fn put(etcd: &TestEtcd, change: &ClusterChange) {
    let (key, value) = change.to_record();
    match value {
        Some(value) => etcd.put(&format!("/tenuto/c/{key}"), &value),
        None => etcd.delete(&format!("/tenuto/c/{key}")),
    }
}

fn put_node(etcd: &TestEtcd, name: &str) {
    let digest = NodeDigest {
        address: format!("http://{name}"),
        rack: None,
        weight: 1,
        lease: 10,
        disks: vec![CapacityShare::all_free(100)],
        space: vec![CapacityShare::all_free(1000)],
        network: CapacityShare::all_free(100),
        memory: CapacityShare::all_free(100),
    };
    put(etcd, &ClusterChange::Node(NodeId::new(name).unwrap(), Some(digest)));
}

fn record(etcd: &TestEtcd, key: &str) -> Option<String> {
    let key = format!("/tenuto/c/{key}");
    etcd.records().into_iter().find(|(known, _)| *known == key).map(|(_, value)| value)
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(30), "it takes too long: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The titles that a node should fill.
fn fills(etcd: &TestEtcd, node: &str) -> Vec<CopyTarget> {
    let key = format!("orders/{node}");
    let value = record(etcd, &key);
    match ClusterChange::from_record(&key, value.as_deref().map(str::as_bytes)) {
        Ok(ClusterChange::Orders(_, orders)) => orders.fill,
        other => panic!("{other:?}"),
    }
}

#[test]
fn orders_are_written_until_the_copies_are_there() {
    let etcd = TestEtcd::new();
    let member = etcd.listen();
    for node in ["a", "b", "c"] {
        put_node(&etcd, node);
    }
    let tested = Tested::start(&member, "10.0.0.5:8090", || Ok(sizes(&["film", "song"])));
    let ordered = || ["a", "b", "c"].map(|node| fills(&etcd, node));
    until("orders for two copies of each", || ordered().concat().len() == 4);
    assert_eq!(record(&etcd, "planner").unwrap(), r#""10.0.0.5:8090""#);
    assert_eq!(etcd.is_leased("/tenuto/c/planner"), Some(true));
    assert_eq!(record(&etcd, "titles/film").unwrap(), r#"{"rate":5,"size":10}"#);
    // The state is shown after the pass that has written them.
    until("it shows so", || {
        let shown = tested.planning.shown();
        (shown.is_planner, shown.titles, shown.fills) == (true, 2, 4)
    });
    for (node, targets) in ["a", "b", "c"].into_iter().zip(ordered()) {
        for target in targets {
            let copy = CopyRecord::ready(target.disk, None);
            let node = NodeId::new(node).unwrap();
            put(&etcd, &ClusterChange::Copies(target.title, node, vec![copy]));
        }
    }
    until("nothing is ordered any more", || ordered().concat().is_empty());
    assert_eq!(record(&etcd, "orders/a"), None);
    // A node that is drained loses its copies to another.
    put(&etcd, &ClusterChange::Drained(NodeId::new("a").unwrap(), true));
    until("the copies of 'a' are wanted elsewhere", || {
        let [a, b, c] = ordered();
        a.is_empty() && b.iter().chain(&c).all(|target| target.disk == NodeDisk(0))
    });
    // Its viewers go on where there is room, a few at a time.
    put(&etcd, &ClusterChange::Viewers(NodeId::new("a").unwrap(), [(title("film"), 7)].into()));
    let remain =
        || record(&etcd, "orders/a").is_some_and(|it| it.contains(r#""remain":{"film":3}"#));
    until("four of seven viewers leave", remain);
}

#[test]
fn titles_that_the_bucket_has_no_more_are_told_and_stay() {
    let etcd = TestEtcd::new();
    let member = etcd.listen();
    put_node(&etcd, "a");
    let copy = vec![CopyRecord::ready(NodeDisk(0), None)];
    for name in ["film", "song"] {
        let change = ClusterChange::Copies(title(name), NodeId::new("a").unwrap(), copy.clone());
        put(&etcd, &change);
    }
    let listed = Arc::new(Mutex::new(Ok(sizes(&["film", "song"]))));
    let list = Arc::clone(&listed);
    let tested = Tested::start(&member, "d", move || locked(&list).clone());
    let told = || record(&etcd, "unlisted");
    until("it is known", || told().as_deref() == Some(r#"{"count":0,"titles":[]}"#));
    assert_eq!(etcd.is_leased("/tenuto/c/unlisted"), Some(true));
    drop(tested);
    until("nobody knows it", || told().is_none());
    // The next planner has a bucket with another title; then one that does not answer.
    for names in [&["film"][..], &[]] {
        *locked(&listed) = Ok(sizes(names));
        let list = Arc::clone(&listed);
        let tested = Tested::start(&member, "d", move || locked(&list).clone());
        let missing = ["film", "song"].into_iter().filter(|name| !names.contains(name));
        let missing: Vec<&str> = missing.collect();
        let wanted = serde_json::json!({ "count": missing.len(), "titles": missing }).to_string();
        until("it is told", || told() == Some(wanted.clone()));
        until("it is shown", || tested.planning.shown().unlisted as usize == missing.len());
        assert_eq!(record(&etcd, "orders/a"), None, "nothing is removed");
    }
    *locked(&listed) = Err("the bucket does not answer".to_owned());
    let list = Arc::clone(&listed);
    let tested = Tested::start(&member, "d", move || locked(&list).clone());
    until("it fails", || tested.planning.shown().error.is_some());
    assert_eq!((told(), record(&etcd, "orders/a")), (None, None));
}

#[test]
fn a_title_that_is_replaced_in_the_bucket_is_ordered_anew_and_the_nodes_own_is_not() {
    let etcd = TestEtcd::new();
    let member = etcd.listen();
    let [old, new, own] = ["old", "new", "own"].map(ContentTag::of);
    for (node, content) in [("a", old), ("b", own)] {
        put_node(&etcd, node);
        let copy = vec![CopyRecord::ready(NodeDisk(0), Some(content))];
        put(&etcd, &ClusterChange::Copies(title("film"), NodeId::new(node).unwrap(), copy));
    }
    let listed = |content: ContentTag| {
        let contents = BTreeMap::from([(title("film"), content)]);
        move || Ok(ListedTitles { contents: contents.clone(), ..sizes(&["film"]).into() })
    };
    let shown = |tested: &Tested| {
        let shown = tested.planning.shown();
        (shown.is_planner, shown.outdated, shown.own)
    };
    let tested = Tested::start_with(&member, "d", listed(old));
    until("both are known", || shown(&tested) == (true, 0, 1));
    let contents = || record(&etcd, "contents/film");
    until("it is remembered", || contents() == Some(format!(r#"["{old}"]"#)));
    assert_eq!(etcd.is_leased("/tenuto/c/contents/film"), Some(false));
    drop(tested);
    // Replaced while no director plans.
    let tested = Tested::start_with(&member, "d", listed(new));
    until("it is known", || shown(&tested) == (true, 1, 1));
    until("both are remembered", || contents() == Some(format!(r#"["{new}","{old}"]"#)));
    let target = CopyTarget { outdated: Some(old), ..CopyTarget::new(title("film"), NodeDisk(0)) };
    until("it is ordered", || fills(&etcd, "a") == [target.clone()]);
    assert_eq!(fills(&etcd, "b"), []);
    let copy = vec![CopyRecord::ready(NodeDisk(0), Some(new))];
    put(&etcd, &ClusterChange::Copies(title("film"), NodeId::new("a").unwrap(), copy));
    until("all is done", || record(&etcd, "orders/a").is_none() && shown(&tested).1 == 0);
}

#[test]
fn one_director_plans_and_another_takes_over() {
    let etcd = TestEtcd::new();
    let member = etcd.listen();
    put_node(&etcd, "a");
    let list = || Ok(sizes(&["film"]));
    let first = Tested::start(&member, "first", list);
    until("the first plans", || record(&etcd, "planner").as_deref() == Some("\"first\""));
    let second = Tested::start(&member, "second", list);
    std::thread::sleep(PAUSE * 3);
    assert!(!second.planning.shown().is_planner);
    // Another has the key, as after a pause in which the lease ended: nothing is written over it.
    etcd.expire_lease_of("/tenuto/c/planner");
    until("one of them plans", || record(&etcd, "planner").is_some());
    until("one of them knows it", || {
        first.planning.shown().is_planner != second.planning.shown().is_planner
    });
    let mut both = [first, second];
    both.sort_by_key(|tested| !tested.planning.shown().is_planner);
    let [planner, waiting] = both;
    drop(planner);
    until("the other plans", || waiting.planning.shown().is_planner);
    assert!(locked(&waiting.said).iter().any(|text| text.contains("plans the placement")));
}

#[test]
fn a_director_that_does_not_plan_tells_whom_it_has_refused() {
    let etcd = TestEtcd::new();
    let member = etcd.listen();
    put_node(&etcd, "a");
    let planner = Tested::start(&member, "first", || Ok(sizes(&["film"])));
    until("the first plans", || planner.planning.shown().is_planner);
    let second = Tested::start(&member, "second", || Ok(sizes(&["film"])));
    let client = "192.0.2.7".parse().unwrap();
    second.unmet.refused(&title("film"), client, Instant::now());
    until("it is told", || record(&etcd, "unmet/id-of-second").as_deref() == Some(r#"{"film":1}"#));
    assert_eq!(etcd.is_leased("/tenuto/c/unmet/id-of-second"), Some(true));
    assert_eq!(record(&etcd, "unmet/id-of-first"), None);
}

#[test]
fn each_director_has_an_identity_and_a_name_that_says_where_it_is() {
    for (listen, host, wanted) in [
        ("10.0.0.5:8090", "d1", "10.0.0.5:8090"),
        ("0.0.0.0:8090", "d1", "d1:8090"),
        ("[::]:8090", "d1.example", "d1.example:8090"),
        ("[::1]:8090", "d1", "[::1]:8090"),
        ("0.0.0.0:8090", "", "0.0.0.0:8090"),
    ] {
        assert_eq!(shown_address(listen.parse().unwrap(), host), wanted);
    }
    let ids = [0, 1].map(|_| {
        let unmet = Arc::new(UnmetDemand::new(Instant::now()));
        let listen = "0.0.0.0:8090".parse().unwrap();
        PlanningDirector::new(listen, unmet, DirectorSettings::default()).unwrap().id
    });
    assert!(ids[0] != ids[1] && ids[0].len() == 32, "{ids:?}");
}

#[test]
fn titles_that_cannot_be_listed_change_nothing_and_are_said_once() {
    let etcd = TestEtcd::new();
    let member = etcd.listen();
    put_node(&etcd, "a");
    let tested = Tested::start(&member, "d", || Err("the bucket does not answer".to_owned()));
    until("it is said", || tested.planning.shown().error.is_some());
    std::thread::sleep(PAUSE * 3);
    let said = locked(&tested.said).clone();
    let about_titles = said.iter().filter(|text| text.contains("does not answer")).count();
    assert_eq!(about_titles, 1, "{said:?}");
    assert_eq!((record(&etcd, "orders/a"), tested.planning.shown().titles), (None, 0));
}

#[test]
fn a_planner_that_cannot_list_the_bucket_leaves_planning_to_another() {
    let etcd = TestEtcd::new();
    let member = etcd.listen();
    put_node(&etcd, "a");
    let listed = Arc::new(Mutex::new(Err("its keys are refused".to_owned())));
    let list = Arc::clone(&listed);
    let bad = Tested::start(&member, "bad", move || locked(&list).clone());
    until("it gives up", || record(&etcd, "unable/id-of-bad").is_some());
    let why = "the titles of record are not known: its keys are refused";
    let told = serde_json::json!({ "address": "bad", "why": why }).to_string();
    assert_eq!(record(&etcd, "unable/id-of-bad"), Some(told));
    assert_eq!(etcd.is_leased("/tenuto/c/unable/id-of-bad"), Some(true));
    assert_eq!(record(&etcd, "planner"), None, "and does not plan again");
    let shown = || bad.planning.shown();
    until("it shows so", || shown().is_not_listed && !shown().is_planner);
    let good = Tested::start(&member, "good", || Ok(sizes(&["film"])));
    until("another plans", || record(&etcd, "planner").as_deref() == Some("\"good\""));
    until("orders are written", || record(&etcd, "orders/a").is_some());
    *locked(&listed) = Ok(sizes(&["film"]));
    until("the bucket can be listed again", || record(&etcd, "unable/id-of-bad").is_none());
    until("it waits for its turn", || shown().error.is_none());
    assert!(!shown().is_planner && !shown().is_not_listed);
    drop(good);
    until("it plans again", || record(&etcd, "planner").as_deref() == Some("\"bad\""));
    let said = locked(&bad.said).join("\n");
    assert!(said.contains("leaves the placement of titles to others"), "{said}");
}
