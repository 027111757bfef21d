//! Players of RTSP whom a director has sent to a node: with what ticket they go on, and with whose
//! reservation.

use crate::directed::{SECRET, VIEWER, ask, node};
use crate::fixture::{TestServer, TestStore, eventually, media};
use crate::rtsp::{Player, Reply, assert_balanced, interleaved};
use director::secret::ClusterSecret;
use director::ticket::Ticket;
use server::ServerConfig;
use server::access::{TokenClaims, ViewerLimits, new_key_file};
use std::time::Duration;
use testkit::etcd::TestEtcd;
use units::{BitRate, ByteCount};

pub(crate) const QUESTION: &str = "/t/film/rtsp";

pub(crate) fn with_rtsp(config: &mut ServerConfig) {
    config.rtsp = Some("127.0.0.1:0".parse().unwrap());
}

/// The path and query at which the node lets a viewer go on.
pub(crate) fn reserved(server: &TestServer, target: &str) -> String {
    let begun = ask(&mut server.client(), VIEWER, target);
    assert_eq!(begun.status, 201, "{target} {}", begun.text());
    let location = begun.field("location").unwrap();
    let port = server.server.rtsp_address().unwrap().port();
    let path = location.strip_prefix(&format!("rtsp://192.0.2.1:{port}"));
    path.unwrap_or_else(|| panic!("{location}")).to_owned()
}

fn describe(server: &TestServer, path: &str) -> Reply {
    Player::connect(server).ask("DESCRIBE", path, "")
}

/// A ticket of the cluster, or of another one.
fn signed(secret: &[u8], change: impl FnOnce(&mut Ticket)) -> String {
    let mut ticket = Ticket {
        session: "0".repeat(32),
        title: "film".to_owned(),
        version: "v".to_owned(),
        expires: u64::MAX,
        form: "rtsp".to_owned(),
        part: String::new(),
        max_height: None,
        priority: "normal".to_owned(),
        client: None,
        subject: None,
        token_id: None,
        until: None,
    };
    change(&mut ticket);
    ticket.sign(&ClusterSecret::from_bytes(secret).unwrap())
}

#[test]
fn a_player_goes_on_with_the_reservation_of_its_ticket() {
    let (fixture, etcd) = (TestStore::with(&[&media().film]), TestEtcd::new());
    let server = node(&fixture, &etcd, with_rtsp);
    let mut admitted = 0;
    for (question, path, tracks) in [
        (QUESTION, "/t/film", vec![interleaved(0), interleaved(1)]),
        ("/t/film/rtsp-ts", "/t/film/ts", Vec::new()),
    ] {
        let target = reserved(&server, question);
        assert!(target.starts_with(&format!("{path}?ticket=")), "{target}");
        eventually("it is reserved", || server.status("/sessions") == 1);
        // A player that describes and leaves has reserved nothing more, and may come again.
        assert_eq!(describe(&server, &target).status, 200);
        let mut player = Player::connect(&server);
        eventually("the ticket is free", || player.ask("DESCRIBE", &target, "").status == 200);
        player.set_up("film", &tracks);
        if tracks.is_empty() {
            let fields = "Transport: MP2T/RTP/TCP;interleaved=0-1\r\n";
            assert_eq!(player.ask("SETUP", path, fields).status, 200);
        }
        let played = player.ask("PLAY", path, "");
        assert_eq!(played.status, 200, "in place of the reservation: {played:?}");
        admitted += 1;
        assert_eq!(server.status("/admitted"), admitted, "the viewer counts once");
        eventually("one session is left", || server.status("/sessions") == 1);
        // On this connection the address stays good, and nowhere else.
        assert_eq!(player.ask("DESCRIBE", &target, "").status, 200);
        assert_eq!(describe(&server, &target).status, 454);
        assert_eq!(player.ask("TEARDOWN", path, "").status, 200);
        assert_balanced(&server);
        assert_eq!(describe(&server, &target).status, 454);
    }
}

#[test]
fn a_player_that_has_lost_its_node_does_not_wait_here() {
    let (fixture, etcd) = (TestStore::with(&[&media().heavy]), TestEtcd::new());
    let server = node(&fixture, &etcd, |config| {
        with_rtsp(config);
        config.wait = Duration::from_secs(30);
        config.segment = Duration::from_secs(1);
        // At normal speed there is room for two, and at twice the speed for one.
        config.network = Some(BitRate(320_000_000));
        config.memory = Some(ByteCount::mib(256));
    });
    let begin = |path: &str| {
        let mut player = Player::connect(&server);
        assert_eq!(player.ask("DESCRIBE", path, "").status, 200);
        player.set_up("heavy", &[interleaved(0)]);
        player
    };
    let last = || server.client().get("/api/v1/decisions").json()["decisions"][0].clone();
    let mut other = begin("/t/heavy");
    assert_eq!(other.ask("PLAY", "/t/heavy", "").status, 200);
    let mut player = begin(&reserved(&server, "/t/heavy/rtsp?start=2.5"));
    let sessions = server.client().get("/sessions").json();
    assert_eq!(sessions["sessions"][1]["position"], 2.5, "reserved from there on: {sessions}");
    let faster = "Range: npt=0-\r\nScale: 2\r\n";
    let shown = format!("{faster}Seek-Style: First-Prior\r\n");
    let refused = player.ask("PLAY", "/t/heavy", &shown);
    assert_eq!(
        (refused.status, last()["resource"].as_str()),
        (453, Some("network")),
        "{refused:?}"
    );
    // One that begins is given a later start.
    player.request("PLAY", "/t/heavy", faster);
    eventually("it waits", || last()["verdict"] == "later");
}

#[test]
fn tickets_without_a_reservation_of_the_title_are_refused() {
    let (fixture, etcd) = (TestStore::with(&[&media().film, &media().song]), TestEtcd::new());
    let server = node(&fixture, &etcd, with_rtsp);
    let target = reserved(&server, QUESTION);
    let good = target.split_once("ticket=").unwrap().1.to_owned();
    let (payload, tag) = good.split_once('.').unwrap();
    let other = if tag.starts_with('A') { 'B' } else { 'A' };
    let changed = format!("{payload}.{other}{}", &tag[1..]);
    let mut holder = Player::connect(&server);
    assert_eq!(holder.ask("DESCRIBE", &target, "").status, 200);
    for (ticket, status, what) in [
        ("x.y", 403, "not a ticket"),
        (&*signed(&[b'x'; 32], |_| {}), 403, "of another cluster"),
        (&*changed, 403, "changed"),
        (&*signed(SECRET, |it| it.title = "song".to_owned()), 403, "of another title"),
        (&*signed(SECRET, |it| it.form = "segmented".to_owned()), 403, "for HLS"),
        (&*signed(SECRET, |it| it.expires = 1), 454, "expired"),
        (&*signed(SECRET, |_| {}), 454, "of a session that is none"),
        (&*good, 454, "in use by another connection"),
    ] {
        let mut player = Player::connect(&server);
        let reply = player.ask("DESCRIBE", &format!("/t/film?ticket={ticket}"), "");
        assert_eq!(reply.status, status, "{what}: {reply:?}");
        let fields = "Transport: RTP/AVP/TCP;interleaved=0-1\r\n";
        let path = format!("/t/film/trackID=0?ticket={ticket}");
        assert_eq!(player.ask("SETUP", &path, fields).status, status, "{what}");
    }
    eventually("nothing more is reserved", || server.status("/admitted") == 1);
    assert_eq!(server.status("/sessions"), 1);
    // Nor does such a ticket open anything over HTTP.
    let answer =
        server.client().get(&format!("/t/film/0/0.m4s?s={}&ticket={good}", "0".repeat(32)));
    assert_eq!(answer.error(), "ticket-invalid");
    // And whoever is no director asks for nothing.
    assert_eq!(server.client().get(QUESTION).status, 404);
    assert_eq!(server.client().get(&format!("{QUESTION}-ts")).status, 404);
    drop(server);
    // Behind a router viewers reach it elsewhere.
    let routed = node(&fixture, &etcd, |config| {
        with_rtsp(config);
        if let Some(cluster) = &mut config.cluster {
            cluster.rtsp_address = Some("rtsp://media.example:554".to_owned());
        }
    });
    let begun = ask(&mut routed.client(), VIEWER, QUESTION);
    let location = begun.field("location").unwrap_or_default();
    assert!(location.starts_with("rtsp://media.example:554/t/film?ticket="), "{location}");
    drop(routed);
    let without = node(&fixture, &etcd, |_| {});
    assert_eq!(ask(&mut without.client(), VIEWER, QUESTION).error(), "no-rtsp");
    drop(without);
    let alone = fixture.serve_with(with_rtsp);
    assert_eq!(describe(&alone, &target).status, 403);
}

#[test]
fn the_ticket_stands_for_the_token_that_the_director_was_shown() {
    let (fixture, etcd) = (TestStore::with(&[&media().film, &media().song]), TestEtcd::new());
    let keys = fixture.directory.join("keys.json");
    new_key_file(&keys).unwrap();
    let token = |max_height| {
        let limits = ViewerLimits { max_height, ..ViewerLimits::default() };
        let claims = TokenClaims { exp: u64::MAX, limits, ..TokenClaims::default() };
        claims.sign(&keys).unwrap()
    };
    let server = node(&fixture, &etcd, |config| {
        with_rtsp(config);
        config.tokens = Some(keys.clone());
    });
    for (query, status) in [(String::new(), 401), (format!("?token={}", token(Some(10))), 403)] {
        let answer = ask(&mut server.client(), VIEWER, &format!("{QUESTION}{query}"));
        assert_eq!(answer.status, status, "{query}");
    }
    let target = reserved(&server, &format!("{QUESTION}?token={}", token(None)));
    let mut player = Player::connect(&server);
    assert_eq!(player.ask("DESCRIBE", &target, "").status, 200);
    player.set_up("film", &[interleaved(0)]);
    assert_eq!(player.ask("PLAY", "/t/film", "").status, 200);
    // For no other title.
    assert_eq!(player.ask("DESCRIBE", "/t/song", "").status, 401);
}

#[test]
fn a_drained_node_lets_go_whoever_goes_on_elsewhere() {
    let (fixture, etcd) = (TestStore::with(&[&media().film]), TestEtcd::new());
    let server = node(&fixture, &etcd, with_rtsp);
    let begin = |path: &str, supported: &str| {
        let mut player = Player::connect(&server);
        assert_eq!(player.ask("DESCRIBE", path, supported).status, 200);
        player.set_up("film", &[interleaved(0)]);
        // A minute of film.
        assert_eq!(player.ask("PLAY", "/t/film", "Scale: 0.1\r\n").status, 200);
        player
    };
    const GOES_ON: &str = "Supported: play.basic, tenuto.goes-on\r\n";
    let mut staying = [
        ("of another kind", begin(&reserved(&server, QUESTION), "")),
        ("without a director", begin("/t/film", GOES_ON)),
    ];
    let mut leaving = begin(&reserved(&server, QUESTION), GOES_ON);
    let remain = |count: u32| {
        etcd.put("/tenuto/c/orders/n1", &format!(r#"{{"remain":{{"film":{count},"other":0}}}}"#));
    };
    remain(2);
    leaving.read_to_goodbye(&[1]);
    leaving.read_to_end();
    eventually("two are left", || server.status("/sessions") == 2);
    // Nobody else goes, whatever is ordered.
    remain(0);
    let mut another = begin(&reserved(&server, QUESTION), GOES_ON);
    another.read_to_end();
    for (what, player) in &mut staying {
        assert_eq!(player.ask("GET_PARAMETER", "/t/film", "").status, 200, "{what}");
    }
    eventually("the others stay", || server.status("/sessions") == 2);
}
