//! The folder of a mounted store in which files become media titles: what waits there, what is
//! told, and what is refused.

use crate::mounted::{Mounted, run};
use crate::program::TestDir;
use std::fs;
use std::io::ErrorKind;

#[test]
fn a_failed_rename_in_the_ingest_folder_changes_nothing() {
    testkit::needs!(Root, Fuse, Mount);
    let dir = TestDir::with_store_of(64);
    dir.film("film.mp4");
    dir.ok("ingest a.store film.mp4 --title h2");
    dir.write("text.mp4", "no film");
    let mounted = Mounted::start(&dir, "");
    let at = |name: &str| mounted.path(name);
    for (from, to, kind) in [
        ("film.mp4", ".ingest/h2.mp4", ErrorKind::AlreadyExists),
        ("text.mp4", ".ingest/text.mp4", ErrorKind::InvalidInput),
    ] {
        let (from, waits) = (dir.path(from), at(".ingest/.a.mp4"));
        run(&["cp", from.to_str().unwrap(), &waits]);
        assert_eq!(fs::rename(&waits, at(to)).unwrap_err().kind(), kind, "{to}");
        assert!(fs::read(&waits).unwrap() == fs::read(&from).unwrap(), "{to}");
        assert_eq!(mounted.names(".ingest"), [".a.mp4"]);
    }
    run(&["cp", dir.path("film.mp4").to_str().unwrap(), &at(".ingest/.a.mp4")]);
    run(&["mv", &at(".ingest/.a.mp4"), &at(".ingest/h3.mp4")]);
    assert_eq!(mounted.names(".ingest"), [""; 0]);
    assert_eq!(mounted.names(""), [".ingest", "h2.mp4", "h3.mp4"]);
    let (code, said) = mounted.stop();
    assert_eq!(code, Some(0));
    assert!(said.contains("note: text is not taken in: "), "{said}");
    dir.ok("check a.store --scrub");
}
