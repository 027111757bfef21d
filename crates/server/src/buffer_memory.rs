//! How much memory the read buffers get: at the start, and when a limit of the process's control
//! group changes.
//!
//! The kernel gives no notice of a limit that is lowered below what is in use. The buffers follow a
//! limit that is still above that, or one that slows the process down first (`memory.high`).

use device::{MachineMemory, MemoryLimits};
use units::{ByteCount, Reason};

/// Memory for read buffers, and a note for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BufferMemory {
    pub(crate) size: ByteCount,
    pub(crate) note: Option<String>,
}

/// The configured memory, or a quarter of what the process may use.
///
/// # Errors
/// More memory was configured than the process may use.
pub(crate) fn buffer_memory(
    configured: Option<ByteCount>,
    known: Option<MachineMemory>,
) -> Result<BufferMemory, Reason> {
    let Some(known) = known else {
        // An unusual machine, without /proc.
        let size = configured.unwrap_or(UNKNOWN);
        return Ok(BufferMemory { size, note: None });
    };
    let (usable, whose) = (known.usable(), whose(known));
    let Some(size) = configured else {
        let size = ByteCount(units::align_down(usable.0 / PART, ByteCount::MIB.0)).max(LEAST);
        let note = format!("{size} of memory for reads: a quarter of {whose}; --memory sets it");
        return Ok(BufferMemory { size, note: Some(note) });
    };
    if size > usable {
        let why = format!("--memory {size} is more than {whose}");
        return Err(Reason::new(why, "lower --memory or raise that limit"));
    }
    let rest = usable.saturating_sub(size);
    let note = (rest < BESIDE).then(|| {
        format!(
            "--memory {size} leaves only {rest} of {whose} for the indexes of titles, connections \
             and the system; {BESIDE} or more are needed"
        )
    });
    Ok(BufferMemory { size, note })
}

/// The size of the buffers while the server runs: of a lower limit than at the start, they keep the
/// part that they had of the limit then.
#[derive(Debug)]
pub(crate) struct MemoryWatch {
    limits: Option<MemoryLimits>,
    first: ByteCount,
    first_usable: ByteCount,
    least: ByteCount,
    largest_read: ByteCount,
    size: ByteCount,
}

impl MemoryWatch {
    /// A watch over buffers of `size`, for reads of up to `largest_read`, by these limits.
    pub(crate) fn new(
        limits: Option<MemoryLimits>,
        size: ByteCount,
        largest_read: ByteCount,
    ) -> Self {
        let first_usable = limits.as_ref().map_or(size, |limits| limits.read().usable());
        let least = ByteCount(LEAST_READS * largest_read.0);
        Self { limits, first: size, first_usable, least, largest_read, size }
    }

    /// Reads the limits again; the memory that may be used at all, if the buffers change with it.
    pub(crate) fn look(&mut self) -> Option<ByteCount> {
        let usable = self.limits.as_ref()?.read().usable();
        let size = self.size_within(usable);
        (std::mem::replace(&mut self.size, size) != size).then_some(usable)
    }

    // At most the first size, which the pool has: other limits may have risen since.
    fn size_within(&self, usable: ByteCount) -> ByteCount {
        let part = u128::from(self.first.0) * u128::from(usable.0);
        let size = u64::try_from(part / u128::from(self.first_usable.0.max(1))).unwrap_or(u64::MAX);
        let in_mib = ByteCount(units::align_down(size, ByteCount::MIB.0));
        if size >= self.first.0 { self.first } else { in_mib.max(self.least).min(self.first) }
    }

    /// Memory that the engine may count on at present.
    pub(crate) fn usable(&self) -> ByteCount {
        usable_memory(self.size, self.largest_read)
    }

    /// Memory that the pool may keep if the engine has so much: `None` while it may keep all.
    pub(crate) fn kept_for(&self, engine: u64) -> Option<ByteCount> {
        let beside = self.size.saturating_sub(self.usable());
        let kept = ByteCount(engine.saturating_add(beside.0));
        (self.size < self.first).then_some(kept)
    }
}

/// Memory that the engine may count on, of a pool for reads of up to `largest`: the pool cuts small
/// buffers from frames of the largest read, so that a part of it cannot be used.
pub(crate) fn usable_memory(memory: ByteCount, largest: ByteCount) -> ByteCount {
    memory.saturating_sub(ByteCount((memory.0 / 16).max(2 * largest.0)))
}

/// The least buffers, in reads of the largest size.
pub(crate) const LEAST_READS: u64 = 8;

fn whose(known: MachineMemory) -> String {
    match known.limit {
        Some(limit) => format!("the {limit} that this process may use (a limit of its cgroup)"),
        None => format!("the machine's {}", known.machine),
    }
}

/// A quarter: as much again is needed for indexes and sockets of as many viewers, and half of the
/// machine stays for other programs.
const PART: u64 = 4;
/// The least default: eight reads of 4 MiB.
const LEAST: ByteCount = ByteCount::mib(32);
/// The default where the machine's memory is unknown.
const UNKNOWN: ByteCount = ByteCount::mib(512);
/// Memory for what is not read buffers: 256 MiB of open titles, and as much for sockets.
const BESIDE: ByteCount = ByteCount::mib(512);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_buffers_keep_their_part_of_a_limit_that_falls_and_rises() {
        let mib = ByteCount::mib;
        let watch =
            MemoryWatch { first_usable: mib(2048), ..MemoryWatch::new(None, mib(512), mib(4)) };
        for (usable, size) in [(4096, 512), (2048, 512), (1024, 256), (1001, 250), (64, 32)] {
            assert_eq!(watch.size_within(mib(usable)), mib(size), "{usable} MiB");
        }
        assert_eq!(watch.kept_for(0), None);
        let lowered = MemoryWatch { size: mib(256), ..watch };
        assert_eq!(lowered.kept_for(mib(240).0), Some(mib(256)));
        // Sessions that were admitted before need more.
        assert_eq!(lowered.kept_for(mib(480).0), Some(mib(496)));
    }

    #[test]
    fn a_quarter_is_the_default_and_more_than_all_is_refused() {
        let mib = ByteCount::mib;
        let machine = MachineMemory { machine: mib(8192), limit: None };
        let limited = MachineMemory { limit: Some(mib(1024)), ..machine };
        let size = |configured, known| buffer_memory(configured, Some(known)).map(|m| m.size);
        assert_eq!(size(None, machine).unwrap(), mib(2048));
        assert_eq!(size(None, limited).unwrap(), mib(256));
        let tiny = MachineMemory { limit: Some(mib(64)), ..machine };
        assert_eq!(size(None, tiny).unwrap(), mib(32));
        assert_eq!(size(Some(mib(4096)), machine).unwrap(), mib(4096));
        let refused = size(Some(mib(4096)), limited).unwrap_err().to_string();
        assert!(
            refused.contains("--memory 4 GiB is more than the 1 GiB that this process may use")
        );
        let note = |configured, known| buffer_memory(configured, Some(known)).unwrap().note;
        assert_eq!(note(Some(mib(4096)), machine), None);
        assert!(note(Some(mib(900)), limited).unwrap().contains("leaves only 124 MiB"));
        assert!(note(None, machine).unwrap().contains("a quarter of the machine's 8 GiB"));
        assert_eq!(buffer_memory(None, None).unwrap().size, mib(512));
    }
}
