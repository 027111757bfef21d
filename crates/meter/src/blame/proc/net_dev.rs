//! `/proc/net/dev`: counters of network interfaces since they were attached.

use super::numbers;

/// Counters of one network interface (`/proc/net/dev`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::blame) struct Interface {
    pub(in crate::blame) name: String,
    pub(in crate::blame) received: u64,
    pub(in crate::blame) sent: u64,
    /// Dropped packets, received and sent together.
    pub(in crate::blame) dropped: u64,
}

pub(in crate::blame) fn net_dev(text: &str) -> Vec<Interface> {
    text.lines().filter_map(interface).collect()
}

fn interface(line: &str) -> Option<Interface> {
    // The name may touch the first number, as in `eth0:123`.
    let (name, rest) = line.split_once(':')?;
    // Bytes, packets, errors, drops and four more of received packets; the same of sent ones.
    let [received, _, _, lost, _, _, _, _, sent, _, _, unsent] = numbers(rest.split_whitespace())?;
    Some(Interface { name: name.trim().to_owned(), received, sent, dropped: lost + unsent })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_header_lines_are_not_interfaces() {
        let text = "\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo
    lo: 213 106 0 0 0 0 0 0 213 106 0 0 0 0 0 0
  eth0:900 6 0 2 0 0 0 0 800 5 0 3 0 0 0 0
";
        let eth0 = Interface { name: "eth0".into(), received: 900, sent: 800, dropped: 5 };
        let all = net_dev(text);
        assert_eq!((all.len(), &all[0].name[..], &all[1]), (2, "lo", &eth0));
    }
}
