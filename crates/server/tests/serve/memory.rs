//! Read buffers: a read that the engine has accounted for always gets its memory.

use crate::fixture::{TestStore, eventually, media};
use store::Store;
use units::ByteCount;

/// Memory for eight reads of 4 MiB serves titles with pieces of 1 MiB and 512 KiB one after
/// another, whichever piece size has filled it before.
#[test]
fn buffers_of_different_sizes_share_one_pool() {
    let media = media();
    let fixture = TestStore::with(&[&media.song]);
    for number in 0..10 {
        fixture.add(&[&media.film]);
        let store = Store::open(&fixture.path).unwrap();
        store.rename("film", &format!("film {number}")).unwrap();
    }
    let serving = fixture.serve_with(|config| {
        config.as_disk = disk::DiskModel::preset("ssd-sata");
        config.read_size = Some(ByteCount::mib(4));
        config.memory = Some(ByteCount::mib(32));
        config.session_timeout = config.slot;
    });
    let paths: Vec<String> = (0..10).map(|i| format!("/t/film%20{i}.mp4")).collect();
    for path in paths.iter().chain(paths.iter().rev()) {
        for path in [path.as_str(), "/t/song.mp4"] {
            // Sessions of earlier viewers may still hold the memory until their timeout.
            eventually("one more viewer is admitted", || {
                let (_, response) = serving.client().get_following(path);
                assert!(
                    response.whole && matches!(response.status, 200 | 503),
                    "{path}: {response:?}"
                );
                response.status == 200
            });
        }
    }
    assert_eq!(serving.status("/deadline_misses"), 0);
}
