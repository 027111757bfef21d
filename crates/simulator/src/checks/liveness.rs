//! Liveness: every request, session, permit and removal of a title comes to an end. A title is
//! reported idle once, when no session uses it.
//!
//! Written from outside the engine: the input is what was asked of it and the actions that end it.

use super::ViolationLog;
use engine::{PermitId, RequestId, SessionId, TitleKey};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub(crate) struct Liveness {
    requests: BTreeSet<RequestId>,
    /// Sessions that have not ended, and their titles.
    sessions: BTreeMap<SessionId, TitleKey>,
    last_session: Option<SessionId>,
    /// Permits requested and not granted.
    permits: BTreeSet<PermitId>,
    /// Withdrawn titles that were still in use.
    withdrawn: BTreeSet<TitleKey>,
    /// Withdrawn titles that are no longer in use; they must not be read.
    removed: BTreeSet<TitleKey>,
}

impl Liveness {
    pub(crate) fn session_opened(
        &mut self,
        session: SessionId,
        title: TitleKey,
        violations: &mut ViolationLog,
    ) {
        // Numbers of sessions only grow, so that one comparison finds every reuse, also of a
        // session that ended long ago.
        violations.require(self.last_session < Some(session), "the id of a session is new", || {
            format!("{session:?}")
        });
        self.last_session = Some(session);
        self.sessions.insert(session, title);
    }

    pub(crate) fn session_ended(&mut self, session: SessionId, violations: &mut ViolationLog) {
        let known = self.sessions.remove(&session).is_some();
        violations.require(known, "a session ends once", || format!("{session:?}"));
    }

    pub(crate) fn request_opened(&mut self, request: RequestId) {
        self.requests.insert(request);
    }

    pub(crate) fn request_closed(&mut self, request: RequestId) {
        self.requests.remove(&request);
    }

    pub(crate) fn permit_requested(&mut self, permit: PermitId, violations: &mut ViolationLog) {
        let new = self.permits.insert(permit);
        violations.require(new, "the id of a permit is new", || format!("{permit:?}"));
    }

    pub(crate) fn permit_granted(&mut self, permit: PermitId, violations: &mut ViolationLog) {
        let requested = self.permits.remove(&permit);
        violations.require(requested, "a granted permit was requested", || format!("{permit:?}"));
    }

    /// The request for the permit is withdrawn.
    pub(crate) fn permit_abandoned(&mut self, permit: PermitId) {
        self.permits.remove(&permit);
    }

    pub(crate) fn title_withdrawn(
        &mut self,
        title: TitleKey,
        in_use: bool,
        violations: &mut ViolationLog,
    ) {
        let used = self.is_used(title);
        violations
            .require(!used || in_use, "a title with a session is in use", || format!("{title:?}"));
        let titles = if in_use { &mut self.withdrawn } else { &mut self.removed };
        titles.insert(title);
    }

    pub(crate) fn title_idle(
        &mut self,
        title: TitleKey,
        reads_in_flight: usize,
        violations: &mut ViolationLog,
    ) {
        let used = self.is_used(title);
        let withdrawn = self.withdrawn.remove(&title);
        violations.require(
            withdrawn && !used && reads_in_flight == 0,
            "a withdrawn title becomes idle once, when it is unused",
            || format!("{title:?}: withdrawn {withdrawn}, used {used}, {reads_in_flight} reads"),
        );
        self.removed.insert(title);
    }

    pub(crate) fn read_issued(&self, title: TitleKey, violations: &mut ViolationLog) {
        violations.require(!self.removed.contains(&title), "a removed title is not read", || {
            format!("{title:?}")
        });
    }

    pub(crate) fn is_at_rest(&self) -> bool {
        self.requests.is_empty()
            && self.sessions.is_empty()
            && self.permits.is_empty()
            && self.withdrawn.is_empty()
    }

    /// Records what is open although the world has had enough time to end it.
    pub(crate) fn report_open(&self, violations: &mut ViolationLog) {
        violations.add("everything comes to an end", || {
            format!(
                "open: requests {:?}, sessions {:?}, permits {:?}, titles {:?}",
                first(&self.requests),
                first(self.sessions.keys()),
                first(&self.permits),
                first(&self.withdrawn),
            )
        });
    }

    fn is_used(&self, title: TitleKey) -> bool {
        self.sessions.values().any(|of_session| *of_session == title)
    }
}

fn first<T>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    all.into_iter().take(5).collect()
}
