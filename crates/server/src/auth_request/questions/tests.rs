//! The books of questions, in virtual time.

use super::*;
use crate::access::Allowance;
use device::sockets::ConnectionId;
use std::net::IpAddr;

const LIMITS: fn() -> QuestionLimits =
    || QuestionLimits { asked: 2, waiting: 5, of_client: ClientLimit::new(Some(3), 3), kept: 2 };

/// Books with a clock, a step for each question.
struct Books {
    questions: Questions,
    start: Instant,
}

impl Books {
    fn new() -> Self {
        Self { questions: Questions::new(LIMITS()), start: Instant::now() }
    }

    fn at(&self, seconds: u64) -> Instant {
        self.start + Duration::from_secs(seconds)
    }

    /// A viewer of this number at a client asks at a time, with a patience of 10 s.
    fn ask(&mut self, viewer: u64, key: u8, client: u8, seconds: u64) -> String {
        let now = self.at(seconds);
        let asked = self.questions.ask(
            Ask {
                key: QuestionKey::of(&[key; 32]),
                id: id(viewer),
                body: format!("question {key}"),
                caller: Caller { worker: 0, connection: ConnectionId::named(viewer) },
                client: ClientAddress::of(IpAddr::from([192, 0, 2, client])),
                until: now + Duration::from_secs(10),
            },
            now,
        );
        match asked {
            AskOutcome::Kept(id, verdict) => {
                format!("kept of {}: {}", id.as_u128(), word(&verdict))
            }
            AskOutcome::Busy => "busy".to_owned(),
            AskOutcome::Waits(is_shared) => if is_shared { "shares" } else { "waits" }.to_owned(),
        }
    }

    fn next(&mut self) -> Option<String> {
        self.questions.next().map(|next| next.body)
    }

    fn answered(&mut self, key: u8, keep: u64, seconds: u64) -> String {
        let (key, keep, now) =
            (QuestionKey::of(&[key; 32]), Duration::from_secs(keep), self.at(seconds));
        let verdict = AuthVerdict::Allowed(Allowance::default());
        said(self.questions.answered(key, &verdict, keep, now))
    }

    fn expired(&mut self, seconds: u64) -> String {
        let now = self.at(seconds);
        said(self.questions.expired(now))
    }

    fn is_empty(&self) -> bool {
        let Questions { open, queued, asking, viewers, .. } = &self.questions;
        open.is_empty() && queued.is_empty() && *asking == 0 && viewers.is_empty()
    }
}

fn id(viewer: u64) -> Uuid {
    Uuid::from_u128(viewer.into())
}

fn word(verdict: &AuthVerdict) -> &'static str {
    if matches!(verdict, AuthVerdict::Allowed(_)) { "allowed" } else { "other" }
}

/// The viewers, each with the number of the question that was asked.
fn said(settled: Vec<Settled>) -> String {
    let viewer = |caller: Caller| (0..99).find(|it| ConnectionId::named(*it) == caller.connection);
    let of = |it: Settled| format!("{}:{}", viewer(it.caller).unwrap_or(99), it.id.as_u128());
    settled.into_iter().map(of).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_same_question_is_asked_once_and_answers_all_who_wait() {
    let mut books = Books::new();
    assert_eq!(books.ask(1, 7, 1, 0), "waits");
    assert_eq!(books.ask(2, 7, 1, 1), "shares");
    assert_eq!(books.next().as_deref(), Some("question 7"));
    assert_eq!(books.ask(3, 7, 1, 2), "shares");
    assert_eq!(books.next(), None);
    assert_eq!(books.answered(7, 0, 3), "1:1 2:1 3:1");
    assert!(books.is_empty());
    assert_eq!(books.ask(4, 7, 1, 3), "waits", "nothing was kept");
}

#[test]
fn a_bounded_number_is_asked_at_a_time_in_the_order_in_which_they_came() {
    let mut books = Books::new();
    for (viewer, key) in [(1, 1), (2, 2), (3, 3), (4, 4)] {
        assert_eq!(books.ask(viewer, key, key, 0), "waits");
    }
    let first = [books.next(), books.next(), books.next()];
    assert_eq!(first.map(Option::unwrap_or_default), ["question 1", "question 2", ""]);
    assert_eq!(books.answered(2, 0, 1), "2:2");
    let then = [books.next(), books.next()].map(Option::unwrap_or_default);
    assert_eq!(then, ["question 3", ""]);
}

#[test]
fn viewers_expire_each_at_their_time_and_questions_of_nobody_are_not_asked() {
    let mut books = Books::new();
    books.ask(1, 1, 1, 0);
    books.ask(2, 2, 2, 0);
    books.ask(3, 3, 3, 1);
    books.ask(4, 3, 4, 5);
    books.next();
    books.next();
    assert_eq!(books.questions.deadline(), Some(books.at(10)));
    assert_eq!(books.expired(9), "");
    assert_eq!(books.expired(10), "1:1 2:2");
    assert_eq!(books.expired(11), "3:3");
    assert_eq!(books.next(), None, "two are still asked");
    assert_eq!(books.answered(1, 0, 12), "", "nobody waits for it any more");
    assert_eq!(books.next().as_deref(), Some("question 3"), "one viewer waits for it");
    assert_eq!(books.answered(3, 0, 13), "4:3");
    assert_eq!(books.answered(2, 0, 13), "");
    books.ask(5, 4, 5, 20);
    assert_eq!(books.expired(30), "5:5");
    assert_eq!(books.next(), None, "it was never asked, and is not any more");
    assert!(books.is_empty() && books.questions.deadline().is_none());
}

#[test]
fn few_of_one_client_and_few_in_all_wait_and_all_others_are_told_at_once() {
    let mut books = Books::new();
    // Each with a question of its own.
    let asked = |books: &mut Books, viewer: u8, client| books.ask(viewer.into(), viewer, client, 0);
    for viewer in 1..=3 {
        assert_eq!(asked(&mut books, viewer, 1), "waits");
    }
    assert_eq!(asked(&mut books, 4, 1), "busy");
    assert_eq!(asked(&mut books, 5, 2), "waits", "another client has its own part");
    assert_eq!(asked(&mut books, 6, 3), "waits");
    assert_eq!(asked(&mut books, 7, 4), "busy", "five wait");
    books.next();
    assert_eq!(books.answered(1, 60, 1), "1:1");
    assert_eq!(books.ask(8, 1, 1, 1), "kept of 1: allowed", "whatever waits");
    assert_eq!(asked(&mut books, 9, 1), "waits");
    books.expired(60);
    let held = ClientAddress::of(IpAddr::from([192, 0, 2, 1]));
    assert_eq!(books.questions.clients.held(held), 0);
}

#[test]
fn answers_are_kept_for_their_time_and_the_oldest_give_way() {
    let mut books = Books::new();
    for (key, seconds) in [(1, 0), (2, 1), (3, 2)] {
        books.ask(key.into(), key, 1, seconds);
        books.next();
        books.answered(key, 60, seconds);
    }
    assert_eq!(books.ask(11, 1, 1, 3), "waits", "two are kept at most");
    assert_eq!(books.ask(12, 2, 1, 3), "kept of 2: allowed");
    assert_eq!(books.ask(13, 3, 1, 61), "kept of 3: allowed");
    assert_eq!(books.ask(14, 2, 1, 61), "waits", "its time is over");
    assert_eq!(books.questions.kept.len(), books.questions.kept_since.len());
}
