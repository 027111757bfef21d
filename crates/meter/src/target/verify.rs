//! Data that is recognised when it is read again (`--verify`).
//!
//! ```text
//!   page of 4,096 bytes   file │ write │ page │ pseudo-random bytes that follow from these three
//! ```
//!
//! Every page of the meter's own files states where it belongs and which write put it there; number
//! 0 is the filling. A page that is read must have the right place and the right bytes, and the
//! number of the last write that was complete when the read began, or of a later one: so a write
//! that was acknowledged and is not there is found, too. Writes to one page at the same time may
//! end in any order, so that neither is required then.

use device::DeviceError;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;
use units::show::count;
use units::{index, locked};

/// The unit that is verified.
const PAGE: usize = 4096;

/// Verifies what is read from the files of a target.
#[derive(Debug, Default)]
pub(crate) struct Verifier(Mutex<Verified>);

#[derive(Debug, Default)]
struct Verified {
    writes: u32,
    /// The write that a page has at least, by file and page; the filling where there is none.
    required: BTreeMap<(u32, u64), u32>,
    /// Writes in progress.
    in_flight: Vec<Checked>,
    report: VerifyReport,
}

/// A page that was not as it was written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct WrongPage {
    /// The agent that read it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    file: u32,
    offset: u64,
    /// Seconds of the run.
    at: f64,
    what: Cow<'static, str>,
}

/// What was verified.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct VerifyReport {
    /// Number of pages that were verified.
    pub pages: u64,
    /// Number of those that differ from what was written.
    pub differ: u64,
    /// The first that differ.
    first: Vec<WrongPage>,
}

/// An operation in progress whose data is verified.
#[derive(Clone, Debug)]
pub(crate) enum Checked {
    /// The pages, and the write that each must have at least.
    Read {
        file: u32,
        pages: Range<u64>,
        required: Vec<u32>,
    },
    Write {
        file: u32,
        pages: Range<u64>,
        number: u32,
        alone: bool,
    },
}

impl Verifier {
    /// Begins a read of whole pages.
    pub(crate) fn read(&self, file: u32, offset: u64, len: usize) -> Checked {
        let (state, pages) = (locked(&self.0), pages(offset, len));
        let of = |page| state.required.get(&(file, page)).copied().unwrap_or(0);
        Checked::Read { file, required: pages.clone().map(of).collect(), pages }
    }

    /// Begins a write of whole pages, and fills `memory` for it.
    pub(crate) fn write(&self, file: u32, offset: u64, memory: &mut [u8]) -> Checked {
        let mut state = locked(&self.0);
        state.writes += 1;
        let (number, pages, mut alone) = (state.writes, pages(offset, memory.len()), true);
        for other in &mut state.in_flight {
            if let Checked::Write { file: of, pages: theirs, alone: other, .. } = other
                && *of == file
                && theirs.start < pages.end
                && pages.start < theirs.end
            {
                (alone, *other) = (false, false);
            }
        }
        let write = Checked::Write { file, pages, number, alone };
        state.in_flight.push(write.clone());
        drop(state);
        fill(memory, file, offset, number);
        write
    }

    /// Ends an operation on the file at `path`, with the `memory` that it moved.
    ///
    /// # Errors
    /// Its own error, or that a page is not as it was written.
    pub(crate) fn end(
        &self,
        operation: Checked,
        memory: &[u8],
        result: Result<(), DeviceError>,
        at: Duration,
        path: impl FnOnce() -> PathBuf,
    ) -> Result<(), DeviceError> {
        match operation {
            Checked::Write { number: ended, .. } => {
                let mut state = locked(&self.0);
                let is = |write: &Checked| matches!(write, Checked::Write { number, .. } if *number == ended);
                let Some(place) = state.in_flight.iter().position(is) else { return result };
                if let Checked::Write { file, pages, number, alone: true } =
                    state.in_flight.swap_remove(place)
                    && result.is_ok()
                {
                    state.required.extend(pages.map(|page| ((file, page), number)));
                }
                result
            }
            Checked::Read { file, pages, required } => {
                result?;
                let checked = pages.zip(memory.chunks(PAGE)).zip(required);
                let wrong = checked.filter_map(|((page, memory), required)| {
                    let what = difference(memory, file, page, required)?;
                    let (offset, at) = (page * PAGE as u64, at.as_secs_f64());
                    Some(WrongPage { agent: None, file, offset, at, what: what.into() })
                });
                let wrong: Vec<WrongPage> = wrong.collect();
                let mut state = locked(&self.0);
                let first = wrong.first().cloned();
                let (pages, differ) = ((memory.len() / PAGE) as u64, wrong.len() as u64);
                state.report.add(VerifyReport { pages, differ, first: wrong });
                let Some(first) = first else { return Ok(()) };
                Err(DeviceError::Io {
                    action: "verifying",
                    path: path(),
                    offset: first.offset,
                    length: PAGE as u64,
                    source: io::Error::new(io::ErrorKind::InvalidData, first.what.into_owned()),
                })
            }
        }
    }

    /// What was verified until now.
    pub(crate) fn report(&self) -> VerifyReport {
        locked(&self.0).report.clone()
    }
}

impl VerifyReport {
    /// Adds what was verified elsewhere or later.
    pub(crate) fn add(&mut self, other: Self) {
        self.pages += other.pages;
        self.differ += other.differ;
        let room = MOST_SHOWN.saturating_sub(self.first.len());
        self.first.extend(other.first.into_iter().take(room));
    }

    /// As read by this agent.
    pub(crate) fn by(mut self, agent: &str) -> Self {
        self.first.iter_mut().for_each(|page| page.agent = Some(agent.to_owned()));
        self
    }

    /// The first pages that differ, one line each.
    pub(crate) fn lines(&self) -> Vec<String> {
        let line = |page: &WrongPage| {
            let WrongPage { agent, file, offset, at, what } = page;
            let agent = agent.as_ref().map(|name| format!("agent {name}, ")).unwrap_or_default();
            format!("{agent}file {file}, offset {offset}, at {at:.3} s: {what}")
        };
        self.first.iter().take(10).map(line).collect()
    }
}

impl fmt::Display for VerifyReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pages = count(self.pages, "page");
        match self.differ {
            0 => write!(f, "{pages} as they were written"),
            differ => write!(f, "{differ} of {pages} differ from what was written"),
        }
    }
}

fn pages(offset: u64, len: usize) -> Range<u64> {
    let first = offset / PAGE as u64;
    first..first + (len / PAGE) as u64
}

/// Fills `memory` with what write `number` puts at `offset` of a file.
pub(crate) fn fill(memory: &mut [u8], file: u32, offset: u64, number: u32) {
    let pages = offset / PAGE as u64..;
    for (page, memory) in pages.zip(memory.chunks_mut(PAGE)) {
        memory.copy_from_slice(&expected(file, page, number)[..memory.len()]);
    }
}

fn expected(file: u32, page: u64, number: u32) -> [u8; PAGE] {
    let mut bytes = [0; PAGE];
    let seed = u64::from(number) << 32 ^ u64::from(file) << 48 ^ page;
    fastrand::Rng::with_seed(seed).fill(&mut bytes[HEAD..]);
    bytes[..4].copy_from_slice(&file.to_le_bytes());
    bytes[4..8].copy_from_slice(&number.to_le_bytes());
    bytes[8..HEAD].copy_from_slice(&page.to_le_bytes());
    bytes
}

/// What is wrong with a page.
fn difference(memory: &[u8], file: u32, page: u64, required: u32) -> Option<&'static str> {
    let word = |from: usize| {
        let bytes = memory.get(from..from + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u32::from_le_bytes)
    };
    let number = word(4);
    if memory == &expected(file, page, number)[..index(u32::try_from(memory.len()).unwrap_or(0))] {
        return (number < required).then_some("an older write: a later one was acknowledged");
    }
    let page_there = u64::from(word(8)) | u64::from(word(12)) << 32;
    let whole = memory == &expected(word(0), page_there, number)[..memory.len().min(PAGE)];
    Some(match whole {
        true => "the data of another place",
        false if memory.iter().all(|byte| *byte == 0) => "zeros",
        false => "other bytes than were written",
    })
}

const HEAD: usize = 16;

/// The largest number of differences that are listed.
const MOST_SHOWN: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Duration = Duration::from_millis(1500);

    fn memory(file: u32, offset: u64, number: u32) -> Vec<u8> {
        let mut memory = vec![0; 2 * PAGE];
        fill(&mut memory, file, offset, number);
        memory
    }

    fn read(verifier: &Verifier, offset: u64, memory: &[u8]) -> Result<(), String> {
        let read = verifier.read(3, offset, memory.len());
        let path = || "/films/3".into();
        verifier.end(read, memory, Ok(()), AT, path).map_err(|error| error.to_string())
    }

    #[test]
    fn each_kind_of_difference_is_named_with_its_place_and_time() {
        let verifier = Verifier::default();
        assert_eq!(read(&verifier, 8192, &memory(3, 8192, 0)), Ok(()));
        let mut flipped = memory(3, 8192, 0);
        flipped[PAGE + 100] ^= 1;
        let zeros = vec![0; 2 * PAGE];
        let cases = [
            (flipped, "other bytes than were written"),
            (zeros, "zeros"),
            (memory(3, 0, 0), "the data of another place"),
            (memory(2, 8192, 0), "the data of another place"),
        ];
        for (memory, what) in &cases {
            let said = read(&verifier, 8192, memory).unwrap_err();
            assert!(said.contains("/films/3") && said.ends_with(what), "{said}");
        }
        // One page of the first case, both of the others.
        let report = verifier.report();
        assert_eq!((report.pages, report.differ), (10, 7));
        assert_eq!(
            report.lines()[0],
            "file 3, offset 12288, at 1.500 s: other bytes than were written"
        );
        assert_eq!(serde_json::to_value(&report).unwrap()["first"][0]["offset"], 12288);
        let mut both = report.clone().by("edit1");
        both.add(report.by("edit2"));
        assert_eq!(both.to_string(), "14 of 20 pages differ from what was written");
        assert!(both.lines()[0].starts_with("agent edit1, file 3, offset 12288"), "{both:?}");
    }

    #[test]
    fn a_write_that_was_acknowledged_has_to_be_there() {
        let verifier = Verifier::default();
        let end =
            |write, memory: &[u8]| verifier.end(write, memory, Ok(()), AT, PathBuf::new).unwrap();
        let mut one = vec![0; 2 * PAGE];
        let write = verifier.write(3, 0, &mut one);
        // Before it is complete the read may find either.
        assert_eq!(read(&verifier, 0, &memory(3, 0, 0)), Ok(()));
        assert_eq!(read(&verifier, 0, &one), Ok(()));
        end(write, &one);
        assert_eq!(read(&verifier, 0, &one), Ok(()));
        assert!(read(&verifier, 0, &memory(3, 0, 0)).unwrap_err().ends_with("was acknowledged"));
        // Two at the same time end in any order.
        let (mut two, mut three) = (one.clone(), one.clone());
        let (second, third) = (verifier.write(3, 0, &mut two), verifier.write(3, 0, &mut three));
        end(third, &three);
        end(second, &two);
        assert_eq!((read(&verifier, 0, &two), read(&verifier, 0, &three)), (Ok(()), Ok(())));
        // A write that failed requires nothing.
        let mut four = one.clone();
        let write = verifier.write(3, 0, &mut four);
        let failed = || DeviceError::Io {
            action: "writing",
            path: PathBuf::new(),
            offset: 0,
            length: 0,
            source: io::ErrorKind::Other.into(),
        };
        assert!(verifier.end(write, &four, Err(failed()), AT, PathBuf::new).is_err());
        assert_eq!((read(&verifier, 0, &two), read(&verifier, 0, &four)), (Ok(()), Ok(())));
    }
}
