//! How much memory the read buffers get.

use crate::error::ServerError;
use device::MachineMemory;
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
) -> Result<BufferMemory, ServerError> {
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
        return Err(ServerError::Config(Reason::new(why, "lower --memory or raise that limit")));
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

/// Memory that the engine may count on, of a pool for reads of up to `largest`: the pool cuts small
/// buffers from frames of the largest read, so that a part of it cannot be used.
pub fn usable_memory(memory: ByteCount, largest: ByteCount) -> ByteCount {
    memory.saturating_sub(ByteCount((memory.0 / 16).max(2 * largest.0)))
}

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
