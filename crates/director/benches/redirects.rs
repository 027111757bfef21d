//! Redirects per second of a director, and their times: viewers on kept connections, who ask again
//! as soon as they are answered, and nodes in the same process that always reserve.
//!
//! `cargo bench -p director --bench redirects` prints, for 1, 8 and 32 connections, the redirects
//! per second, the median and the 99th percentile of their times, and the processor time of the
//! whole process for each redirect: that of the viewers and of the nodes included. The number of
//! processors and the load of the machine belong to every figure.

#![allow(clippy::print_stdout, reason = "it prints what it measures")]

use cluster::{ClusterName, Headroom};
use director::etcd::EtcdConfig;
use director::secret::ClusterSecret;
use director::service::{DirectorService, ServiceConfig};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};
use testkit::etcd::TestEtcd;
use units::Times;

fn main() {
    let etcd = TestEtcd::new();
    for title in 0..TITLES {
        let record = r#"{"rate":5000000,"size":4000000000}"#;
        etcd.put(&format!("/tenuto/bench/titles/film-{title}"), record);
    }
    for node in 0..NODES {
        let share = format!(r#"{{"guaranteed":{MUCH},"free":{MUCH}}}"#);
        let digest = format!(
            r#"{{"address":"http://{}","weight":1,"lease":3600,"disks":[{share}],"network":{share},"memory":{share}}}"#,
            stub_node()
        );
        etcd.put(&format!("/tenuto/bench/nodes/n{node}"), &digest);
        for title in 0..TITLES {
            let key = format!("/tenuto/bench/copies/film-{title}/n{node}");
            etcd.put(&key, r#"[{"disk":0,"state":"ready"}]"#);
        }
    }
    let config = ServiceConfig {
        listen: "127.0.0.1:0".parse().expect("an address"),
        etcd: EtcdConfig {
            endpoints: vec![etcd.listen().address().parse().expect("an address")],
            cluster: ClusterName::new("bench").expect("a name"),
            access: <_>::default(),
        },
        tls: None,
        rtsp: None,
        secret: ClusterSecret::from_bytes(&[7; 32]).expect("32 bytes"),
        headroom: Headroom::Node,
        keep_free: 0.0,
        planning: None,
        check: None,
        version: String::new(),
    };
    let director = DirectorService::start(config, |text| println!("{text}")).expect("it starts");
    while !director.is_ready() {
        thread::sleep(Duration::from_millis(10));
    }
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("{processors} processors, load {}", load.split(' ').next().unwrap_or_default());
    for connections in [1, 8, 32] {
        measure(director.address(), connections);
    }
    director.stop();
}

fn measure(director: SocketAddr, connections: usize) {
    let (start, used) = (Instant::now(), processor_time());
    let viewers = (0..connections).map(|viewer| thread::spawn(move || watch(director, viewer)));
    let viewers: Vec<_> = viewers.collect();
    let mut times = Times::default();
    for viewer in viewers {
        times.add(&viewer.join().expect("a viewer"));
    }
    let (elapsed, used) = (start.elapsed(), processor_time().saturating_sub(used));
    let count = times.count();
    let rate = units::float(count) / elapsed.as_secs_f64();
    let [median, most] = times.two_quantiles([0.5, 0.99]);
    let each = used.as_secs_f64() * 1e6 / units::float(count.max(1));
    println!(
        "{connections:>3} connections: {rate:>7.0} redirects/s, median {median:?}, p99 {most:?}, \
         {each:.0} us of processor time each, {count} asked"
    );
}

/// A viewer who asks for one title after the other.
fn watch(director: SocketAddr, viewer: usize) -> Times {
    let mut stream = TcpStream::connect(director).expect("a connection");
    stream.set_nodelay(true).expect("a socket option");
    let mut times = Times::default();
    let start = Instant::now();
    let mut answer = [0; 2048];
    let mut title = viewer * 31;
    while start.elapsed() < FOR_EACH {
        title = (title + 1) % TITLES;
        let asked = Instant::now();
        let request = format!("GET /t/film-{title}/master.m3u8 HTTP/1.1\r\nHost: d\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("a request");
        let mut len = 0;
        while !answer[..len].ends_with(b"\r\n\r\n") {
            len += stream.read(&mut answer[len..]).expect("an answer");
        }
        assert!(answer.starts_with(b"HTTP/1.1 302"), "{}", String::from_utf8_lossy(&answer[..len]));
        times.record(asked.elapsed());
    }
    times
}

/// A node that always reserves.
fn stub_node() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            stream.set_nodelay(true).expect("a socket option");
            thread::spawn(move || {
                let mut bytes = [0; 2048];
                let mut len = 0;
                while let Ok(more @ 1..) = stream.read(&mut bytes[len..]) {
                    len += more;
                    if bytes[..len].ends_with(b"\r\n\r\n") {
                        len = 0;
                        if stream.write_all(RESERVED).is_err() {
                            return;
                        }
                    }
                }
            });
        }
    });
    address
}

/// Processor time of this process until now.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(") ").next().unwrap_or_default();
    let ticks = after_name.split(' ').skip(11).take(2).filter_map(|n| n.parse::<u64>().ok());
    // A tick of the kernel's accounts is 10 ms.
    Duration::from_millis(ticks.sum::<u64>() * 10)
}

const RESERVED: &[u8] =
    b"HTTP/1.1 201 Created\r\nLocation: /t/film/master.m3u8?s=0123456789abcdef\r\n\
    Content-Length: 0\r\n\r\n";
/// Titles, each with a copy on all nodes.
const TITLES: usize = 2000;
const NODES: usize = 4;
/// Bits per second or bytes that no run uses up.
const MUCH: u64 = 1 << 50;
const FOR_EACH: Duration = Duration::from_secs(5);
