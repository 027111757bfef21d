//! Ingests over the API that are under way: how far each is, and their cancelling; and what came of
//! the latest ones.
//!
//! ```text
//!   PUT, POST ──begin──▶ a row of the list ──receiving──▶ ingesting ──▶ its answer, kept for a while
//!                          ▲ GET /api/v1/ingests     ▲ DELETE             ▲ GET
//!                                                      /api/v1/ingests/NUMBER
//! ```

use super::problem::Problem;
use crate::wire;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use ureq::Agent;

/// The ingests that are under way.
#[derive(Debug, Default)]
pub(super) struct ApiIngests {
    last_number: AtomicU64,
    list: Mutex<IngestList>,
    /// Whether the server ends.
    ended: Arc<AtomicBool>,
}

#[derive(Debug, Default)]
struct IngestList {
    running: Vec<Arc<IngestState>>,
    /// The latest that have ended, the oldest first.
    ended: VecDeque<wire::IngestDetail>,
}

/// One of them, as its thread and those who ask for it see it.
#[derive(Debug)]
pub(super) struct IngestState {
    number: u64,
    disk: String,
    title: String,
    /// Where the file comes from; `None`: from the client.
    address: Option<String>,
    progress: Mutex<wire::Progress>,
    cancel: AtomicBool,
    /// Whether the server ends, which cancels it.
    ended: Arc<AtomicBool>,
    /// The client of a download: it is shut down, so that no read waits.
    agent: Mutex<Option<Agent>>,
}

/// An ingest in the list; it leaves the list when this is dropped.
#[derive(Debug)]
pub(super) struct ListedIngest<'a> {
    state: Arc<IngestState>,
    ingests: &'a ApiIngests,
}

impl ApiIngests {
    /// Adds an ingest to the list. `total`: bytes of its file, where that is known.
    pub(super) fn begin(
        &self,
        disk: &str,
        title: &str,
        address: Option<String>,
        total: Option<u64>,
    ) -> ListedIngest<'_> {
        let state = Arc::new(IngestState {
            number: self.last_number.fetch_add(1, Ordering::Relaxed) + 1,
            disk: disk.to_owned(),
            title: title.to_owned(),
            address,
            progress: Mutex::new(receiving(total)),
            cancel: AtomicBool::new(false),
            ended: Arc::clone(&self.ended),
            agent: Mutex::default(),
        });
        self.locked(|list| list.running.push(Arc::clone(&state)));
        // The end may have been before it was in the list.
        if self.ended.load(Ordering::SeqCst) {
            state.cancel();
        }
        ListedIngest { state, ingests: self }
    }

    /// All of them, the oldest first.
    pub(super) fn report(&self) -> wire::RunningIngests {
        let ingests = self.locked(|list| list.running.iter().map(|one| one.report()).collect());
        wire::RunningIngests { ingests }
    }

    /// The ingest with this number, which is under way or among the latest that have ended.
    pub(super) fn detail(&self, number: u64) -> Result<wire::IngestDetail, Problem> {
        let found = self.locked(|list| {
            let running = list.running.iter().find(|one| one.number == number);
            let running =
                running.map(|one| wire::IngestDetail { ingest: one.report(), ended: None });
            let is_it = |one: &&wire::IngestDetail| one.ingest.ingest == number;
            running.or_else(|| list.ended.iter().find(is_it).cloned())
        });
        found.ok_or_else(|| {
            let message = format!(
                "no ingest {number} is under way or among the latest {ENDED_KEPT} that have ended"
            );
            let hint =
                "/api/v1/ingests lists those under way; the list of titles has what they made";
            Problem::new(404, "no-ingest", message, hint)
        })
    }

    /// Cancels the ingest with this number.
    pub(super) fn cancel(&self, number: u64) -> Result<(), Problem> {
        let is_it = |one: &&Arc<IngestState>| one.number == number;
        let found = self.locked(|list| list.running.iter().find(is_it).cloned());
        let Some(ingest) = found else {
            let message = format!("no ingest {number} is under way");
            return Err(Problem::new(404, "no-ingest", message, "/api/v1/ingests lists them"));
        };
        ingest.cancel();
        Ok(())
    }

    /// Cancels all of them, and those that begin later: the server ends.
    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
        self.locked(|list| list.running.iter().for_each(|one| one.cancel()));
    }

    fn locked<T>(&self, look: impl FnOnce(&mut IngestList) -> T) -> T {
        look(&mut self.list.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ListedIngest<'_> {
    pub(super) fn state(&self) -> &IngestState {
        &self.state
    }

    /// Keeps what came of it, before whoever has asked for it hears of it.
    pub(super) fn end<T>(self, answer: &Result<T, Problem>) {
        let failure = answer.as_ref().err().map(Problem::failure);
        let ended = wire::EndedIngest {
            status: answer.as_ref().err().map_or(201, Problem::status),
            error: failure.map(|failure| failure.code.clone()),
            message: failure.map(|failure| failure.message.clone()),
            hint: failure.and_then(|failure| failure.hint.clone()),
        };
        let detail = wire::IngestDetail { ingest: self.state.report(), ended: Some(ended) };
        self.ingests.locked(|list| {
            list.running.retain(|one| one.number != self.state.number);
            list.ended.push_back(detail);
            if list.ended.len() > ENDED_KEPT {
                list.ended.pop_front();
            }
        });
    }
}

impl Drop for ListedIngest<'_> {
    fn drop(&mut self) {
        let number = self.state.number;
        self.ingests.locked(|list| list.running.retain(|one| one.number != number));
    }
}

impl IngestState {
    /// Set when it is cancelled.
    pub(super) fn cancel_flag(&self) -> &AtomicBool {
        &self.cancel
    }

    /// Fails if it was cancelled.
    pub(super) fn check(&self) -> Result<(), Problem> {
        if !self.cancel.load(Ordering::SeqCst) {
            return Ok(());
        }
        Err(match self.ended.load(Ordering::SeqCst) {
            false => Problem::new(409, "cancelled", "the ingest was cancelled", "ask again"),
            true => {
                let message = "the ingest was cancelled, because the server stops";
                Problem::new(503, "cancelled", message, "ask again when it runs")
            }
        })
    }

    /// Notes how many bytes the file has, where that is known.
    pub(super) fn expect(&self, total: Option<u64>) {
        self.set(receiving(total));
    }

    /// Notes how many bytes of the file are there.
    pub(super) fn received(&self, done: u64) {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).done = done;
    }

    /// Notes how far the ingest of the file is.
    pub(super) fn set(&self, progress: wire::Progress) {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner) = progress;
    }

    /// Names the client that downloads its file from now on; it is shut down with the ingest.
    pub(super) fn downloads_with(&self, agent: &Agent) {
        *self.agent.lock().unwrap_or_else(PoisonError::into_inner) = Some(agent.clone());
        // It may have been cancelled before there was a client to shut down.
        if self.cancel.load(Ordering::SeqCst) {
            agent.clone().shutdown();
        }
    }

    fn cancel(&self) {
        self.cancel.store(true, Ordering::SeqCst);
        if let Some(agent) = self.agent.lock().unwrap_or_else(PoisonError::into_inner).take() {
            agent.shutdown();
        }
    }

    fn report(&self) -> wire::RunningIngest {
        let progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner).clone();
        wire::RunningIngest {
            ingest: self.number,
            disk: self.disk.clone(),
            title: self.title.clone(),
            address: self.address.clone(),
            stage: progress.stage,
            done: progress.done,
            total: progress.total,
        }
    }
}

/// The stage before the stages of an ingest.
fn receiving(total: Option<u64>) -> wire::Progress {
    wire::Progress { stage: wire::RECEIVING.to_owned(), done: 0, total, event: None }
}

/// Ingests that have ended and are described by their number: some tens of kilobytes.
const ENDED_KEPT: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_of_the_latest_is_kept() {
        let ingests = ApiIngests::default();
        let first = ingests.begin("disk", "first", None, None);
        let running = ingests.begin("disk", "running", None, Some(5));
        let panicked = ingests.begin("disk", "panicked", None, None);
        drop(panicked);
        first.end::<()>(&Err(Problem::new(422, "not-media", "it is no media", "send media")));
        let ended = ingests.detail(1).unwrap().ended.unwrap();
        assert_eq!((ended.status, ended.error.as_deref()), (422, Some("not-media")));
        assert_eq!(ended.hint.as_deref(), Some("send media"));
        assert_eq!(ingests.detail(2).unwrap().ended, None);
        assert_eq!(ingests.detail(3).unwrap_err().status(), 404);
        for _ in 0..ENDED_KEPT {
            ingests.begin("disk", "more", None, None).end(&Ok(()));
        }
        assert_eq!(ingests.detail(1).unwrap_err().status(), 404, "it is forgotten");
        let latest = ingests.detail(3 + ENDED_KEPT as u64).unwrap().ended.unwrap();
        assert_eq!((latest.status, latest.error), (201, None));
        assert_eq!(ingests.report().ingests.len(), 1);
        running.end(&Ok(()));
        assert!(ingests.report().ingests.is_empty());
    }
}
