//! The storage meter: what a server's viewers (and one day a disk's, a file system's or a
//! bucket's clients) get, counted from the outside.
//!
//! [`viewer`] plays titles from an HTTP server as so many players would and says what each of them
//! saw; [`rounds`] reads a disk in rounds as a media server would and says how many streams it
//! holds; [`emulated`] does so on a disk that is emulated, and on file systems on it; [`streams`] move
//! frames by the clock, [`transfers`] as fast as they go; [`log`] keeps every operation; [`profiles`]
//! are what streams of known formats ask for; [`report`] turns numbers into one HTML page with plots.
//!
//! The meter knows nothing of the store's format and shares no code with the server: what it says
//! of the server is what anybody else's measurement would say.

pub mod blame;
pub mod bottleneck;
pub mod capacity;
pub mod compare;
pub mod emulated;
pub mod fleet;
pub mod live;
pub mod log;
pub mod network;
pub mod profiles;
pub mod ramp;
pub mod report;
pub mod rounds;
pub mod s3;
pub mod streams;
pub mod study;
pub mod target;
pub mod threshold;
pub mod tls;
pub mod trace;
pub mod transfers;
pub mod viewer;
