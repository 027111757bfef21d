//! One test body for both drivers: a small echo service on the loop, with blocking sockets of the
//! standard library as its peers.

use super::*;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;

/// Runs the same test on every driver that is available here.
fn on_both(test: impl Fn(Backend)) {
    test(Backend::Poll);
    match Sockets::with(Backend::Ring, None) {
        Ok(_) => test(Backend::Ring),
        // A container may forbid io_uring; the fallback is then what is used and tested.
        Err(error) => {
            assert!(error.raw_os_error().is_some(), "{error}");
            testkit::skip(testkit::Need::IoUring, &error.to_string());
        }
    }
}

/// A loop on a thread; `answer` maps each received piece to the reply.
struct Service {
    address: SocketAddr,
    waker: Waker,
    thread: Option<thread::JoinHandle<Vec<String>>>,
}

impl Service {
    fn start(
        method: Backend,
        mut answer: impl FnMut(Vec<u8>) -> Vec<SendSlice> + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        let thread = thread::spawn(move || {
            let mut sockets = Sockets::with(method, Some(listener)).unwrap();
            tell.send(sockets.waker()).unwrap();
            serve(&mut sockets, &mut answer)
        });
        Self { address, waker: told.recv().unwrap(), thread: Some(thread) }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    /// Ends the service; returns its notes in order.
    fn stop(mut self) -> Vec<String> {
        self.waker.wake();
        self.thread.take().unwrap().join().unwrap()
    }
}

fn serve(sockets: &mut Sockets, answer: &mut dyn FnMut(Vec<u8>) -> Vec<SendSlice>) -> Vec<String> {
    let (mut notes, mut events, mut tag) = (Vec::new(), Vec::new(), 0);
    loop {
        sockets.wait(Duration::from_secs(20), &mut events).unwrap();
        for event in events.drain(..) {
            match event {
                SocketEvent::Accepted { connection, .. } => {
                    sockets.recv(connection, Vec::with_capacity(4096));
                }
                SocketEvent::Received { connection, buffer, outcome: Ok(1..) } => {
                    tag += 1;
                    sockets.send(connection, answer(buffer), tag);
                    sockets.recv(connection, Vec::with_capacity(4096));
                }
                SocketEvent::Received { connection, outcome, .. } => {
                    notes.push(outcome.map_or("reset".to_owned(), |_| "ended".to_owned()));
                    sockets.finish(connection);
                    sockets.close(connection);
                }
                SocketEvent::SendFailed { connection, .. } => {
                    notes.push("send failed".to_owned());
                    sockets.close(connection);
                }
                SocketEvent::Closed { .. } => notes.push("closed".to_owned()),
                SocketEvent::Sent { .. } => {}
                SocketEvent::AcceptFailed { error } => panic!("{error}"),
                SocketEvent::Woken => return notes,
            }
        }
    }
}

fn echo(bytes: Vec<u8>) -> Vec<SendSlice> {
    vec![bytes.into()]
}

/// Waits until the peer sees the end of its connection; the loop may report it later.
fn wait_for_end(mut stream: TcpStream) {
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
}

#[test]
fn sent_bytes_come_back() {
    on_both(|method| {
        let service = Service::start(method, echo);
        let mut streams: Vec<TcpStream> = (0..20).map(|_| service.connect()).collect();
        for round in 0..3u8 {
            for stream in &mut streams {
                stream.write_all(&[round; 1000]).unwrap();
            }
            for stream in &mut streams {
                let mut back = [9; 1000];
                stream.read_exact(&mut back).unwrap();
                assert_eq!(back, [round; 1000]);
            }
        }
        for stream in streams {
            stream.shutdown(Shutdown::Write).unwrap();
            wait_for_end(stream);
        }
        let notes = service.stop();
        assert_eq!(notes.iter().filter(|note| *note == "ended").count(), 20, "{notes:?}");
    });
}

#[test]
fn thousands_of_small_requests_on_one_connection_are_answered() {
    on_both(|method| {
        let service = Service::start(method, echo);
        let mut stream = service.connect();
        stream.set_nodelay(true).unwrap();
        for i in 0..3000u32 {
            stream.write_all(&i.to_le_bytes()).unwrap();
            let mut back = [0; 4];
            stream.read_exact(&mut back).unwrap();
            assert_eq!(u32::from_le_bytes(back), i);
        }
        service.stop();
    });
}

#[test]
fn large_gathered_sends_arrive_whole_and_in_order() {
    on_both(|method| {
        let pool = crate::Pool::new(units::ByteCount::mib(64), units::ByteCount::mib(1));
        let service = Service::start(method, move |_| {
            // More slices than one call gathers, of both kinds and of odd sizes.
            let mut slices = Vec::new();
            for i in 0..200u8 {
                slices.push(vec![i; 17 + usize::from(i)].into());
                let mut buffer = pool.take(64 * 1024).unwrap();
                buffer.fill(i);
                slices.push(SendSlice::Buffer { buffer: buffer.freeze(), range: 1..60_001 });
            }
            slices
        });
        let mut expected = Vec::new();
        for i in 0..200u8 {
            expected.extend(std::iter::repeat_n(i, 17 + usize::from(i) + 60_000));
        }
        let mut stream = service.connect();
        for _ in 0..2 {
            stream.write_all(b"more").unwrap();
            let mut back = vec![0; expected.len()];
            stream.read_exact(&mut back).unwrap();
            assert!(back == expected, "bytes out of place");
        }
        service.stop();
    });
}

#[test]
fn a_peer_that_shuts_its_side_still_gets_its_answer() {
    on_both(|method| {
        let service = Service::start(method, |_| vec![vec![7; 3_000_000].into()]);
        let mut stream = service.connect();
        stream.write_all(b"all").unwrap();
        // The service closes when it sees the end, so the peer shuts its own side only after the
        // answer has begun to arrive.
        let mut first = [0; 1];
        stream.read_exact(&mut first).unwrap();
        let mut rest = vec![0; 2_999_999];
        stream.read_exact(&mut rest).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        wait_for_end(stream);
        assert_eq!(service.stop()[0], "ended");
    });
}

#[test]
fn a_peer_that_leaves_during_a_send_costs_only_its_connection() {
    on_both(|method| {
        let service = Service::start(method, |_| vec![vec![1; 64 << 20].into()]);
        let mut gone = service.connect();
        gone.write_all(b"much").unwrap();
        let mut some = [0; 100_000];
        gone.read_exact(&mut some).unwrap();
        // Closing with unread bytes resets the connection.
        drop(gone);

        let mut next = service.connect();
        next.write_all(b"much").unwrap();
        let mut all = vec![0; 64 << 20];
        next.read_exact(&mut all).unwrap();
        assert!(all.iter().all(|byte| *byte == 1));
        let notes = service.stop();
        assert!(notes.iter().any(|note| note == "reset" || note == "send failed"), "{notes:?}");
        assert!(notes.iter().any(|note| note == "closed"), "{notes:?}");
    });
}

#[test]
fn a_loop_that_ends_with_operations_in_flight_releases_every_buffer() {
    on_both(|method| {
        let bytes: Arc<[u8]> = vec![5; 32 << 20].into();
        let shared = Arc::clone(&bytes);
        let service = Service::start(method, move |_| {
            vec![SendSlice::Bytes { bytes: Arc::clone(&shared), range: 0..shared.len() }]
        });
        let mut stream = service.connect();
        stream.write_all(b"go").unwrap();
        let mut some = [0; 10];
        stream.read_exact(&mut some).unwrap();
        let idle = service.connect();
        service.stop();
        assert_eq!(Arc::strong_count(&bytes), 1, "a slice is still held");
        drop(idle);
    });
}

#[test]
fn taken_distinguishes_a_peer_that_reads_from_one_that_does_not() {
    on_both(|method| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut sockets = Sockets::with(method, Some(listener)).unwrap();
        let mut events = Vec::new();
        while events.is_empty() {
            sockets.wait(Duration::from_secs(20), &mut events).unwrap();
        }
        let [SocketEvent::Accepted { connection, .. }] = events[..] else { panic!("{events:?}") };
        events.clear();
        let size = 32 << 20;
        sockets.send(connection, vec![vec![1; size].into()], 1);
        let mut before = u64::MAX;
        // Until the kernel's buffers are full.
        while sockets.taken(connection) != before {
            before = sockets.taken(connection);
            sockets.wait(Duration::from_millis(200), &mut events).unwrap();
        }
        assert!(before > 0 && before < size as u64, "{before}");
        assert!(events.is_empty(), "{events:?}");
        let reader = thread::spawn(move || peer.read_exact(&mut vec![0; 32 << 20]));
        while events.is_empty() {
            sockets.wait(Duration::from_secs(20), &mut events).unwrap();
        }
        assert!(matches!(events[..], [SocketEvent::Sent { tag: 1, .. }]), "{events:?}");
        assert_eq!(sockets.taken(connection), size as u64);
        reader.join().unwrap().unwrap();
    });
}

#[test]
fn wake_ups_from_other_threads_are_never_lost() {
    on_both(|method| {
        let mut sockets = Sockets::with(method, None).unwrap();
        let waker = sockets.waker();
        let (tell, told) = std::sync::mpsc::channel();
        let other = thread::spawn(move || {
            for i in 0..2000 {
                tell.send(i).unwrap();
                waker.wake();
            }
        });
        let (mut events, mut seen) = (Vec::new(), 0);
        while seen < 2000 {
            sockets.wait(Duration::from_secs(20), &mut events).unwrap();
            assert!(!events.is_empty(), "woken too late: {seen} of 2000 seen");
            events.clear();
            seen += told.try_iter().count();
        }
        other.join().unwrap();
    });
}

#[test]
fn a_closed_connection_is_dead_and_its_number_does_not_come_back() {
    on_both(|method| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut sockets = Sockets::with(method, Some(listener)).unwrap();
        let mut events = Vec::new();
        let mut seen = Vec::new();
        for _ in 0..3 {
            let stream = TcpStream::connect(address).unwrap();
            let connection = loop {
                sockets.wait(Duration::from_secs(20), &mut events).unwrap();
                let found = events.drain(..).find_map(|event| match event {
                    SocketEvent::Accepted { connection, .. } => Some(connection),
                    _ => None,
                });
                if let Some(connection) = found {
                    break connection;
                }
            };
            assert!(!seen.contains(&connection), "{connection:?} used twice");
            seen.push(connection);
            sockets.recv(connection, Vec::with_capacity(10));
            sockets.close(connection);
            sockets.close(connection);
            sockets.send(connection, vec![b"late".to_vec().into()], 1);
            while !matches!(events[..], [SocketEvent::Closed { .. }]) {
                sockets.wait(Duration::from_secs(20), &mut events).unwrap();
            }
            sockets.recv(connection, Vec::with_capacity(10));
            wait_for_end(stream);
        }
    });
}
