//! One parser for each of the kernel's files, tested on recorded text. The parsers do no I/O.

mod diskstats;
mod mountstats;
mod net_dev;
mod schedstat;
mod snmp;
mod stat;

pub(super) use diskstats::{DiskCounters, diskstats};
pub(super) use mountstats::{NfsMount, mountstats};
pub(super) use net_dev::{Interface, net_dev};
pub(super) use schedstat::{Waiting, schedstat};
pub(super) use snmp::{Tcp, tcp};
pub(super) use stat::{Ticks, stat};

/// The first `N` fields as numbers; `None` if there are fewer, or one is no number.
fn numbers<'a, const N: usize>(mut fields: impl Iterator<Item = &'a str>) -> Option<[u64; N]> {
    let mut numbers = [0; N];
    for number in &mut numbers {
        *number = fields.next()?.parse().ok()?;
    }
    Some(numbers)
}
