//! A server as a node of a cluster: what it shows in etcd (in memory), and its answers to
//! directors.

use crate::client::{Client, TestResponse, playlist_uris};
use crate::fixture::{TestServer, TestStore, eventually, media};
use cluster::{ClusterName, NodeId};
use director::question::{
    CLIENT_HEADER, ELSEWHERE_HEADER, SIGNATURE_HEADER, STEERING_HEADER, SignedText,
};
use director::secret::ClusterSecret;
use director::ticket::Ticket;
use scheduler::PolicyKind;
use serde_json::Value;
use server::access::{TokenClaims, new_key_file};
use server::{ClusterConfig, ServerConfig};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use testkit::etcd::{TestEtcd, TestEtcdMember};

pub(crate) const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";
const MASTER: &str = "/t/film/master.m3u8";
pub(crate) const VIEWER: &str = "192.0.2.7";

/// The cluster `c` with the node `n1`, whose address is not used.
pub(crate) fn cluster(fixture: &TestStore, etcd: &TestEtcdMember) -> ClusterConfig {
    let secret: PathBuf = fixture.directory.join("secret");
    std::fs::write(&secret, SECRET).unwrap();
    std::fs::set_permissions(&secret, PermissionsExt::from_mode(0o600)).unwrap();
    ClusterConfig {
        etcd: vec![etcd.address().parse().unwrap()],
        etcd_access: <_>::default(),
        name: ClusterName::new("c").unwrap(),
        node: NodeId::new("n1").unwrap(),
        address: "http://192.0.2.1:8080".to_owned(),
        rtsp_address: None,
        rack: Some("r1".to_owned()),
        secret,
    }
}

/// A node that is registered.
pub(crate) fn node(
    fixture: &TestStore,
    etcd: &TestEtcd,
    change: impl FnOnce(&mut ServerConfig),
) -> TestServer {
    let member = etcd.listen();
    let serving = fixture.serve_with(|config| {
        config.cluster = Some(cluster(fixture, &member));
        change(config);
    });
    eventually("registered", || record(etcd, "nodes/n1").is_object());
    // The node hears of it a moment later.
    let asked = || ask(&mut serving.client(), VIEWER, "/t/none/master.m3u8");
    eventually("not cut off", || asked().error() != "cut-off");
    serving
}

/// A record of the cluster; null where there is none.
pub(crate) fn record(etcd: &TestEtcd, key: &str) -> Value {
    let key = format!("/tenuto/c/{key}");
    let found = etcd.records().into_iter().find(|(name, _)| *name == key);
    found.map_or(Value::Null, |(_, value)| serde_json::from_str(&value).unwrap())
}

/// Asks for a viewer as a director does.
pub(crate) fn ask(client: &mut Client, viewer: &str, target: &str) -> TestResponse {
    ask_telling(client, SignedText { client: viewer, target, ..SignedText::default() })
}

/// Asks, and tells of other nodes.
pub(crate) fn ask_telling(client: &mut Client, question: SignedText<'_>) -> TestResponse {
    let signature = ClusterSecret::from_bytes(SECRET).unwrap().sign(question);
    let fields = [
        (CLIENT_HEADER, question.client),
        (STEERING_HEADER, question.steering),
        (ELSEWHERE_HEADER, question.elsewhere),
        (SIGNATURE_HEADER, &*signature),
    ];
    client.request("GET", question.target, &fields)
}

#[test]
fn a_node_shows_its_titles_and_what_is_free_and_leaves_at_its_end() {
    let (fixture, etcd) = (TestStore::with(&[&media().film, &media().song]), TestEtcd::new());
    let serving = node(&fixture, &etcd, |config| config.network = Some(units::BitRate(10_000_000)));
    eventually("titles", || record(&etcd, "titles/song").is_object());
    let shown = record(&etcd, "nodes/n1");
    assert_eq!(shown["address"], "http://192.0.2.1:8080");
    assert_eq!(shown["rack"], "r1");
    assert_eq!(shown["network"]["guaranteed"], 10_000_000);
    let disk = &shown["disks"][0];
    assert_eq!(disk["free"], disk["guaranteed"]);
    // Below the rate of the interface of the disk that the store is calibrated as.
    let rate = disk["guaranteed"].as_u64().unwrap();
    assert!((100_000_000..4_500_000_000).contains(&rate), "{rate}");
    let copy = &record(&etcd, "copies/film/n1")[0];
    assert_eq!((&copy["disk"], &copy["state"]), (&0.into(), &"ready".into()));
    assert_eq!(copy["content"].as_str().map(str::len), Some(16), "{copy}");
    // 6 s of 1.5 Mb/s.
    let film = record(&etcd, "titles/film");
    assert!((900_000..2_000_000).contains(&film["rate"].as_u64().unwrap()), "{film}");
    let status = serving.client().get("/status").json();
    assert_eq!(status["cluster"]["registered"], true, "{status}");

    // A viewer takes free rate, and gives it back.
    let free = |resource: &str| {
        let shown = record(&etcd, "nodes/n1");
        let share = shown.pointer(resource).unwrap();
        (share["guaranteed"].as_u64().unwrap(), share["free"].as_u64().unwrap())
    };
    let mut client = serving.client();
    let session = playlist_uris(client.get(MASTER).text(), "/t/film/")[0].clone();
    for resource in ["/disks/0", "/network"] {
        eventually("less is free", || matches!(free(resource), (all, left) if left < all));
    }
    let token = session.split_once("s=").unwrap().1;
    client.request("DELETE", &format!("/t/film/session?s={token}"), &[]);
    eventually("all is free", || matches!(free("/disks/0"), (all, left) if left == all));

    // What stands still is not written again.
    let writes = etcd.writes();
    for _ in 0..3 {
        let status = serving.client().get("/status").json();
        assert_eq!(status["cluster"]["error"], Value::Null);
    }
    assert!(etcd.writes() <= writes + 1, "{writes} {}", etcd.writes());
    drop(serving);
    assert!(record(&etcd, "nodes/n1").is_null());
    assert!(record(&etcd, "copies/film/n1").is_null());
}

#[test]
fn a_question_begins_a_session_for_the_viewer_who_comes_with_its_token() {
    let (fixture, etcd) = (TestStore::with(&[&media().film]), TestEtcd::new());
    let serving = node(&fixture, &etcd, |_| {});
    for target in [
        MASTER,
        "/t/film/master-imsc.m3u8",
        "/t/film/manifest.mpd?start=1",
        "/t/film/ondemand.mpd",
        "/t/film/master-ts.m3u8",
        "/t/film.mp4?wait=5",
        "/t/film.ts?rate=3Mbps",
    ] {
        let mut director = serving.client();
        let begun = ask(&mut director, VIEWER, target);
        assert_eq!(begun.status, 201, "{target} {}", begun.text());
        let location = begun.field("location").unwrap().to_owned();
        let (path, token) = location.split_once("?s=").unwrap();
        assert_eq!(Some(path), target.split('?').next());
        // The director's connection says nothing of the viewer.
        drop(director);
        let mut viewer = serving.client();
        // Asked for again, as by a player whose connection broke, it is the same session.
        for _ in 0..2 {
            let answer = viewer.get(&location);
            assert_eq!(answer.status, 200, "{location}");
            if path.ends_with("m3u8") {
                let uris = playlist_uris(answer.text(), "/t/film/");
                assert!(!uris.is_empty() && uris.iter().all(|uri| uri.contains(token)), "{uris:?}");
            }
        }
        let sessions = serving.client().get("/sessions").json();
        assert_eq!(sessions["total"], 1, "{sessions}");
        let decisions = serving.client().get("/api/v1/decisions").json();
        assert_eq!(decisions["decisions"][0]["client"], VIEWER);
        viewer.request("DELETE", &format!("/t/film/session?s={token}"), &[]);
    }
    eventually("each question is counted once", || serving.status("/admitted") == 7);
}

#[test]
fn the_viewers_token_and_limits_count_and_not_the_directors() {
    let (fixture, etcd) = (TestStore::with(&[&media().film]), TestEtcd::new());
    let keys = fixture.directory.join("keys.json");
    new_key_file(&keys).unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let jwt = TokenClaims { exp: now + 600, ..TokenClaims::default() }.sign(&keys).unwrap();
    let serving = node(&fixture, &etcd, |config| {
        config.tokens = Some(keys.clone());
        config.max_client_unplayed = Some(1);
    });
    let (mut director, allowed) = (serving.client(), format!("{MASTER}?token={jwt}"));
    let mut asked = |viewer: &str, target: &str| {
        let answer = ask(&mut director, viewer, target);
        let word = if answer.status == 201 { String::new() } else { answer.error() };
        (answer.status, word, answer.field("location").map(str::to_owned))
    };
    assert_eq!(asked(VIEWER, MASTER), (401, "token-missing".to_owned(), None));
    let (status, _, location) = asked(VIEWER, &allowed);
    assert_eq!(status, 201);
    assert_eq!(asked(VIEWER, &allowed).1, "too-many-unplayed");
    assert_eq!(asked("192.0.2.8", &allowed).0, 201);
    assert_eq!(asked("2001:db8::1", &allowed).0, 201);
    // The session opens its manifest, and nothing else does.
    let location = location.unwrap();
    let mut viewer = serving.client();
    assert_eq!(viewer.get(&location).status, 200);
    assert_eq!(viewer.get(&format!("{location}&start=1")).error(), "token-missing");
    assert_eq!(viewer.get(&format!("{MASTER}?s={}", "0".repeat(32))).error(), "token-missing");
}

#[test]
fn questions_that_are_no_directors_are_refused() {
    let (fixture, etcd) = (TestStore::with(&[&media().film]), TestEtcd::new());
    let serving = node(&fixture, &etcd, |_| {});
    let secret = ClusterSecret::from_bytes(SECRET).unwrap();
    let other = ClusterSecret::from_bytes(&[b'x'; 32]).unwrap();
    let by = |secret: &ClusterSecret, target| {
        secret.sign(SignedText { client: VIEWER, target, ..SignedText::default() })
    };
    let rows = [
        (MASTER, by(&secret, MASTER), VIEWER, "201 "),
        (MASTER, by(&other, MASTER), VIEWER, "403 director-unknown"),
        (MASTER, by(&secret, "/t/film.mp4"), VIEWER, "403 director-unknown"),
        (MASTER, by(&secret, MASTER), "192.0.2.9", "403 director-unknown"),
        (MASTER, by(&secret, MASTER), "", "403 director-unknown"),
        (MASTER, String::new(), VIEWER, "403 director-unknown"),
        (MASTER, "zz".repeat(32), VIEWER, "403 director-unknown"),
        ("/titles", by(&secret, "/titles"), VIEWER, "400 bad-question"),
        ("/t/none/master.m3u8", by(&secret, "/t/none/master.m3u8"), VIEWER, "404 no-title"),
    ];
    for (target, signature, client, wanted) in rows {
        let fields = [(CLIENT_HEADER, client), (SIGNATURE_HEADER, &*signature)];
        let answer = serving.client().request("GET", target, &fields);
        let word = if answer.status == 201 { String::new() } else { answer.error() };
        assert_eq!(format!("{} {word}", answer.status), wanted, "{target} {client}");
    }
    drop(serving);
    let alone = fixture.serve();
    assert_eq!(ask(&mut alone.client(), VIEWER, MASTER).error(), "director-unknown");
}

#[test]
fn a_node_that_is_cut_off_serves_those_who_come_directly() {
    let (fixture, etcd) = (TestStore::with(&[&media().film]), TestEtcd::new());
    let member = etcd.listen();
    member.refuse(true);
    let serving = fixture.serve_with(|config| config.cluster = Some(cluster(&fixture, &member)));
    let answer = ask(&mut serving.client(), VIEWER, MASTER);
    assert_eq!((answer.status, &*answer.error()), (503, "cut-off"));
    assert!(answer.field("retry-after").is_some());
    assert_eq!(serving.client().get(MASTER).status, 200);
    eventually("the reason is told", || {
        serving.client().get("/status").json()["cluster"]["error"].is_string()
    });
    member.refuse(false);
    eventually("registered", || ask(&mut serving.client(), VIEWER, MASTER).status == 201);
    assert!(record(&etcd, "nodes/n1").is_object());
}

#[test]
fn a_node_that_ends_shows_that_nothing_is_free_and_what_it_has() {
    let (fixture, etcd) = (TestStore::with(&[&media().film]), TestEtcd::new());
    let serving = node(&fixture, &etcd, |_| {});
    eventually("titles", || record(&etcd, "copies/film/n1").is_array());
    let mut viewer = serving.client();
    assert_eq!(viewer.get(MASTER).status, 200);
    serving.server.stop(Duration::from_secs(60));
    // A director that knows the title can say when to come again; to others it would be unknown.
    let disk = || record(&etcd, "nodes/n1")["disks"][0].clone();
    eventually("nothing is free", || disk()["guaranteed"] == 0);
    assert!(record(&etcd, "copies/film/n1").is_array());
    assert_eq!(ask(&mut serving.client(), VIEWER, MASTER).error(), "stopping");
}

/// The address of the first variant of a playlist.
pub(crate) fn variant_of(playlist: &str) -> String {
    let line = playlist.lines().find(|line| line.contains(".m3u8") && !line.starts_with('#'));
    format!("/t/film/{}", line.unwrap())
}

#[test]
fn a_viewer_goes_on_at_another_node_with_the_ticket_of_the_first() {
    let etcd = TestEtcd::new();
    let stores = [TestStore::with(&[&media().film]), TestStore::with(&[&media().film])];
    // On a busy machine the disk seems slower than it was measured, and a question does not wait.
    // Who goes on is tested here, not who is admitted.
    let first = node(&stores[0], &etcd, |config| config.policy = PolicyKind::None);
    let second = node(&stores[1], &etcd, |config| {
        config.policy = PolicyKind::None;
        config.cluster.as_mut().unwrap().node = NodeId::new("n2").unwrap();
    });
    let elsewhere = format!("n2=http://{}", second.server.address());
    let steering = "http://d/steer/film?node=n1";
    let question = SignedText { client: VIEWER, target: MASTER, steering, elsewhere: &elsewhere };
    let told = |target| {
        let asked = ask_telling(&mut first.client(), SignedText { target, ..question });
        let location = asked.field("location").unwrap().to_owned();
        first.client().get(&location).text().to_owned()
    };
    let manifest = told("/t/film/manifest.mpd");
    let base = format!(
        "<BaseURL serviceLocation=\"n2\">http://{}/t/film/</BaseURL>",
        second.server.address()
    );
    assert!(manifest.contains(&base) && manifest.contains("&amp;ticket="), "{manifest}");
    let server = "<ContentSteering>http://d/steer/film?node=n1&amp;s=";
    assert!(manifest.contains(server), "{manifest}");
    assert!(manifest.contains("&amp;locations=n1,n2</ContentSteering>"), "{manifest}");
    let transport = told("/t/film/master-ts.m3u8");
    assert!(!transport.contains("STEERING"), "{transport}");

    let master = told(MASTER);
    let variant = variant_of(&master);
    let (_, query) = variant.split_once('?').unwrap();
    let tag = format!(
        "#EXT-X-CONTENT-STEERING:SERVER-URI=\"{steering}&{query}&names=1,0,0-iframes\",\
         PATHWAY-ID=\"n1\""
    );
    assert!(master.contains(&tag), "{master}");
    let (own, _) = query.split_once('&').unwrap();
    // From memory, nothing is reserved.
    let mut viewer = second.client();
    let playlist = viewer.get(&variant).text().to_owned();
    let at_first = first.client().get(&variant).text().to_owned();
    assert_eq!(playlist.replace(query, own), at_first);
    assert_eq!(second.client().get("/sessions").json()["total"], 0);
    // A segment is the same, and begins a session; another track is of the same session.
    for segment in ["/t/film/0/1.m4s", "/t/film/1/1.m4s", "/t/film/0/2.m4s"] {
        let here = viewer.get(&format!("{segment}?{query}"));
        assert_eq!(here.status, 200, "{segment}");
        assert_eq!(here.body, first.client().get(&format!("{segment}?{own}")).body, "{segment}");
    }
    let sessions = second.client().get("/sessions").json();
    assert_eq!(sessions["total"], 1, "{sessions}");
    // From then on the session is one of this node, which ends as any other.
    assert_eq!(viewer.get(&format!("/t/film/0/0.m4s?{own}")).status, 200);
    viewer.request("DELETE", &format!("/t/film/session?{own}"), &[]);
    assert_eq!(viewer.get(&format!("/t/film/0/0.m4s?{query}")).error(), "session-ended");
}

/// An operator of either node finds the sessions of a customer.
#[test]
fn a_session_that_goes_on_at_another_node_is_of_the_same_customer() {
    let etcd = TestEtcd::new();
    let stores = [TestStore::with(&[&media().film]), TestStore::with(&[&media().film])];
    let keys = stores[0].directory.join("keys.json");
    new_key_file(&keys).unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let claims = || TokenClaims { exp: now + 600, ..TokenClaims::default() };
    let viewer = TokenClaims { sub: Some("a b".to_owned()), jti: Some("t".to_owned()), ..claims() };
    let operator = TokenClaims { operator: true, ..claims() }.sign(&keys).unwrap();
    let serve = |store, name: &str| {
        node(store, &etcd, |config| {
            config.policy = PolicyKind::None;
            config.tokens = Some(keys.clone());
            config.cluster.as_mut().unwrap().node = NodeId::new(name).unwrap();
        })
    };
    let first = serve(&stores[0], "n1");
    let second = serve(&stores[1], "n2");
    let target = &*format!("{MASTER}?token={}", viewer.sign(&keys).unwrap());
    let elsewhere = &*format!("n2=http://{}", second.server.address());
    let steering = "http://d/steer/film?node=n1";
    let question = SignedText { client: VIEWER, target, steering, elsewhere };
    let asked = ask_telling(&mut first.client(), question);
    let master = first.client().get(asked.field("location").unwrap()).text().to_owned();
    let variant = variant_of(&master);
    let (_, query) = variant.split_once('?').unwrap();
    assert_eq!(second.client().get(&format!("/t/film/0/1.m4s?{query}")).status, 200);
    for serving in [first, second] {
        let path = format!("/api/v1/sessions?subject=a%20b&token={operator}");
        let list = serving.client().get(&path).json();
        assert_eq!((&list["total"], &list["sessions"][0]["token_id"]), (&1.into(), &"t".into()));
    }
}

#[test]
fn tickets_that_are_not_for_a_request_open_nothing() {
    let etcd = TestEtcd::new();
    let stores = [(); 3].map(|()| TestStore::with(&[&media().film, &media().song]));
    let first = node(&stores[0], &etcd, |_| {});
    let named = |name: &str, config: &mut ServerConfig| {
        config.cluster.as_mut().unwrap().node = NodeId::new(name).unwrap();
    };
    let second = node(&stores[1], &etcd, |config| named("n2", config));
    let other_segments = node(&stores[2], &etcd, |config| {
        named("n3", config);
        config.segment = Duration::from_secs(1);
    });
    let (steering, elsewhere) = ("http://d/", "n2=http://n2");
    let question = SignedText { client: VIEWER, target: MASTER, steering, elsewhere };
    let asked = ask_telling(&mut first.client(), question);
    let master = first.client().get(asked.field("location").unwrap()).text().to_owned();
    let variant = variant_of(&master);
    let (_, query) = variant.split_once('?').unwrap();
    let (session, ticket) = query.split_once("&ticket=").unwrap();
    let changed = ticket.replacen('A', "B", 1);
    let rows = [
        (format!("/t/film/0/1.m4s?{session}"), 404, "session-unknown"),
        (format!("/t/film/0/1.m4s?ticket={ticket}"), 404, "session-missing"),
        (format!("/t/film/0/1.m4s?{session}&ticket={changed}"), 403, "ticket-invalid"),
        (format!("/t/film/0/1.m4s?{session}&ticket=x"), 403, "ticket-invalid"),
        (format!("/t/film/0/1.m4s?s={}&ticket={ticket}", "0".repeat(32)), 403, "ticket-invalid"),
        (format!("/t/song/0/1.m4s?{query}"), 403, "ticket-invalid"),
        (format!("/t/film/0/99.m4s?{query}"), 404, "not-found"),
        (format!("/t/film.mp4?{query}"), 404, "session-unknown"),
    ];
    for (address, status, word) in rows {
        let answer = second.client().get(&address);
        assert_eq!((answer.status, &*answer.error()), (status, word), "{address}");
    }
    let text = ticket.split_once('&').map_or(ticket, |(ticket, _)| ticket);
    let secret = ClusterSecret::from_bytes(SECRET).unwrap();
    let of_version = |change: &dyn Fn(&str) -> String| {
        let mut changed = Ticket::verify(text, &secret, 0).unwrap();
        changed.version = change(&changed.version);
        let query = variant.replace(text, &changed.sign(&secret));
        let answer = second.client().get(&query);
        (answer.status, if answer.status == 200 { String::new() } else { answer.error() })
    };
    let of_content = |version: &str| format!("x{version}");
    assert_eq!(of_version(&of_content), (404, "other-version".to_owned()));
    let of_program = |version: &str| format!("{}~0.0.1", version.split_once('~').unwrap().0);
    assert_eq!(of_version(&of_program), (200, String::new()), "a node before its upgrade");
    let answer = other_segments.client().get(&variant);
    assert_eq!((answer.status, &*answer.error()), (404, "other-version"));
    assert_eq!(second.client().get("/sessions").json()["total"], 0);
}
