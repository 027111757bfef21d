//! Commits of many recordings at the same time: what permits are asked for, and what is written.

use super::*;
use crate::Permit;
use crate::common::PowerCutDevice;
use crate::common::titles::formatted;

/// The places of each permit; the first is there when so many commits wait.
struct Disk<'a> {
    store: &'a Store,
    commits: usize,
    most_places: u32,
    asked: Mutex<Vec<u32>>,
}

impl BackgroundIo for Disk<'_> {
    fn acquire(&self, _: ByteCount) -> Permit {
        unreachable!("commits ask for places")
    }

    fn acquire_writes(&self, places: u32, _: ByteCount) -> Permit {
        let is_first = locked(&self.asked).is_empty();
        while is_first && locked(&self.store.commits().waiting).len() < self.commits {
            std::thread::yield_now();
        }
        locked(&self.asked).push(places);
        Permit::unlimited()
    }

    fn most_places(&self) -> u32 {
        self.most_places
    }
}

#[test]
fn a_group_is_written_by_permits_of_no_more_places_than_may_be() {
    let lead = 3 + RecordingLoad::COMMIT.0;
    for (most_places, asked) in [(8, vec![lead, 8, 8, 8, 3]), (u32::MAX, vec![lead, 27])] {
        let device = PowerCutDevice::new(ByteCount::mib(8));
        let store = formatted(&device);
        let disk = Disk { store: &store, commits: 10, most_places, asked: Mutex::default() };
        // Three places each, far apart.
        let place = |recording: u64, block: u64| (4 << 20) + block * (1 << 20) + recording * 8192;
        let bytes = |recording: u64| vec![u8::try_from(recording).unwrap() + 1; 4096];
        std::thread::scope(|scope| {
            for recording in 0..10 {
                let blocks = (0..3).map(|block| (place(recording, block), bytes(recording)));
                let commit = Commit { blocks: blocks.collect(), records: Vec::new() };
                let (store, disk) = (&store, &disk);
                scope.spawn(move || store.commit_recording(commit, disk).unwrap());
            }
        });
        assert_eq!(*locked(&disk.asked), asked);
        for recording in 0..10 {
            for block in 0..3 {
                let mut found = vec![0; 4096];
                store.device().read_at(place(recording, block), &mut found).unwrap();
                assert_eq!(found, bytes(recording), "recording {recording}");
            }
        }
    }
}
