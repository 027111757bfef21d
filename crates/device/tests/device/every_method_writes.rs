//! One test body for every write method, as `every_method.rs` is for reads.

use crate::methods::{
    DEPTH, SIZE, all, by_every_method, fill, new_file, on_every_device, pattern, pool, said,
};
use crate::scratch::{LoopDevice, Mount, TempDir, sealed_memory};
use device::{BlockDevice, Completion, Direction, FileDevice, Method, OpenOptions};
use std::time::Duration;

/// Writes 8 KiB at each of these places; returns the results as text.
fn write_places(device: &dyn BlockDevice, places: &[u64]) -> Vec<String> {
    let pool = pool();
    let mut queue = device.queue(DEPTH, &pool).unwrap();
    for (tag, place) in places.iter().enumerate() {
        let mut buffer = pool.take(8192).unwrap();
        buffer.copy_from_slice(&pattern(*place, 8192));
        queue.submit_write(tag as u64, *place, buffer).unwrap();
    }
    said(&all(&mut *queue))
}

/// The current content, read from outside.
fn content(device: &dyn BlockDevice) -> Vec<u8> {
    device.flush().unwrap();
    let mut bytes = vec![0; usize::try_from(device.geometry().size.0).unwrap()];
    device.read_at(0, &mut bytes).unwrap();
    bytes
}

/// Pieces of the device in random order: offset and length of each.
fn pieces(rng: &mut fastrand::Rng) -> Vec<(u64, usize)> {
    let (mut pieces, mut at) = (Vec::new(), 0);
    while at < SIZE {
        let len = (4096 << rng.u32(0..=8)).min(SIZE - at);
        pieces.push((at, usize::try_from(len).unwrap()));
        at += len;
    }
    rng.shuffle(&mut pieces);
    pieces
}

#[test]
fn a_queues_writes_are_read_back_while_other_places_are_read() {
    on_every_device("writes", |device| {
        fill(&**device);
        let (pool, mut rng) = (pool(), fastrand::Rng::with_seed(5));
        let mut queue = device.queue(DEPTH, &pool).unwrap();
        let pieces = pieces(&mut rng);
        let is_written = |i: usize| !i.is_multiple_of(3);
        let (mut submitted, mut ended, mut done) = (0, 0, Vec::new());
        while ended < pieces.len() {
            while submitted < pieces.len() && queue.in_flight() < DEPTH {
                let (offset, len) = pieces[submitted];
                let mut buffer = pool.take(len).unwrap();
                if is_written(submitted) {
                    buffer.copy_from_slice(&pattern(offset + SIZE, len));
                    queue.submit_write(submitted as u64, offset, buffer).unwrap();
                } else {
                    queue.submit(submitted as u64, offset, buffer).unwrap();
                }
                submitted += 1;
            }
            queue.wait(Duration::from_secs(20), &mut done).unwrap();
            for Completion { tag, direction, buffer, result } in done.drain(..) {
                result.unwrap();
                let i = usize::try_from(tag).unwrap();
                let (offset, len) = pieces[i];
                assert_eq!(direction == Direction::Write, is_written(i));
                let bytes = if is_written(i) { offset + SIZE } else { offset };
                assert!(buffer[..] == pattern(bytes, len), "{direction:?} {len} at {offset}");
                ended += 1;
            }
        }
        drop(queue);
        assert_eq!(pool.used().0, 0, "every buffer came back");
        let bytes = content(&**device);
        for (i, (offset, len)) in pieces.into_iter().enumerate() {
            let wanted = if is_written(i) { offset + SIZE } else { offset };
            let start = usize::try_from(offset).unwrap();
            assert!(bytes[start..start + len] == pattern(wanted, len), "{len} bytes at {offset}");
        }
    });
}

#[test]
fn writes_beyond_the_end_or_between_blocks_are_refused() {
    on_every_device("write bounds", |device| {
        fill(&**device);
        let said = write_places(&**device, &[SIZE, SIZE - 4096, u64::MAX - 4095, 100, 0]);
        for (said, named) in said.iter().zip(["ends at", "ends at", "ends at", "not whole", "good"])
        {
            assert!(said.contains(named), "{said:?} should say {named:?}");
        }
        assert!(said[0].starts_with("writing 8192 bytes at 8388608 of "), "{said:?}");
        assert!(content(&**device) == pattern(0, usize::try_from(SIZE).unwrap()));
    });
}

#[test]
fn cancelled_or_dropped_writes_return_their_buffers() {
    on_every_device("writes called off", |device| {
        let pool = pool();
        let mut queue = device.queue(DEPTH, &pool).unwrap();
        for tag in 0..8 {
            let mut buffer = pool.take(1 << 20).unwrap();
            buffer.copy_from_slice(&pattern(tag << 20, 1 << 20));
            queue.submit_write(tag, tag << 20, buffer).unwrap();
        }
        let mut done = Vec::new();
        queue.wait(Duration::ZERO, &mut done).unwrap();
        queue.cancel().unwrap();
        done.extend(all(&mut *queue));
        done.sort_by_key(|completion| completion.tag);
        assert_eq!(done.iter().map(|c| c.tag).collect::<Vec<_>>(), (0..8).collect::<Vec<_>>());
        let bytes = content(&**device);
        for (completion, there) in done.iter().zip(bytes.chunks(1 << 20)) {
            match &completion.result {
                Ok(()) => assert!(there == pattern(completion.tag << 20, 1 << 20)),
                Err(error) => assert!(error.is_cancelled(), "{error}"),
            }
        }
        drop(done);
        queue.submit_write(8, 0, pool.take(1 << 20).unwrap()).unwrap();
        drop(queue);
        assert_eq!(pool.used().0, 0);
    });
}

#[test]
fn a_device_opened_for_reading_refuses_writes() {
    let scratch = TempDir::new("read only");
    let path = new_file(scratch.path(), "file");
    let before = std::fs::read(&path).unwrap();
    for (_, method) in Method::NAMES {
        for direct in [true, false] {
            let options = OpenOptions { direct, ..OpenOptions::default() };
            let device = FileDevice::open(&path, options).unwrap();
            let pool = pool();
            let mut queue = device.queue_by(method, 2, &pool).unwrap();
            queue.submit_write(0, 4096, pool.take(4096).unwrap()).unwrap();
            queue.submit(1, 4096, pool.take(4096).unwrap()).unwrap();
            let said = said(&all(&mut *queue));
            assert!(said[0].starts_with("writing 4096 bytes at 4096 of "), "{method}: {said:?}");
            assert!(said[0].ends_with("it is open for reading only"), "{method}: {said:?}");
            assert_eq!(said[1], "good", "{method}");
            let error = device.write_at(0, &[1; 4096]).unwrap_err().to_string();
            assert!(error.ends_with("it is open for reading only"), "{error}");
        }
    }
    assert!(std::fs::read(&path).unwrap() == before);
}

#[test]
fn a_truncated_file_is_not_extended_again() {
    let scratch = TempDir::new("writes cut short");
    by_every_method(
        |name| Some(new_file(scratch.path(), name)),
        |_, path, device| {
            std::fs::File::options().write(true).open(path).unwrap().set_len(10_000).unwrap();
            let said = write_places(&*device, &[8192, 4 << 20, 0]);
            assert!(
                said[0].contains("ends after 1808 of them; has it been cut short?"),
                "{said:?}"
            );
            assert!(said[1].contains("ends after 0 of them"), "{said:?}");
            assert_eq!(said[2], "good");
            let error = device.write_at(8192, &[1; 4096]).unwrap_err().to_string();
            assert!(error.contains("ends after 1808 of them"), "{error}");
            assert_eq!(std::fs::metadata(path).unwrap().len(), 10_000);
        },
    );
}

#[test]
fn a_block_device_that_shrinks_refuses_writes_beyond_its_end() {
    let scratch = TempDir::new("writes shrink");
    let beneath = |name: &str| LoopDevice::over(&new_file(scratch.path(), name));
    by_every_method(beneath, |device_loop, path, device| {
        device_loop.cut_backing(4 << 20);
        device_loop.resize();
        let said = write_places(&*device, &[(4 << 20) - 4096, 6 << 20, 0]);
        assert!(said[0].contains(path.to_str().unwrap()), "{said:?}");
        assert!(said[0].contains("ends after 4096 of them; has it been cut short?"), "{said:?}");
        assert!(said[1].contains("ends after 0 of them"), "{said:?}");
        assert_eq!(said[2], "good");
    });
}

#[test]
fn a_file_that_ends_within_a_page_is_written_to_its_last_block_and_keeps_its_end() {
    let scratch = TempDir::new("writes end");
    let odd = |name: &str| {
        let path = scratch.path().join(name);
        std::fs::write(&path, pattern(0, 10_000)).unwrap();
        std::fs::File::open(&path).unwrap().sync_all().unwrap();
        Some(path)
    };
    by_every_method(odd, |_, path, device| {
        let last = device.geometry().size.0 - 8192;
        let mut wanted = pattern(0, 10_000);
        let start = usize::try_from(last).unwrap();
        wanted[start..start + 8192].copy_from_slice(&[3; 8192]);
        let pool = pool();
        let mut queue = device.queue(1, &pool).unwrap();
        let mut buffer = pool.take(8192).unwrap();
        buffer.fill(3);
        queue.submit_write(0, last, buffer).unwrap();
        assert_eq!(said(&all(&mut *queue)), ["good"]);
        device.flush().unwrap();
        assert!(std::fs::read(path).unwrap() == wanted);
    });
}

/// The disk here is memory that may not grow, truncated beneath a loop device: bytes behind the end
/// can neither be read nor written. Through the page cache the flush gets the error, unless the
/// page is read first.
#[test]
fn an_unwritable_place_fails_only_its_own_write() {
    let beneath = |_: &str| {
        let memory = sealed_memory(SIZE);
        LoopDevice::over(memory.path()).map(|made| made.keeping(memory))
    };
    by_every_method(beneath, |device_loop, path, device| {
        device_loop.cut_backing(4 << 20);
        let pool = pool();
        let cached = device.queue(1, &pool).unwrap().method();
        let cached = ["buffered", "cache used"].iter().any(|word| cached.contains(word));
        let said = write_places(&*device, &[6 << 20, 1 << 20, 7 << 20]);
        assert_eq!(said[1], "good");
        let said = if cached && said[0] == "good" {
            device.flush().unwrap_err().to_string()
        } else {
            assert!(said[2].contains("Input/output error"), "{said:?}");
            assert!(said[0].starts_with("writing 8192 bytes at 6291456 of "), "{said:?}");
            said[0].clone()
        };
        assert!(said.contains("Input/output error"), "{said}");
        assert!(said.contains(path.to_str().unwrap()), "{said}");
    });
}

/// A sparse file on a file system without space for its holes.
#[test]
fn a_full_disk_is_reported_with_the_remedy() {
    let scratch = TempDir::new("writes full");
    let disk = new_file(scratch.path(), "disk");
    let Some(mount) = Mount::ext4(&disk, &scratch.path().join("mounted")) else { return };
    let sparse = |name: &str| {
        let path = mount.path().join(name);
        std::fs::File::create(&path).unwrap().set_len(64 << 20).unwrap();
        Some(path)
    };
    by_every_method(sparse, |_, path, device| {
        let said = write_all_of(&*device);
        // Truncating frees the space immediately; a ring would keep a file that is only removed.
        std::fs::File::create(path).unwrap();
        let (good, failed): (Vec<_>, Vec<_>) = said.iter().partition(|said| *said == "good");
        assert!(!good.is_empty(), "there was some room");
        assert!(!failed.is_empty(), "not for all of it");
        for said in failed {
            assert!(said.contains("No space left on device"), "{said}");
            assert!(said.ends_with("; free some space there"), "{said}");
        }
    });
}

/// Writes from the front until something fails; returns the result of each MiB as text.
fn write_all_of(device: &dyn BlockDevice) -> Vec<String> {
    let pool = pool();
    let mut queue = device.queue(2, &pool).unwrap();
    let mut heard: Vec<String> = Vec::new();
    for tag in 0..64 {
        queue.submit_write(tag, tag << 20, pool.take(1 << 20).unwrap()).unwrap();
        heard.extend(said(&all(&mut *queue)));
        if heard.last().is_some_and(|said| said != "good") {
            break;
        }
    }
    heard
}
