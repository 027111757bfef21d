//! Handshakes and frames between two ends in one process, and clock offsets from given numbers.

use super::channel::{Receiver, Sender, accept, greet};
use super::clock::Offset;
use super::clock::offset;
use super::messages::About;
use super::messages::{AgentReply, AgentRequest};
use super::*;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;
use units::Hinted;

fn token(text: &str) -> Token {
    Token::new(text.as_bytes()).unwrap()
}

type Ends = (Receiver<UnixStream>, Sender<UnixStream>);

fn greeted(agent: &str, controller: &str) -> (Result<Ends, WireError>, Result<Ends, WireError>) {
    let (here, there) = UnixStream::pair().unwrap();
    let agent = token(agent);
    let thread = std::thread::spawn(move || {
        accept(there.try_clone().unwrap(), there, &agent, About::default())
    });
    let ours = greet(here.try_clone().unwrap(), here, &token(controller)).map(|(ends, _)| ends);
    (thread.join().unwrap(), ours)
}

const SECRET: &str = "a secret of some length";

#[test]
fn a_peer_with_the_token_is_accepted_and_frames_arrive_unchanged() {
    let (agent, controller) = greeted(SECRET, SECRET);
    let ((mut requests, mut replies), (mut from_agent, mut to_agent)) =
        (agent.unwrap(), controller.unwrap());
    for at in [7, 8] {
        to_agent.send(&AgentRequest::Begin(at, Vec::new())).unwrap();
        assert!(matches!(requests.receive().unwrap(), AgentRequest::Begin(got, _) if got == at));
    }
    replies.send(&AgentReply::Begun(3)).unwrap();
    assert!(matches!(from_agent.receive().unwrap(), AgentReply::Begun(3)));
}

#[test]
fn a_peer_without_the_token_is_told_the_reason() {
    let (agent, controller) = greeted(SECRET, "another secret of some length");
    let said = controller.err().unwrap().one_line();
    assert!(said.contains("does not know the token"), "{said}");
    assert!(agent.is_err());
    assert!(Token::new(b"  short \n").is_err());
}

/// Forwards every byte, and keeps a copy.
struct Tap(UnixStream, std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

impl Write for Tap {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.1.lock().unwrap().extend(bytes);
        self.0.write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

#[test]
fn a_repeated_or_changed_frame_is_rejected() {
    for change in [false, true] {
        let (here, there) = UnixStream::pair().unwrap();
        let heard = std::sync::Arc::default();
        let tap = Tap(here.try_clone().unwrap(), std::sync::Arc::clone(&heard));
        let thread = std::thread::spawn(move || {
            accept(there.try_clone().unwrap(), there, &token(SECRET), About::default()).unwrap()
        });
        let from = here.try_clone().unwrap();
        let ((_, mut sender), _) = greet(from, tap, &token(SECRET)).unwrap();
        let (mut requests, _replies) = thread.join().unwrap();
        heard.lock().unwrap().clear();
        sender.send(&AgentRequest::Stop).unwrap();
        assert!(matches!(requests.receive().unwrap(), AgentRequest::Stop));
        let mut frame = heard.lock().unwrap().clone();
        if change {
            *frame.last_mut().unwrap() ^= 1;
        }
        (&here).write_all(&frame).unwrap();
        let error = requests.receive::<AgentRequest>().unwrap_err().to_string();
        assert!(error.contains("a frame's seal is wrong"), "{error}");
    }
}

#[test]
fn another_version_and_another_protocol_are_named() {
    let said = |greeting: &[u8]| {
        let (here, there) = UnixStream::pair().unwrap();
        let length = u32::try_from(greeting.len()).unwrap().to_be_bytes();
        (&there).write_all(&length).unwrap();
        (&there).write_all(greeting).unwrap();
        drop(there);
        let greeted = greet(here.try_clone().unwrap(), here, &token(SECRET));
        greeted.err().unwrap().one_line()
    };
    let other = said(br#"{"version":9,"program":"7.5.0","nonce":"00"}"#);
    assert!(other.starts_with("the other side is tenuto 7.5.0 (protocol 9)"), "{other}");
    assert!(said(b"SSH-2.0").contains("not of a tenuto agent"));
    let (here, there) = UnixStream::pair().unwrap();
    (&there).write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
    let greeted = greet(here.try_clone().unwrap(), here, &token(SECRET));
    assert!(greeted.err().unwrap().to_string().contains("not of a tenuto agent"));
}

#[test]
fn a_controller_of_another_version_is_named_on_both_sides() {
    let (here, there) = UnixStream::pair().unwrap();
    let agent = std::thread::spawn(move || {
        accept(there.try_clone().unwrap(), there, &token(SECRET), About::default()).err().unwrap()
    });
    let frame = || {
        let mut length = [0; 4];
        (&here).read_exact(&mut length).unwrap();
        let mut frame = vec![0; usize::try_from(u32::from_be_bytes(length)).unwrap()];
        (&here).read_exact(&mut frame).unwrap();
        String::from_utf8(frame).unwrap()
    };
    assert!(frame().contains("nonce"), "the agent sends the first message");
    // The version is checked before the proof.
    let prove = br#"{"version":1,"program":"7.5.0","nonce":"00","mac":"00"}"#;
    (&here).write_all(&u32::try_from(prove.len()).unwrap().to_be_bytes()).unwrap();
    (&here).write_all(prove).unwrap();
    for said in [agent.join().unwrap().one_line(), frame()] {
        assert!(said.contains("the other side is tenuto 7.5.0 (protocol 1)"), "{said}");
        assert!(said.contains("use the same on both"), "{said}");
    }
}

#[test]
fn the_clock_offset_comes_from_the_shortest_exchange() {
    // Their clock is 1,000 ahead; the second exchange met a queue on its way back.
    let found = offset(&[(100, 1_150, 200), (300, 1_310, 5_000), (600, 1_605, 610)]).unwrap();
    assert_eq!(found, Offset { offset_ns: 1000, wrong_by_at_most_ns: 5 });
    assert_eq!(found.theirs(50), 1050);
    assert_eq!(Offset { offset_ns: -100, wrong_by_at_most_ns: 1 }.theirs(50), 0);
    assert_eq!(offset(&[]), None);
}

/// A controller's connection to an agent in this process that runs `program`.
fn connection(allowed: &[PathBuf], program: &str) -> AgentConnection {
    let (here, there) = UnixStream::pair().unwrap();
    let agent = Agent::new(token(SECRET), allowed, vec![program.into()]).unwrap();
    std::thread::spawn(move || agent.serve(there.try_clone().unwrap(), there, || Ok(())));
    let from = Box::new(here.try_clone().unwrap());
    connect("a", from, Box::new(here), &token(SECRET), std::time::Instant::now()).unwrap()
}

fn task(target: &str) -> WorkerTask {
    let profile = crate::profiles::named("dvcpro50").unwrap();
    let work = StreamsWork {
        profile,
        buffer: 8,
        layout: "one-file".into(),
        busy_poll: false,
        most: 1,
        within: None,
        part: None,
        null: false,
        warm: false,
    };
    WorkerTask {
        target: target.into(),
        size: 1 << 20,
        fill_level: None,
        buffered: false,
        drop_caches: false,
        verify: false,
        method: "best".into(),
        work: WorkerWork::Streams(work),
    }
}

fn refused(target: &str, workers: usize) -> String {
    let connection = connection(&[std::env::temp_dir()], "/bin/false");
    let mut fleet = Fleet::new(vec![connection], std::time::Instant::now());
    fleet.prepare(&[task(target)], workers, &mut |_| true).unwrap_err().one_line()
}

#[test]
fn an_agent_uses_only_allowed_directories() {
    let outside = refused("/proc", 1);
    assert!(outside.starts_with("agent a: /proc lies outside of what this agent"), "{outside}");
    let up = refused(&format!("{}/../proc", std::env::temp_dir().display()), 1);
    assert!(up.contains("lies outside") || up.contains("No such"), "{up}");
    let dir = std::env::temp_dir().join(format!("tenuto-out-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    std::os::unix::fs::symlink("/proc", dir.join("link")).unwrap();
    for name in ["link", "link/self"] {
        let linked = refused(&dir.join(name).display().to_string(), 1);
        assert!(linked.contains("lies outside of what this agent"), "{linked}");
    }
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn an_option_that_a_worker_does_not_have_is_no_message() {
    let task = serde_json::to_value(task("/films")).unwrap();
    assert!(serde_json::from_value::<WorkerTask>(task.clone()).is_ok());
    for option in ["destroy", "out", "metrics"] {
        let (mut with, mut work) = (task.clone(), task.clone());
        with[option] = true.into();
        work["work"]["Streams"][option] = true.into();
        assert!(serde_json::from_value::<WorkerTask>(with).is_err(), "{option}");
        assert!(serde_json::from_value::<WorkerTask>(work).is_err(), "{option}");
    }
}

#[test]
fn a_worker_that_ends_before_it_is_ready_ends_the_run() {
    let dir = std::env::temp_dir();
    let said = refused(dir.to_str().unwrap(), 2);
    assert!(said.starts_with("agent a: worker "), "{said}");
    assert!(refused(dir.to_str().unwrap(), 1000).contains("take 1 to 256"));
}

/// A worker that reads its task and says when its input has ended.
const WAITING: &str = "cat >/dev/null; echo over >$0";

/// A worker that reports without a pause until its input has ended, and says when it has.
const TALKING: &str = "yes '{\"Done\":[0,null]}' & cat >/dev/null; kill $!; echo over >$0";

/// An agent with this worker whose controller has ordered it and reads nothing: returns when the
/// agent has ended and its worker has cleaned up. With `beats` the controller sends signs of life.
fn given_up(name: &str, worker: &str, silence: Duration, beats: bool) {
    let dir = std::env::temp_dir().join(format!("tenuto-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let over = dir.join("over");
    let (here, there) = UnixStream::pair().unwrap();
    let command = ["sh", "-c", worker, over.to_str().unwrap()].map(Into::into).to_vec();
    let mut agent = Agent::new(token(SECRET), std::slice::from_ref(&dir), command).unwrap();
    agent.silence = silence;
    let serving =
        std::thread::spawn(move || agent.serve(there.try_clone().unwrap(), there, || Ok(())));
    let from = here.try_clone().unwrap();
    let ((_replies, mut requests), _) = greet(from, here, &token(SECRET)).unwrap();
    requests.send(&AgentRequest::Prepare(vec![task(dir.to_str().unwrap())], 1)).unwrap();
    // The connection stays open until the agent has ended.
    while beats && !serving.is_finished() {
        let _ = requests.send(&AgentRequest::Clock);
        std::thread::sleep(Duration::from_millis(5));
    }
    serving.join().unwrap().unwrap();
    assert_eq!(std::fs::read_to_string(&over).unwrap(), "over\n");
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn workers_end_when_their_controller_is_silent() {
    given_up("silent", WAITING, Duration::ZERO, false);
}

#[test]
fn workers_end_when_their_controller_hangs_and_reads_no_replies() {
    given_up("hanging", TALKING, Duration::from_millis(300), false);
}

#[test]
fn workers_end_when_their_controller_is_alive_and_reads_no_replies() {
    given_up("deaf", TALKING, Duration::from_secs(600), true);
}

#[test]
fn a_reply_that_a_controller_does_not_take_is_noticed() {
    // The number of replies that wait never reaches its bound here.
    let slow = "yes '{\"Done\":[0,null]}' | head -n 2000 & cat >/dev/null; wait; echo over >$0";
    given_up("slow", slow, Duration::from_millis(300), true);
}
