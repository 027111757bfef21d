//! One test body for every read method: all implementations of `BlockDevice` behave alike.

use crate::methods::{
    DEPTH, SIZE, all, by_every_method, fill, new_file, on_every_device, pattern, pool, said,
};
use crate::scratch::{LoopDevice, TempDir};
use device::{BlockDevice, Completion, DeviceError, FileDevice, Method, OpenOptions};
use std::time::Duration;
use units::{ByteCount, Hinted};

/// Number of reads: enough that every method's lists wrap around.
const READS: u64 = 60;

#[test]
fn written_bytes_are_read_back_into_memory_at_any_address() {
    on_every_device("round trip", |device| {
        let block = usize::try_from(device.geometry().block).unwrap();
        for (offset, blocks, misalign) in [(0, 1, 0), (3, 7, 1), (5, 300, 8), (1, 512, 0)] {
            let (offset, len) = (offset * block as u64, blocks * block);
            let mut from = vec![0; misalign];
            from.extend(pattern(offset, len));
            device.write_at(offset, &from[misalign..]).unwrap();
            device.flush().unwrap();
            let mut into = vec![0; len + misalign];
            device.read_at(offset, &mut into[misalign..]).unwrap();
            assert!(into == from, "{blocks} blocks at {offset} came back different");
        }
    });
}

#[test]
fn a_queue_reads_written_bytes_at_any_depth() {
    on_every_device("many in flight", |device| {
        fill(&**device);
        let pool = pool();
        let mut queue = device.queue(DEPTH, &pool).unwrap();
        let mut rng = fastrand::Rng::with_seed(3);
        let mut done = Vec::new();
        let (mut submitted, mut places) = (0, Vec::new());
        while submitted < READS || queue.in_flight() > 0 {
            while submitted < READS && queue.in_flight() < DEPTH {
                let len = 4096 << rng.u32(0..=8);
                let offset = rng.u64(0..=(SIZE - len) / 4096) * 4096;
                let buffer = pool.take(usize::try_from(len).unwrap()).unwrap();
                places.push((offset, buffer.len()));
                queue.submit(submitted, offset, buffer).unwrap();
                submitted += 1;
            }
            queue.wait(Duration::from_secs(20), &mut done).unwrap();
            for Completion { tag, buffer, result, .. } in done.drain(..) {
                result.unwrap();
                let (offset, len) = places[usize::try_from(tag).unwrap()];
                assert!(buffer[..] == pattern(offset, len), "read {tag}: {len} bytes at {offset}");
            }
        }
        drop(queue);
        assert_eq!(pool.used(), ByteCount::ZERO, "every buffer came back");
    });
}

/// Memory that was registered with the kernel and returned to it does not count as registered: a
/// read would go into pages that the pool no longer has.
#[test]
fn reads_are_right_after_memory_was_returned_to_the_kernel() {
    on_every_device("memory returned", |device| {
        fill(&**device);
        let pool = pool();
        let mut queue = device.queue(2, &pool).unwrap();
        for offset in [0, 4096, 12288] {
            queue.submit(1, offset, pool.take(8192).unwrap()).unwrap();
            let done = all(&mut *queue);
            assert!(done[0].buffer[..] == pattern(offset, 8192), "at {offset}");
            drop(done);
            pool.keep_at_most(ByteCount::ZERO);
            assert_eq!(pool.resident(), ByteCount::ZERO);
        }
    });
}

#[test]
fn a_queue_can_move_to_the_thread_that_uses_it() {
    on_every_device("handed over", |device| {
        fill(&**device);
        let pool = pool();
        let mut queue = device.queue(2, &pool).unwrap();
        let done = std::thread::spawn(move || {
            queue.submit(7, 4096, pool.take(8192).unwrap()).unwrap();
            all(&mut *queue)
        });
        let done = done.join().unwrap();
        assert_eq!((done.len(), done[0].tag), (1, 7));
        assert!(done[0].buffer[..] == pattern(4096, 8192));
    });
}

#[test]
fn a_dropped_queue_returns_its_buffers() {
    on_every_device("dropped", |device| {
        let pool = pool();
        let mut queue = device.queue(4, &pool).unwrap();
        for tag in 0..4 {
            queue.submit(tag, tag << 20, pool.take(1 << 20).unwrap()).unwrap();
        }
        drop(queue);
        assert_eq!(pool.used(), ByteCount::ZERO);
    });
}

#[test]
fn reads_beyond_the_end_or_between_blocks_are_refused() {
    on_every_device("bounds", |device| {
        let refused = |result: Result<(), DeviceError>, named: &str| {
            let said = result.unwrap_err().to_string();
            assert!(said.contains(named), "{said:?} should say {named:?}");
        };
        let block = u64::from(device.geometry().block);
        let mut memory = vec![0; 8192];
        refused(device.read_at(SIZE - 4096, &mut memory), "it ends at 8388608");
        refused(device.write_at(SIZE, &memory), "it ends at 8388608");
        refused(device.read_at(u64::MAX - block + 1, &mut memory), "it ends at");
        refused(device.read_at(block / 2, &mut memory), "not whole blocks");
        refused(device.write_at(0, &memory[..100]), "not whole blocks");
        device.read_at(SIZE - 8192, &mut memory).unwrap();

        let pool = pool();
        let mut queue = device.queue(4, &pool).unwrap();
        for (tag, offset) in [(0, SIZE), (1, SIZE - 4096), (2, SIZE - 8192), (3, 100)] {
            queue.submit(tag, offset, pool.take(8192).unwrap()).unwrap();
        }
        let said: Vec<String> = all(&mut *queue)
            .into_iter()
            .map(|c| c.result.map_or_else(|e| e.to_string(), |()| "good".to_owned()))
            .collect();
        for (said, named) in said.iter().zip(["it ends at", "it ends at", "good", "not whole"]) {
            assert!(said.contains(named), "{said:?} should say {named:?}");
        }
    });
}

#[test]
fn waiting_without_transfers_returns_immediately() {
    on_every_device("nothing to wait for", |device| {
        let pool = pool();
        let mut queue = device.queue(4, &pool).unwrap();
        let mut done = Vec::new();
        queue.wait(Duration::from_secs(3600), &mut done).unwrap();
        assert!(done.is_empty());
        queue.submit(0, 0, pool.take(4096).unwrap()).unwrap();
        while queue.in_flight() > 0 {
            queue.wait(Duration::ZERO, &mut done).unwrap();
        }
        assert_eq!(done.len(), 1, "waiting no time at all still makes headway");
        queue.submit(1, 0, pool.take(4096).unwrap()).unwrap();
        while queue.in_flight() > 0 {
            queue.wait(Duration::MAX, &mut done).unwrap();
        }
        assert_eq!(done.len(), 2, "and so does waiting for ever");
    });
}

/// Reads 8 KiB at each of these places; returns the results as text.
fn read_places(device: &dyn BlockDevice, places: &[u64]) -> Vec<String> {
    let pool = pool();
    let mut queue = device.queue(DEPTH, &pool).unwrap();
    for (tag, place) in places.iter().enumerate() {
        queue.submit(tag as u64, *place, pool.take(8192).unwrap()).unwrap();
    }
    said(&all(&mut *queue))
}

#[test]
fn a_file_truncated_while_open_is_reported() {
    let scratch = TempDir::new("cut short");
    by_every_method(
        |name| Some(new_file(scratch.path(), name)),
        |_, path, device| {
            std::fs::File::options().write(true).open(path).unwrap().set_len(10_000).unwrap();
            let error = device.read_at(8192, &mut [0; 8192]).unwrap_err().to_string();
            assert!(error.contains("ends after 1808 of them"), "{error}");
            let said = read_places(&*device, &[8192, 4 << 20, 0]);
            assert!(said[0].contains(path.to_str().unwrap()), "{said:?}");
            assert!(
                said[0].contains("ends after 1808 of them; has it been cut short?"),
                "{said:?}"
            );
            assert!(said[1].contains("ends after 0 of them"), "{said:?}");
            assert_eq!(said[2], "good");
        },
    );
}

#[test]
fn a_block_device_that_shrinks_is_reported() {
    let scratch = TempDir::new("shrinks");
    let beneath = |name: &str| LoopDevice::over(&new_file(scratch.path(), name));
    by_every_method(beneath, |device_loop, path, device| {
        device_loop.cut_backing(4 << 20);
        device_loop.resize();
        let said = read_places(&*device, &[(4 << 20) - 4096, 6 << 20, 0]);
        assert!(said[0].contains(path.to_str().unwrap()), "{said:?}");
        assert!(said[0].contains("ends after 4096 of them; has it been cut short?"), "{said:?}");
        assert!(said[1].contains("ends after 0 of them"), "{said:?}");
        assert_eq!(said[2], "good");
    });
}

#[test]
fn an_unreadable_place_fails_only_its_own_read() {
    let scratch = TempDir::new("bad sectors");
    let beneath = |name: &str| LoopDevice::over(&new_file(scratch.path(), name));
    by_every_method(beneath, |device_loop, path, device| {
        device_loop.cut_backing(4 << 20);
        let said = read_places(&*device, &[6 << 20, 1 << 20, 7 << 20]);
        assert!(said[0].starts_with("reading 8192 bytes at 6291456 of "), "{said:?}");
        assert!(said[0].contains(path.to_str().unwrap()), "{said:?}");
        assert!(said[0].contains("Input/output error"), "{said:?}");
        assert_eq!(said[1], "good");
        assert!(said[2].contains("Input/output error"), "{said:?}");
    });
}

#[test]
fn a_file_that_ends_within_a_page_is_read_to_its_last_block() {
    let scratch = TempDir::new("ends");
    let odd = |name: &str| {
        let path = scratch.path().join(name);
        std::fs::write(&path, pattern(0, 10_000)).unwrap();
        std::fs::File::open(&path).unwrap().sync_all().unwrap();
        Some(path)
    };
    by_every_method(odd, |_, _, device| {
        let pool = pool();
        let mut queue = device.queue(1, &pool).unwrap();
        let last = device.geometry().size.0 - 4096;
        queue.submit(0, last, pool.take(4096).unwrap()).unwrap();
        let done = all(&mut *queue);
        assert_eq!(said(&done), ["good"]);
        assert!(done[0].buffer[..] == pattern(last, 4096));
        let beyond = read_places(&*device, &[last]);
        assert!(beyond[0].contains("it ends at"), "{beyond:?}");
    });
}

#[test]
fn cancelled_reads_are_returned_and_those_begun_are_completed() {
    on_every_device("called off", |device| {
        fill(&**device);
        let pool = pool();
        let mut queue = device.queue(DEPTH, &pool).unwrap();
        queue.cancel().unwrap();
        for tag in 0..8 {
            queue.submit(tag, tag << 20, pool.take(1 << 20).unwrap()).unwrap();
        }
        // Some of them may be at the disk now.
        let mut done = Vec::new();
        queue.wait(Duration::ZERO, &mut done).unwrap();
        queue.cancel().unwrap();
        queue.submit(8, 0, pool.take(4096).unwrap()).unwrap();
        done.extend(all(&mut *queue));
        done.sort_by_key(|completion| completion.tag);
        assert_eq!(done.iter().map(|c| c.tag).collect::<Vec<_>>(), (0..9).collect::<Vec<_>>());
        for Completion { tag, buffer, result, .. } in &done {
            match result {
                Ok(()) => assert!(buffer[..] == pattern((tag % 8) << 20, buffer.len()), "{tag}"),
                Err(error) => assert!(error.is_cancelled() && *tag < 8, "{tag}: {error}"),
            }
        }
        assert!(done[8].result.is_ok(), "the queue is usable afterwards");
    });
}

/// A serial method knows which of its reads have begun.
#[test]
fn a_serial_method_cancels_the_waiting_reads() {
    let scratch = TempDir::new("calls off");
    let path = new_file(scratch.path(), "file");
    let device = FileDevice::open(&path, OpenOptions::default()).unwrap();
    let pool = pool();
    let mut queue = device.queue_by(Method::Pread, 4, &pool).unwrap();
    for tag in 0..4 {
        queue.submit(tag, 0, pool.take(4096).unwrap()).unwrap();
    }
    let mut done = Vec::new();
    queue.wait(Duration::ZERO, &mut done).unwrap();
    queue.cancel().unwrap();
    done.extend(all(&mut *queue));
    let off: Vec<bool> = done.iter().map(|c| c.result.is_err()).collect();
    assert_eq!(off, [false, true, true, true]);
}

#[test]
fn every_method_has_a_name_and_reports_how_it_reads() {
    let scratch = TempDir::new("listed");
    let path = new_file(scratch.path(), "file");
    for direct in [true, false] {
        let options = OpenOptions { direct, ..OpenOptions::default() };
        let device = FileDevice::open(&path, options).unwrap();
        let pool = pool();
        for (method, allowed) in device.methods() {
            assert_eq!(method.name().parse(), Ok(method));
            let said = device.queue_by(method, 2, &pool).unwrap().method();
            match allowed {
                Ok(()) => {
                    assert_eq!(said.contains("threads"), method == Method::Threads, "{said}");
                }
                Err(why) => {
                    let instead = format!("(no {method}: {why})");
                    assert!(said.starts_with("2 threads") && said.contains(&instead), "{said}");
                }
            }
        }
    }
    let error = "read".parse::<Method>().unwrap_err().one_line();
    assert!(error.starts_with("'read' is no way to read; say best, io_uring, threads,"), "{error}");
}
