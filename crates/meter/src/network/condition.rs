//! The conditions of the network that the study compares.

use std::time::Duration;
use units::{BitRate, ByteCount};

/// The settings of the link and of the hosts that use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    /// The name in a few words.
    pub(crate) name: &'static str,
    /// The effect that it shows, with the section of the paper.
    pub(crate) about: &'static str,
    /// The rate of the link, headers included.
    pub(crate) link: BitRate,
    /// The queue before the link; packets beyond it are dropped.
    pub(crate) queue: ByteCount,
    /// The largest window that receivers offer; `None` for the kernel's default.
    pub(crate) window: Option<ByteCount>,
    /// The largest packet in bytes.
    pub(crate) mtu: u32,
}

/// The conditions of the paper, on a link of this speed and on one of a tenth of it.
pub(crate) fn conditions(link: BitRate) -> Vec<Condition> {
    // The ratio of the paper: a fast server behind a slow link.
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

/// The bytes that wait for the time `wait`; at least two packets.
fn queue(link: BitRate, wait: Duration, mtu: u32) -> ByteCount {
    let millis = units::millis(wait);
    ByteCount((link.0 / 8 * millis / 1000).max(2 * (u64::from(mtu) + HEADER)))
}

/// The queue of a switch with flow control.
const LONG: Duration = Duration::from_millis(200);

/// The queue of a switch port without flow control.
const SHORT: Duration = Duration::from_millis(5);

/// The window of a client without scaling: 64 KiB on a network with ten times the delay of two
/// namespaces.
const SMALL: ByteCount = ByteCount::kib(4);

const ETHERNET: u32 = 1500;
const JUMBO: u32 = 9000;

/// The length of an Ethernet header in bytes.
const HEADER: u64 = 14;
