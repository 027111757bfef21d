//! The `tenuto` program as a person or a script meets it: words, exit codes, JSON, what it refuses
//! to do; with a store of its own and with one that a server owns.
//!
//! Black box. What comes out of films is tested in `playback`. Run one again with
//! `cargo test -p tenuto --test cli NAME`.

mod agreement;
mod bucket;
mod cluster_faults;
mod copies;
mod directed;
mod emulated;
mod etcd_access;
mod fleet;
mod fleet_ssh;
mod library;
mod measuring;
mod meter_console;
mod mounted;
mod mounted_copies;
mod mounted_errors;
mod mounted_growing;
mod mounted_ingest;
mod mounted_nfs;
mod mounted_random;
mod mounted_rate;
mod mounted_samba;
mod placement;
mod plans;
mod program;
mod recording;
mod served;
mod storage;
mod stores;
mod words;
