//! What is tried.

use std::time::Duration;
use units::{BitRate, ByteCount};

/// The settings of the link and of the hosts that use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    /// In a few words.
    pub(crate) name: &'static str,
    /// What it shows, and where the paper has it.
    pub(crate) about: &'static str,
    /// What the link carries, headers included.
    pub(crate) link: BitRate,
    /// What may wait before the link; more is dropped.
    pub(crate) queue: ByteCount,
    /// The largest window that receivers offer; `None` as the kernel likes.
    pub(crate) window: Option<ByteCount>,
    /// Bytes of a packet at most.
    pub(crate) mtu: u32,
}

/// What the paper tried, on a link of this speed and on one of a tenth.
pub(crate) fn conditions(link: BitRate) -> Vec<Condition> {
    let tenth = BitRate(link.0 / 10);
    let one = |name, about, link, wait, mtu| Condition {
        name,
        about,
        link,
        queue: queue(link, wait, mtu),
        window: None,
        mtu,
    };
    vec![
        one("fast link", "the whole speed", link, LONG, ETHERNET),
        one(
            "10 to 1",
            "a tenth of it behind a long queue, as with flow control (6.5)",
            tenth,
            LONG,
            ETHERNET,
        ),
        one(
            "10 to 1, short queue",
            "what does not fit is dropped: no flow control (6.5)",
            tenth,
            SHORT,
            ETHERNET,
        ),
        Condition {
            window: Some(SMALL),
            ..one(
                "small window",
                "the window of a client that cannot scale it (6.13, 7.2)",
                link,
                LONG,
                ETHERNET,
            )
        },
        one("jumbo", "large packets (6.6)", link, LONG, JUMBO),
        one(
            "jumbo, 10 to 1, short queue",
            "large packets that find no room (6.6)",
            tenth,
            SHORT,
            JUMBO,
        ),
    ]
}

/// What waits for so long; two packets at least.
fn queue(link: BitRate, wait: Duration, mtu: u32) -> ByteCount {
    let millis = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    ByteCount((link.0 / 8 * millis / 1000).max(2 * (u64::from(mtu) + HEADER)))
}

/// A switch that may tell the sender to wait.
const LONG: Duration = Duration::from_millis(200);

/// A port of one that may not.
const SHORT: Duration = Duration::from_millis(5);

/// Without scaling 64 KiB, on a network that takes ten times as long as two namespaces do.
const SMALL: ByteCount = ByteCount::kib(4);

const ETHERNET: u32 = 1500;
const JUMBO: u32 = 9000;

/// The length of an Ethernet header in bytes.
const HEADER: u64 = 14;
