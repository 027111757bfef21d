//! Which viewers wait for which answer, which question is asked next, and which answers are kept.
//!
//! ```text
//!   ask ─┬─ kept answer ──────────────────────▶ at once
//!        ├─ too many wait ────────────────────▶ busy, at once
//!        ├─ the same is asked already ─▶ waits for that answer ─┐
//!        └─ queued ─▶ asked, a bounded number at a time ────────┴▶ answered, or expired
//! ```
//!
//! Pure: the time is an argument. Viewers expire each at their own time, asked or queued; a
//! question for which nobody waits any more is never asked.

use super::answer::AuthVerdict;
use crate::clients::{ClientAddress, ClientCounts, ClientLimit};
use crate::messages::Caller;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// What makes two questions one: a digest of all that an answer may depend on, so that what is kept
/// is small whatever viewers send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct QuestionKey([u8; 32]);

impl QuestionKey {
    /// The key with the first 32 bytes of a digest.
    pub(super) fn of(digest: &[u8]) -> Self {
        let mut key = [0; 32];
        key.iter_mut().zip(digest).for_each(|(to, from)| *to = *from);
        Self(key)
    }
}

/// A viewer's question.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    pub(super) key: QuestionKey,
    pub(super) id: Uuid,
    /// The body of the request to the service.
    pub(super) body: String,
    /// Who gets the answer.
    pub(super) caller: Caller,
    pub(super) client: ClientAddress,
    /// When it must have one.
    pub(super) until: Instant,
}

/// How many may wait, be asked and be kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct QuestionLimits {
    /// Questions that are asked at a time.
    pub(super) asked: usize,
    /// Viewers who wait at a time.
    pub(super) waiting: usize,
    /// Viewers of one client who wait at a time.
    pub(super) of_client: ClientLimit,
    /// Answers that are kept.
    pub(super) kept: usize,
}

/// What becomes of a question at once.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AskOutcome {
    /// An answer was kept.
    Kept(Uuid, AuthVerdict),
    /// Too many wait.
    Busy,
    /// The viewer waits; `true`: for the answer to the question of another viewer.
    Waits(bool),
}

/// A viewer whose wait is over, and the number of the question that was asked.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Settled {
    pub(super) caller: Caller,
    pub(super) id: Uuid,
}

/// A question to be asked now.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NextQuestion {
    pub(super) key: QuestionKey,
    pub(super) body: String,
}

/// The books.
#[derive(Debug)]
pub(super) struct Questions {
    limits: QuestionLimits,
    open: HashMap<QuestionKey, OpenQuestion>,
    /// Questions that are not asked yet, in the order in which they came.
    queued: BTreeMap<u64, QuestionKey>,
    asking: usize,
    /// By the time at which they must have an answer.
    viewers: BTreeMap<(Instant, u64), WaitingViewer>,
    clients: ClientCounts,
    kept: HashMap<QuestionKey, KeptAnswer>,
    /// The keys of kept answers, the oldest first.
    kept_since: VecDeque<QuestionKey>,
    next: u64,
}

#[derive(Debug)]
struct OpenQuestion {
    id: Uuid,
    body: String,
    state: QuestionState,
    /// Where they are in [`Questions::viewers`].
    viewers: BTreeSet<(Instant, u64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QuestionState {
    Queued(u64),
    Asking,
}

#[derive(Debug)]
struct WaitingViewer {
    key: QuestionKey,
    caller: Caller,
    client: ClientAddress,
}

#[derive(Debug)]
struct KeptAnswer {
    id: Uuid,
    verdict: AuthVerdict,
    until: Instant,
}

impl Questions {
    pub(super) fn new(limits: QuestionLimits) -> Self {
        Self {
            limits,
            open: HashMap::new(),
            queued: BTreeMap::new(),
            asking: 0,
            viewers: BTreeMap::new(),
            clients: ClientCounts::default(),
            kept: HashMap::new(),
            kept_since: VecDeque::new(),
            next: 0,
        }
    }

    /// Takes a viewer's question.
    pub(super) fn ask(&mut self, ask: Ask, now: Instant) -> AskOutcome {
        let Ask { key, id, body, caller, client, until } = ask;
        if let Some(kept) = self.kept.get(&key).filter(|kept| now < kept.until) {
            return AskOutcome::Kept(kept.id, kept.verdict.clone());
        }
        let of_client = self.clients.held(client);
        if self.viewers.len() >= self.limits.waiting
            || of_client >= self.limits.of_client.of(client)
        {
            return AskOutcome::Busy;
        }
        let number = self.next;
        self.next += 1;
        let is_open = self.open.contains_key(&key);
        let queued = &mut self.queued;
        let question = self.open.entry(key).or_insert_with(|| {
            queued.insert(number, key);
            OpenQuestion {
                id,
                body,
                state: QuestionState::Queued(number),
                viewers: BTreeSet::new(),
            }
        });
        question.viewers.insert((until, number));
        self.clients.add(client);
        self.viewers.insert((until, number), WaitingViewer { key, caller, client });
        AskOutcome::Waits(is_open)
    }

    /// The next question to be asked, if another one may be.
    pub(super) fn next(&mut self) -> Option<NextQuestion> {
        if self.asking >= self.limits.asked {
            return None;
        }
        let (_, key) = self.queued.pop_first()?;
        let question = self.open.get_mut(&key)?;
        question.state = QuestionState::Asking;
        self.asking += 1;
        Some(NextQuestion { key, body: std::mem::take(&mut question.body) })
    }

    /// A question that was asked has ended with a verdict, which may be kept for this time. Returns
    /// those who have waited for it.
    pub(super) fn answered(
        &mut self,
        key: QuestionKey,
        verdict: &AuthVerdict,
        keep: Duration,
        now: Instant,
    ) -> Vec<Settled> {
        let Some(question) = self.open.remove(&key) else { return Vec::new() };
        self.asking -= 1;
        if !keep.is_zero() {
            self.keep(
                key,
                KeptAnswer { id: question.id, verdict: verdict.clone(), until: now + keep },
            );
        }
        let viewers = question.viewers.into_iter().filter_map(|at| self.viewers.remove(&at));
        let viewers: Vec<WaitingViewer> = viewers.collect();
        let settled = viewers.into_iter().map(|viewer| {
            self.clients.remove(viewer.client);
            Settled { caller: viewer.caller, id: question.id }
        });
        settled.collect()
    }

    /// The viewers who must have an answer by now and have none.
    pub(super) fn expired(&mut self, now: Instant) -> Vec<Settled> {
        let mut expired = Vec::new();
        while let Some(first) = self.viewers.first_entry() {
            let at = *first.key();
            if now < at.0 {
                break;
            }
            let WaitingViewer { key, caller, client } = first.remove();
            self.clients.remove(client);
            let Some(question) = self.open.get_mut(&key) else { continue };
            question.viewers.remove(&at);
            expired.push(Settled { caller, id: question.id });
            if let QuestionState::Queued(number) = question.state
                && question.viewers.is_empty()
            {
                self.queued.remove(&number);
                self.open.remove(&key);
            }
        }
        expired
    }

    /// When the next viewer expires.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.viewers.first_key_value().map(|((until, _), _)| *until)
    }

    /// Viewers who wait.
    pub(super) fn waiting(&self) -> usize {
        self.viewers.len()
    }

    fn keep(&mut self, key: QuestionKey, answer: KeptAnswer) {
        if self.kept.insert(key, answer).is_none() {
            self.kept_since.push_back(key);
        }
        while self.kept.len() > self.limits.kept {
            let Some(oldest) = self.kept_since.pop_front() else { break };
            self.kept.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests;
