//! Many nodes, as values and functions: the cluster's state, where copies of titles are kept, and
//! which node a viewer is sent to.
//!
//! ```text
//!   records (node digests, copies, titles) ──▶ ClusterView        maybe seconds old: normal
//!                                                │        │
//!                     placement::plan ◀──────────┘        └──────▶ Director ──▶ AdmissionAttempt
//!                     fill, evict                                   │ ▲
//!                                                    Ask, Move      ▼ │  NodeAnswer
//!                                                              a node: NodeBooks (it decides)
//! ```
//!
//! A node is the only writer of its own admission. The director ranks nodes by a view that may be
//! old and asks; the answer of the node decides. Reservations are therefore not part of the state.
//!
//! Nothing here reads a clock, draws a random number or opens a connection: the time, chance and
//! the answers of nodes are arguments. Whoever has the records of a cluster (a store of records
//! that is watched, a test, a simulation) feeds the same view.

#![warn(missing_docs)]

mod awaited;
mod books;
mod chance;
mod director;
pub mod forgetting;
mod names;
pub mod placement;
mod records;
mod view;

pub use awaited::AwaitedCopies;
pub use books::{AdmissionClass, BooksAnswer, BooksDisk, NodeBooks, StreamNeed, kept_of};
pub use chance::Chance;
pub use director::{
    AdmissionAttempt, Admitted, Director, DirectorCounters, DirectorRefusal, DirectorSettings,
    DirectorStep, Headroom, NodeAnswer, RefusalReason, StreamMove,
};
pub use names::{BadName, ClusterName, ContentTag, NodeDisk, NodeId, TitleName};
pub use records::{
    CapacityShare, ClusterChange, ClusterEvent, CopyRecord, CopyState, CopyTarget, HeldTitles,
    MemberRecord, NodeDigest, NodeOrders, RecordError, TitleGroup, TitleSize, UnableDirector,
    UnlistedTitles,
};
pub use view::{
    ClusterView, CopyPlace, CopyVersion, CopyView, NodeNumber, NodeView, TitleDemand, TitleNumber,
    TitleView,
};
