//! Memory is a promise too: what the books say fits, fits.

use crate::fixture::{TestStore, directory, eventually, media};
use std::path::{Path, PathBuf};
use units::ByteCount;

/// Reads of 4 MiB for titles whose pieces are 1 MiB and 64 KiB, in memory for eight reads: all
/// that is played goes through it, whatever has filled it before.
#[test]
fn pieces_of_all_sizes_find_room_beside_each_other() {
    let media = media();
    let fixture = TestStore::with(&[&media.song]);
    let copies = directory();
    let films: Vec<PathBuf> = (0..10).map(|i| copies.join(format!("film {i}.mp4"))).collect();
    films.iter().for_each(|film| assert!(std::fs::copy(&media.film, film).is_ok()));
    fixture.add(&films.iter().map(PathBuf::as_path).collect::<Vec<&Path>>());
    let serving = fixture.serve_with(|config| {
        config.as_disk = disk::DiskModel::preset("ssd-sata");
        config.read_size = Some(ByteCount::mib(4));
        config.memory = ByteCount::mib(32);
        config.session_timeout = config.slot;
    });
    let paths: Vec<String> = (0..10).map(|i| format!("/t/film%20{i}.mp4")).collect();
    for path in paths.iter().chain(paths.iter().rev()) {
        for path in [path.as_str(), "/t/song.mp4"] {
            // As many viewers as hold memory at once may be here; they leave again.
            eventually("there is room for one more viewer", || {
                let (_, answer) = serving.client().get_following(path);
                assert!(answer.whole && matches!(answer.status, 200 | 503), "{path}: {answer:?}");
                answer.status == 200
            });
        }
    }
    assert_eq!(serving.status("/deadline_misses"), 0);
    let _ = std::fs::remove_dir_all(copies);
}
