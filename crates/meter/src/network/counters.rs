//! The counters of the sending side: `ss -tin` and `tc -s qdisc`, parsed from text.

/// TCP counters over all connections of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TcpCounters {
    /// Milliseconds in which there was something to send, summed over all connections.
    pub(crate) busy_ms: u64,
    /// The part of the sending time in which the receiver's window was full.
    pub(crate) window_ms: u64,
    /// Retransmitted packets.
    pub(crate) sent_again: u64,
    /// Packets that the queue before the link dropped.
    pub(crate) dropped: u64,
}

impl TcpCounters {
    /// The share of the busy time in which the window was full, from 0 to 1.
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    pub(crate) fn window_limited(&self) -> f64 {
        if self.busy_ms == 0 { 0.0 } else { self.window_ms as f64 / self.busy_ms as f64 }
    }

    /// From `ss -tin`: `busy:796ms rwnd_limited:740ms(93.0%) retrans:0/32`.
    pub(super) fn of_sockets(text: &str) -> Self {
        let mut all = Self::default();
        for word in text.split_whitespace() {
            let Some((name, value)) = word.split_once(':') else { continue };
            match name {
                "busy" => all.busy_ms += number(value),
                "rwnd_limited" => all.window_ms += number(value),
                "retrans" => {
                    all.sent_again += value.split_once('/').map_or(0, |(_, sum)| number(sum));
                }
                _ => {}
            }
        }
        all
    }
}

/// From `tc -s qdisc`: `Sent 1000 bytes 10 pkt (dropped 3, overlimits 0 requeues 0)`.
pub(super) fn dropped(text: &str) -> Option<u64> {
    text.split_once("dropped ").map(|(_, rest)| number(rest))
}

/// The number at the beginning of `text`.
fn number(text: &str) -> u64 {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().unwrap_or(0)
}
