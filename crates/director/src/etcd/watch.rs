//! The changes of records as etcd sends them: one JSON object in each line of an endless response.

use super::address::EtcdAddress;
use super::client::{EtcdError, Stamp};
use super::wire::{Streamed, WatchAnswer};
use std::io::{BufRead, BufReader, ErrorKind, Read};
use ureq::{Body, BodyReader};

/// A watch that etcd has accepted.
pub(crate) struct EtcdWatch {
    member: EtcdAddress,
    lines: BufReader<BodyReader<'static>>,
}

/// One message of a watch.
#[derive(Debug)]
pub(crate) enum WatchNews {
    /// Changes, in order; none in the first message.
    Changes { changes: Vec<RecordChange>, stamp: Stamp },
    /// etcd does not have the changes any more: all records must be listed.
    Compacted,
}

/// A record that was put or deleted.
#[derive(Debug)]
pub(crate) struct RecordChange {
    pub(crate) key: Vec<u8>,
    /// `None` where it was deleted.
    pub(crate) value: Option<Vec<u8>>,
    pub(crate) revision: u64,
}

impl EtcdWatch {
    pub(super) fn new(member: EtcdAddress, body: Body) -> Self {
        Self { member, lines: BufReader::new(body.into_reader()) }
    }

    /// The next message.
    ///
    /// # Errors
    /// [`EtcdError::Silent`] where none comes for a while, and a connection that has ended.
    pub(crate) fn next(&mut self) -> Result<WatchNews, EtcdError> {
        let failed = |why: String| EtcdError::Unreachable(format!("{}: {why}", self.member));
        let mut line = Vec::new();
        let read = (&mut self.lines).take(LARGEST_MESSAGE).read_until(b'\n', &mut line);
        match read {
            Ok(0) => return Err(failed("the watch has ended".to_owned())),
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock) => {
                return Err(EtcdError::Silent(self.member.clone()));
            }
            Err(error) => return Err(failed(error.to_string())),
        }
        let message: Streamed<WatchAnswer> = serde_json::from_slice(&line)
            .map_err(|error| failed(format!("a message of the watch cannot be read: {error}")))?;
        let answer = match message {
            Streamed { error: Some(failure), .. } => return Err(failed(failure.message)),
            Streamed { result, .. } => {
                result.ok_or_else(|| failed("a message of the watch is empty".to_owned()))?
            }
        };
        if answer.compact_revision > 0 {
            return Ok(WatchNews::Compacted);
        }
        if answer.canceled {
            return Err(failed(format!("the watch has ended: {}", answer.cancel_reason)));
        }
        let changes = answer.events.into_iter().map(|event| RecordChange {
            revision: event.kv.mod_revision,
            value: (event.kind != "DELETE").then_some(event.kv.value),
            key: event.kv.key,
        });
        Ok(WatchNews::Changes { changes: changes.collect(), stamp: answer.header.into() })
    }
}

/// Bytes of a message, at most: far more than the records of one transaction.
const LARGEST_MESSAGE: u64 = 64 << 20;
