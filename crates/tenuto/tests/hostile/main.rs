//! What strangers, accidents and crowds do to the program: bad files, full disks, killed processes,
//! rotten bytes, viewers by the thousand. Each ends in the right thing or in a refusal by name that
//! says what to do; what was in the store is still there afterwards, and nothing else.
//!
//! Black box, on loopback and in folders of the tests' own. What a crate's own tests cover is not
//! repeated here: malformed HTTP, absurd ranges, tricks in URLs and stalled viewers are in
//! `crates/server/tests/serve/`, single files that ingest refuses in `crates/store/tests/media.rs`,
//! every flipped bit and power cut in `crates/store/tests/`. Run one again with
//! `cargo test -p tenuto --test hostile NAME`.

mod attacks;
mod crowds;
mod elsewhere;
mod films;
mod full_disk;
mod killed;
mod measured;
mod names;
mod rotten;
mod stage;
mod stores;

#[path = "../../../server/tests/serve/client.rs"]
mod client;
#[path = "../playback/framemd5.rs"]
#[expect(dead_code, reason = "the playback tests use more of it")]
mod framemd5;
#[path = "../../src/limits.rs"]
mod limits;
#[path = "../cli/program.rs"]
mod program;
