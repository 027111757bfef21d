//! Liveness: everything asked for ends, every session ends, every permit comes, and a title that
//! is to go goes, once, when nobody uses it any more.

use super::ViolationLog;
use server::engine::{PermitId, RequestId, SessionId, TitleKey};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub(crate) struct Liveness {
    requests: BTreeSet<RequestId>,
    /// Sessions that have not ended, and their titles.
    sessions: BTreeMap<SessionId, TitleKey>,
    last_session: Option<SessionId>,
    tickets: BTreeSet<PermitId>,
    /// Withdrawn titles that were still in use.
    leaving: BTreeSet<TitleKey>,
    gone: BTreeSet<TitleKey>,
}

impl Liveness {
    pub(crate) fn admitted(
        &mut self,
        session: SessionId,
        title: TitleKey,
        violations: &mut ViolationLog,
    ) {
        violations.require(self.last_session < Some(session), "a session's id is new", || {
            format!("{session:?}")
        });
        self.last_session = Some(session);
        self.sessions.insert(session, title);
    }

    pub(crate) fn ended(&mut self, session: SessionId, violations: &mut ViolationLog) {
        let known = self.sessions.remove(&session).is_some();
        violations.require(known, "a session ends once", || format!("{session:?}"));
    }

    pub(crate) fn wanted(&mut self, request: RequestId) {
        self.requests.insert(request);
    }

    /// The request has come to its end.
    pub(crate) fn settled(&mut self, request: RequestId) {
        self.requests.remove(&request);
    }

    pub(crate) fn asked(&mut self, ticket: PermitId, violations: &mut ViolationLog) {
        let new = self.tickets.insert(ticket);
        violations.require(new, "a ticket is new", || format!("{ticket:?}"));
    }

    pub(crate) fn granted(&mut self, ticket: PermitId, violations: &mut ViolationLog) {
        let asked = self.tickets.remove(&ticket);
        violations.require(asked, "a permit is for one who asked", || format!("{ticket:?}"));
    }

    /// Whoever asked does not want it any more.
    pub(crate) fn given_up(&mut self, ticket: PermitId) {
        self.tickets.remove(&ticket);
    }

    pub(crate) fn withdrawn(
        &mut self,
        title: TitleKey,
        in_use: bool,
        violations: &mut ViolationLog,
    ) {
        let used = self.sessions.values().any(|of| *of == title);
        violations
            .require(!used || in_use, "a title that is played is in use", || format!("{title:?}"));
        if in_use {
            self.leaving.insert(title);
        } else {
            self.gone.insert(title);
        }
    }

    pub(crate) fn title_idle(
        &mut self,
        title: TitleKey,
        being_read: usize,
        violations: &mut ViolationLog,
    ) {
        let used = self.sessions.values().any(|of| *of == title);
        let leaving = self.leaving.remove(&title);
        violations.require(
            leaving && !used && being_read == 0,
            "a title goes once, unused",
            || format!("{title:?}: withdrawn {leaving}, in use {used}, being read {being_read}"),
        );
        self.gone.insert(title);
    }

    pub(crate) fn reads(&self, title: TitleKey, violations: &mut ViolationLog) {
        violations.require(!self.gone.contains(&title), "a title that is gone is not read", || {
            format!("{title:?}")
        });
    }

    pub(crate) fn at_rest(&self) -> bool {
        self.requests.is_empty()
            && self.sessions.is_empty()
            && self.tickets.is_empty()
            && self.leaving.is_empty()
    }

    /// The world has had all the time it needs.
    pub(crate) fn time_is_up(&self, violations: &mut ViolationLog) {
        violations.add("everything comes to an end", || {
            format!(
                "open: requests {:?}, sessions {:?}, tickets {:?}, titles {:?}",
                first(&self.requests),
                first(self.sessions.keys()),
                first(&self.tickets),
                first(&self.leaving),
            )
        });
    }
}

fn first<T>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    all.into_iter().take(5).collect()
}
