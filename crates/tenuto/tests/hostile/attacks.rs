//! What a stranger, or another user of the machine, can try, and what bounds it.
//!
//! | attack | bound | test |
//! |---|---|---|
//! | a copy of a store is served, or named in a command, while the original is served | the socket belongs to one living server, and commands compare the file | `a_copy_of_a_served_store_is_never_mistaken_for_it` |
//! | the control socket is removed or replaced, or its directory is | SIGTERM does not use the path | `a_server_stops_whatever_became_of_its_control_socket` |
//! | a directory for control sockets is made beforehand, for all to write | refused by servers and commands | `a_directory_of_sockets_that_others_may_write_is_refused` |
//! | a server is started with umask 0 | the socket's mode is 0600 | `the_control_socket_is_its_users_alone` |
//! | another user connects to the control socket | root and the server's user are served | `another_user_gives_the_server_no_commands` |
//! | manifests are requested and nothing is played | 16 such sessions for each client, each for 15 s | `ghosts_keep_their_own_client_out_and_no_other_viewer` |
//! | thousands of sessions are begun and abandoned | their reservations go to whoever needs them | `the_abandoned_sessions_of_others_keep_no_viewer_out` |
//! | one client opens thousands of connections | 1,000 for each client, told up to twice as many | `crates/server/tests/serve/hostile.rs`, `crates/server/src/clients.rs` |
//! | heads sent slowly, nothing sent, responses read by the byte | 10 s, 60 s, 16 KiB in 20 s | `crates/server/tests/serve/hostile.rs` |
//! | silent connections to an agent of the meter | 10 s for a handshake; the oldest of the largest crowd ends | `crates/tenuto/tests/cli/fleet.rs`, `crates/meter/src/fleet/handshake.rs` |
//! | a silent port instead of an agent | 10 s for a handshake | `crates/meter/src/fleet/handshake.rs` |
//! | a token file that others may read | refused | `crates/tenuto/tests/cli/fleet.rs` |
//! | names with bidirectional and zero-width controls | refused with the code point | `names.rs` |

use crate::program::{Room, Served, program};
use crate::stage::{connect, eventually};
use rustix::net::{AddressFamily, SocketType};
use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// A room with `a.store`, which has the file title `words`.
fn with_words() -> Room {
    let room = Room::with_store();
    room.write("words.txt", "no film\n");
    room.ok("ingest a.store words.txt --as file");
    room
}

fn socket(room: &Room) -> PathBuf {
    let entries = fs::read_dir(room.path("tenuto")).expect("the directory of sockets");
    let mut paths = entries.map(|entry| entry.expect("an entry").path());
    paths.find(|path| path.extension().is_some_and(|end| end == "sock")).expect("a socket")
}

#[test]
fn a_copy_of_a_served_store_is_never_mistaken_for_it() {
    let room = with_words();
    fs::copy(room.path("a.store"), room.path("b.store")).unwrap();
    let hint = "\nhint: run `tenuto relabel STORE --new-identity` on the copy\n";
    let run = room.run("serve a.store b.store --listen 127.0.0.1:0");
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(run.err.contains("b.store cannot be served: it has the identity of a.store"));
    assert!(run.err.ends_with(hint), "{}", run.err);

    let server = room.serve("");
    let asked = ["ls b.store", "rm b.store words", "ingest b.store words.txt --as file --title x"];
    for line in asked {
        room.fails(line, 1, "a.store is served under this store's identity, and one is a copy");
        room.fails(line, 1, hint);
    }
    let run = room.run("serve b.store --listen 127.0.0.1:0");
    assert!(run.code == Some(1) && run.err.ends_with(hint), "{run:?}");
    assert!(run.err.contains("it has the identity of a.store, which is served"), "{}", run.err);
    assert_eq!(room.ok("ls a.store"), "words\n", "the first server still answers");
    room.fails("relabel a.store --new-identity", 1, "hint: stop the server");

    let given = room.json("relabel b.store --new-identity");
    assert_eq!(given["before"], room.json("info a.store")["uuid"]);
    assert_eq!(given["uuid"], room.json("info b.store")["uuid"]);
    room.ok("rm b.store words");
    assert_eq!((room.ok("ls a.store").as_str(), room.ok("ls b.store").as_str()), ("words\n", ""));
    assert_eq!(server.stop(), Some(0));
    for store in ["a.store", "b.store"] {
        assert_eq!(room.json(&format!("check {store} --scrub"))["clean"], true, "{store}");
    }
}

/// Sends SIGTERM, and waits for the end of the server.
#[track_caller]
fn assert_stops(mut server: Served, context: &str) {
    let id = server.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    let mut code = None;
    eventually(context, || {
        code = server.child.try_wait().unwrap();
        code.is_some()
    });
    assert_eq!(code.unwrap().code(), Some(0), "{context}");
}

#[test]
fn a_server_stops_whatever_became_of_its_control_socket() {
    let room = Room::with_store();
    let server = room.serve("");
    fs::remove_file(socket(&room)).unwrap();
    assert_stops(server, "the socket is removed");

    let server = room.serve("");
    fs::remove_dir_all(room.path("tenuto")).unwrap();
    assert_stops(server, "the directory is removed");

    let server = room.serve("");
    let path = socket(&room);
    fs::remove_file(&path).unwrap();
    let other = UnixListener::bind(&path).unwrap();
    assert_stops(server, "the socket is replaced");
    assert!(UnixStream::connect(&path).is_ok(), "and the other one is left");
    drop(other);
}

#[test]
fn a_directory_of_sockets_that_others_may_write_is_refused() {
    let room = Room::with_store();
    let directory = room.path("tenuto");
    fs::create_dir(&directory).unwrap();
    fs::set_permissions(&directory, Permissions::from_mode(0o777)).unwrap();
    let hint = format!("\nhint: run `chmod 700 {}`\n", directory.display());
    for line in ["serve a.store --listen 127.0.0.1:0", "ls a.store"] {
        room.fails(line, 1, "other users may write to ");
        room.fails(line, 1, &hint);
    }
    fs::set_permissions(&directory, Permissions::from_mode(0o700)).unwrap();
    assert_eq!(room.serve("").stop(), Some(0));
}

#[test]
fn the_control_socket_is_its_users_alone() {
    for umask in ["0", "277"] {
        let room = Room::with_store();
        fs::create_dir(room.path("tenuto")).unwrap();
        fs::set_permissions(room.path("tenuto"), Permissions::from_mode(0o700)).unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("umask {umask}; exec \"$@\""), "sh"]);
        let tenuto = program(&room.path("."));
        shell.arg(tenuto.get_program()).current_dir(room.path("."));
        shell.env("XDG_RUNTIME_DIR", room.path("."));
        let server = room.serve_by(shell, "");
        let mode = fs::metadata(socket(&room)).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600, "umask {umask}");
        assert_eq!(room.ok("ls a.store"), "");
        assert_eq!(server.stop(), Some(0));
    }
}

#[test]
fn another_user_gives_the_server_no_commands() {
    testkit::needs!(Root);
    let room = with_words();
    let server = room.serve("");
    let path = socket(&room);
    // As if somebody had opened both by mistake.
    for (path, mode) in [(path.parent().unwrap(), 0o755), (&path, 0o666), (&room.path("."), 0o755)]
    {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }
    // The identity of this thread alone.
    let stranger = std::thread::spawn(move || {
        let nobody = rustix::process::Uid::from_raw(65534);
        rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let _ = stream.write_all(b"{\"rm\":{\"title\":\"words\"}}\n");
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    });
    let answer = stranger.join().unwrap();
    assert!(answer.contains("only root and the server's user"), "{answer}");
    assert_eq!(room.ok("ls a.store"), "words\n");
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn ghosts_keep_their_own_client_out_and_no_other_viewer() {
    let room = Room::with_store();
    room.film("film.mkv");
    room.ok("ingest a.store film.mkv");
    let server = room.serve("--max-client-unplayed 2");
    let port = server.origin.rsplit(':').next().expect("a port").to_owned();
    let get = |from: [u8; 4], path: &str| -> String {
        // Each loopback address is a client of its own.
        let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        rustix::net::bind(&socket, &SocketAddr::from((from, 0))).unwrap();
        let to = SocketAddr::from(([127, 0, 0, 1], port.parse().unwrap()));
        rustix::net::connect(&socket, &to).unwrap();
        let mut stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let head = format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    };
    let (attacker, viewer) = ([127, 0, 0, 66], [127, 0, 0, 7]);
    let master = "/t/film/master.m3u8";
    for _ in 0..2 {
        assert!(get(attacker, master).starts_with("HTTP/1.1 200 "));
    }
    for _ in 0..20 {
        let answer = get(attacker, master);
        assert!(answer.starts_with("HTTP/1.1 429 "), "{answer}");
        assert!(answer.contains("127.0.0.66 has 2 sessions that it has not begun"), "{answer}");
    }
    assert!(get(viewer, master).starts_with("HTTP/1.1 200 "), "another client is let in");
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn the_abandoned_sessions_of_others_keep_no_viewer_out() {
    let room = Room::with_store();
    room.film("film.mkv");
    room.ok("ingest a.store film.mkv");
    let server = room.serve("--throttle 40Mbps --memory 64MiB");
    let begin = || {
        let mut client = connect(&server);
        let master = client.get("/t/film/master.m3u8");
        if master.status == 200 {
            let token =
                master.text().split("?s=").nth(1).unwrap().split(['"', '\n']).next().unwrap();
            assert_eq!(client.get(&format!("/t/film/0.m3u8?s={token}")).status, 200);
        }
        master.status
    };
    eventually("abandoned sessions give way to abandoned sessions", || {
        begin();
        connect(&server).get("/status").json()["revoked"].as_u64().unwrap() > 0
    });
    eventually("and to a viewer", || begin() == 200);
    assert_eq!(server.stop(), Some(0));
}
