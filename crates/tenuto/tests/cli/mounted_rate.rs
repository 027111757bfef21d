//! Files of a served store that are read at a reserved rate, beside viewers.

use crate::mounted::{LeftMount, noise, run};
use crate::program::{Served, TestDir};
use rustix::fs::{XattrFlags, getxattr, removexattr, setxattr};
use rustix::io::Errno;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

const RATE: &str = "user.tenuto.rate";

/// Sessions of the server that are files of its mount.
fn reservations(server: &Server<'_>) -> usize {
    let list = run(&["curl", "-sf", &format!("{}/sessions", server.0.origin)]);
    let list: serde_json::Value = serde_json::from_str(&list).expect("JSON");
    let all = list["sessions"].as_array().expect("a list").clone();
    all.iter().filter(|session| session["mount"] == true).count()
}

struct Server<'a>(&'a Served);

impl Server<'_> {
    /// Waits until so many files are reserved: a close is answered before it is complete.
    #[track_caller]
    fn comes_to(&self, wanted: usize) {
        for _ in 0..200 {
            if reservations(self) == wanted {
                return;
            }
            sleep(Duration::from_millis(50));
        }
        panic!("{} files with a rate, and not {wanted}", reservations(self));
    }
}

fn set(path: &str, value: &str) -> Result<(), Errno> {
    setxattr(path, RATE, value.as_bytes(), XattrFlags::empty())
}

fn get(path: &str) -> Result<String, Errno> {
    let mut value = [0; 100];
    let got = getxattr(path, RATE, &mut value)?;
    Ok(String::from_utf8_lossy(&value[..got]).into_owned())
}

#[track_caller]
fn mounted(dir: &TestDir, name: &str) -> String {
    let path = dir.path(&format!("mnt/a.store/{name}"));
    for _ in 0..600 {
        if path.exists() {
            return path.to_str().expect("UTF-8").to_owned();
        }
        sleep(Duration::from_millis(50));
    }
    panic!("{name} is mounted soon after the start");
}

#[test]
fn a_file_is_read_at_a_reserved_rate() {
    testkit::needs!(Root, Fuse, Mount);
    let dir = TestDir::with_store_of(96);
    dir.film("film.mp4");
    dir.write("a.bin", [7; 10_000]);
    dir.ok("ingest a.store film.mp4 --title film");
    dir.ok("ingest a.store a.bin --as file --title a.bin");
    dir.ok("ingest a.store film.mp4 --title other");
    dir.ok("export a.store film whole.mp4");
    let whole = dir.read("whole.mp4");
    let _left = LeftMount(dir.path("mnt/a.store"));
    let served = dir.serve("--mount mnt --grace 1s --as-disk hdd-20tb --max-client-unplayed 1");
    let server = Server(&served);
    let film = mounted(&dir, "film.mp4");
    assert_eq!(get(&film), Err(Errno::NODATA), "nothing is reserved");
    // A viewer beside it.
    run(&["curl", "-sfL", &format!("{}/t/film.mp4", served.origin), "-o", "/dev/null"]);
    let open = File::open(&film).unwrap();
    for rate in ["title", "25Mbps"] {
        assert_eq!(set(&film, rate), Ok(()), "{rate}");
        assert_eq!(get(&film).as_deref(), Ok(if rate == "title" { rate } else { "25000000" }));
        server.comes_to(1);
    }
    // One that has not been read yet is as many as there may be here.
    assert_eq!(set(&mounted(&dir, "other.mp4"), "title"), Err(Errno::BUSY));
    assert_eq!(get(&mounted(&dir, "other.mp4")), Err(Errno::NODATA));
    server.comes_to(1);
    // In order, elsewhere, and from many places at a time.
    let mut bytes = vec![0; whole.len()];
    open.read_exact_at(&mut bytes, 0).unwrap();
    assert!(bytes == whole);
    std::thread::scope(|scope| {
        for part in (0..8).rev() {
            let (open, whole) = (&open, &whole);
            scope.spawn(move || {
                let from = whole.len() * part / 8;
                let mut bytes = vec![0; 5000];
                let got = open.read_at(&mut bytes, from as u64).unwrap();
                assert_eq!(bytes[..got], whole[from..from + got], "from {from}");
            });
        }
    });
    let metrics = run(&["curl", "-sf", &format!("{}/metrics", served.origin)]);
    let reserved =
        metrics.lines().find_map(|it| it.strip_prefix("tenuto_mount_reserved_bytes_total "));
    let reserved: u64 = reserved.expect("a metric").parse().expect("a number");
    assert!(reserved >= whole.len() as u64, "{reserved} bytes of {}", whole.len());
    // What is refused changes nothing.
    let refused = [
        (set(&film, "fast"), Errno::INVAL),
        (set(&mounted(&dir, "a.bin"), "1Mbps"), Errno::OPNOTSUPP),
        (setxattr(&film, "user.other", b"x", XattrFlags::empty()), Errno::OPNOTSUPP),
        (setxattr(&film, RATE, b"title", XattrFlags::CREATE), Errno::EXIST),
    ];
    for (at, (result, errno)) in refused.into_iter().enumerate() {
        assert_eq!(result, Err(errno), "{at}");
    }
    assert_eq!(get(&film).as_deref(), Ok("25000000"));
    // Given back by removal, by no rate, and by the last close.
    assert_eq!(removexattr(&film, RATE), Ok(()));
    assert_eq!(removexattr(&film, RATE), Err(Errno::NODATA));
    server.comes_to(0);
    assert_eq!(set(&film, "title"), Ok(()));
    assert_eq!(set(&film, "0"), Ok(()));
    server.comes_to(0);
    assert_eq!(set(&film, "title"), Ok(()));
    server.comes_to(1);
    drop(open);
    server.comes_to(0);
    assert_eq!(get(&film), Err(Errno::NODATA));
    assert_eq!(served.stop(), Some(0));
    assert!(!Path::new(&film).exists(), "it is unmounted");
}

#[test]
fn each_file_of_a_mount_is_read_at_its_rate() {
    testkit::needs!(Root, Fuse, Mount);
    let dir = TestDir::with_store_of(96);
    dir.film("film.mp4");
    dir.ok("ingest a.store film.mp4 --title film");
    dir.ok("export a.store film whole.mp4");
    let _left = LeftMount(dir.path("mnt/a.store"));
    let served = dir.serve("--mount mnt --mount-rate title --grace 1s --as-disk hdd-20tb");
    let server = Server(&served);
    let film = mounted(&dir, "film.mp4");
    let open = File::open(&film).unwrap();
    server.comes_to(0);
    let mut bytes = [0; 1000];
    open.read_exact_at(&mut bytes, 40_000).unwrap();
    server.comes_to(1);
    assert!(fs::read(&film).unwrap() == dir.read("whole.mp4"));
    drop(open);
    server.comes_to(0);
    assert_eq!(served.stop(), Some(0));
}

/// Programs read from many places at a time, beside viewers of the same titles, with a rate and
/// without one: all bytes are right, and no viewer's read is late by fault of the schedule.
#[test]
fn scattered_reads_of_a_mount_go_beside_viewers() {
    testkit::needs!(Root, Fuse, Mount);
    let dir = TestDir::with_store_of(96);
    dir.film_of(20, "film.mp4");
    dir.write("a.bin", noise(3_000_000));
    dir.ok("ingest a.store film.mp4 --title film");
    dir.ok("ingest a.store a.bin --as file --title a.bin");
    dir.ok("export a.store film whole.mp4");
    let _left = LeftMount(dir.path("mnt/a.store"));
    let served = dir.serve("--mount mnt --grace 1s --as-disk hdd-20tb");
    let server = Server(&served);
    let (film, other) = (mounted(&dir, "film.mp4"), mounted(&dir, "a.bin"));
    let (whole, noise) = (dir.read("whole.mp4"), dir.read("a.bin"));
    let rated = File::open(&film).unwrap();
    assert_eq!(set(&film, "title"), Ok(()));
    server.comes_to(1);
    std::thread::scope(|scope| {
        for viewer in 0..3 {
            let (dir, url) = (&dir, format!("{}/t/film.mp4", served.origin));
            let whole = &whole;
            scope.spawn(move || {
                let seen = format!("seen{viewer}.mp4");
                let path = dir.path(&seen);
                // About as long as the readers read.
                let words = ["curl", "-sfL", "--limit-rate", "500k", &url, "-o"];
                run(&[&words[..], &[path.to_str().unwrap()]].concat());
                assert!(dir.read(&seen).ends_with(&whole[whole.len() - 1000..]), "{seen}");
            });
        }
        for reader in 0..6u64 {
            let (rated, film, other) = (&rated, &film, &other);
            let (whole, noise) = (&whole, &noise);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(reader);
                let opened = File::open(if reader % 2 == 0 { film } else { other }).unwrap();
                let (file, bytes) = match reader {
                    0 => (rated, whole),
                    _ if reader % 2 == 0 => (&opened, whole),
                    _ => (&opened, noise),
                };
                for _ in 0..60 {
                    let at = random.usize(..bytes.len());
                    let mut got = vec![0; random.usize(1..100_000).min(bytes.len() - at)];
                    file.read_exact_at(&mut got, at as u64).unwrap();
                    assert!(got == bytes[at..at + got.len()], "reader {reader} at {at}");
                }
            });
        }
    });
    let metrics = run(&["curl", "-sf", &format!("{}/metrics", served.origin)]);
    let value = |name: &str| -> u64 {
        let line = metrics.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("no {name}")).trim().parse().expect("a number")
    };
    assert_eq!(value("tenuto_guarantee_violations_total{cause=\"scheduler\"}"), 0);
    assert!(value("tenuto_mount_reserved_bytes_total ") > 0);
    drop(rated);
    server.comes_to(0);
    assert_eq!(served.stop(), Some(0));
    dir.ok("check a.store --scrub");
}
