//! `/proc/stat`: the use of each processor, in ticks since the machine started.
//!
//! ```text
//!   cpu  user nice system idle iowait irq softirq steal guest guest_nice     all together
//!   cpu0 ...                                                                 each
//! ```

use super::numbers;

/// Clock ticks of one processor by use (`/proc/stat`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::blame) struct Ticks {
    /// Ticks of work: all except idle, waiting for storage, and stolen.
    pub(in crate::blame) busy: u64,
    /// Busy ticks spent on packets and timers after an interrupt.
    pub(in crate::blame) softirq: u64,
    /// Ticks in which a task was ready and the hypervisor ran something else.
    pub(in crate::blame) steal: u64,
    /// All ticks.
    pub(in crate::blame) all: u64,
}

/// Parses the ticks of each online processor, in order.
pub(in crate::blame) fn stat(text: &str) -> Vec<Ticks> {
    let each = text.lines().filter(|line| {
        let number = line.strip_prefix("cpu");
        number.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    });
    each.filter_map(ticks).collect()
}

fn ticks(line: &str) -> Option<Ticks> {
    let [user, nice, system, idle, iowait, irq, softirq, steal] =
        numbers(line.split_whitespace().skip(1))?;
    let busy = user + nice + system + irq + softirq;
    Some(Ticks { busy, softirq, steal, all: busy + idle + iowait + steal })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_processors_are_told_apart_from_their_sum() {
        let text = "cpu  1628907 14034 224765 404229 106582 0 3402 5323 0 0\n\
            cpu0 100 5 20 50 10 1 4 3 7 0\ncpu1 811885 7621 122515 186697 59335 0 2872 2588 0 0\n\
            intr 12496590 0 0\nctxt 38616243\n";
        let all = stat(text);
        assert_eq!(all.len(), 2);
        assert_eq!(all[0], Ticks { busy: 130, softirq: 4, steal: 3, all: 193 });
        assert_eq!(stat("cpu0 1 2 3\ncpux 1 2 3 4 5 6 7 8\n"), []);
    }
}
