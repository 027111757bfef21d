//! Many nodes over etcd: how nodes register, how directors watch them, and the service that sends
//! each viewer to a node.
//!
//! ```text
//!   node: Member ──lease, digest, copies, titles──▶ etcd ──watch──▶ director: ClusterView
//!                                                                       │
//!   viewer ──GET /t/film/master.m3u8──▶ service ──question──▶ node     ranks
//!   viewer ◀──302 to the node───────────────┘ ◀──201 or a refusal──┘
//! ```
//!
//! What each sees of the others' clocks is in `clock`.
//!
//! One of the directors plans which nodes have copies of which title of record (`planning`).
//!
//! What a node and a director share is in `question`. Nothing is written per viewer: etcd has what
//! nodes are and hold, and each node alone knows its reservations.

#![warn(missing_docs)]

pub mod clock;
pub mod etcd;
pub mod member;
pub mod operations;
pub mod planning;
pub mod question;
pub mod secret;
pub mod service;
pub mod ticket;
mod unmet;
mod watching;
