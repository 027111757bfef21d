//! `/proc/net/snmp` and `/proc/net/netstat`: TCP's counters. Both files have pairs of lines, names
//! above numbers; the set of counters differs between kernels.

/// TCP counters of this network namespace (`/proc/net/snmp`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::blame) struct Tcp {
    /// Segments sent, retransmissions not counted.
    pub(in crate::blame) sent: u64,
    /// Retransmitted segments.
    pub(in crate::blame) again: u64,
    /// Times that a peer had to stop sending because the receive window was full.
    pub(in crate::blame) window_closed: u64,
    /// Retransmission timeouts of connections.
    pub(in crate::blame) timeouts: u64,
}

pub(in crate::blame) fn tcp(snmp: &str, netstat: &str) -> Option<Tcp> {
    Some(Tcp {
        sent: counter(snmp, "Tcp:", "OutSegs")?,
        again: counter(snmp, "Tcp:", "RetransSegs")?,
        window_closed: counter(netstat, "TcpExt:", "TCPToZeroWindowAdv").unwrap_or(0),
        timeouts: counter(netstat, "TcpExt:", "TCPTimeouts").unwrap_or(0),
    })
}

fn counter(text: &str, family: &str, name: &str) -> Option<u64> {
    // The first line of a family has the names, the second the numbers.
    let mut lines = text.lines().filter(|line| line.split_whitespace().next() == Some(family));
    let (names, numbers) = (lines.next()?, lines.next()?);
    let mut pairs = names.split_whitespace().zip(numbers.split_whitespace());
    pairs.find(|(each, _)| *each == name)?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_found_by_name() {
        let snmp = "\
Ip: Forwarding DefaultTTL
Ip: 1 64
Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens CurrEstab InSegs OutSegs RetransSegs InErrs
Tcp: 1 200 120000 -1 33775 0 1093836 1080954 1197 0
Udp: InDatagrams
Udp: 5
";
        let netstat = "TcpExt: TCPTimeouts TCPToZeroWindowAdv\nTcpExt: 12 34\n";
        let all = Tcp { sent: 1_080_954, again: 1197, window_closed: 34, timeouts: 12 };
        assert_eq!(tcp(snmp, netstat), Some(all));
        assert_eq!(tcp(snmp, "").map(|tcp| tcp.timeouts), Some(0), "an older kernel");
        assert_eq!(tcp("Tcp: OutSegs\n", ""), None, "cut short");
    }
}
