//! The thread that keeps the books of questions, and the threads that ask.

use super::answer::{AuthAnswer, AuthVerdict};
use super::questions::{Ask, AskOutcome, QuestionKey, QuestionLimits, Questions};
use super::service::{AuthService, ServiceAnswer};
use super::{AuthCounters, NoAnswer};
use crate::clients::ClientLimit;
use crate::config::{AuthRequestTarget, Unanswered};
use crate::messages::{Caller, WorkerHandle, WorkerMessage};
use crossbeam_channel::{Receiver, Sender, at, bounded, never, select, unbounded};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};
use units::show;
use uuid::Uuid;

/// Starts the thread that takes questions, which ends when the sender is dropped and nobody waits.
pub(super) fn start(
    target: &AuthRequestTarget,
    service: AuthService,
    workers: Vec<WorkerHandle>,
    counters: Arc<AuthCounters>,
) -> io::Result<Sender<Ask>> {
    let (sender, asked) = bounded(QUEUE);
    let (jobs, to_ask) = bounded(ASKED);
    let (answers, answered) = unbounded();
    let dispatcher = Dispatcher {
        timeout: target.timeout,
        then: target.unanswered,
        questions: Questions::new(limits()),
        asked,
        jobs,
        answered,
        askers: Askers { service: Arc::new(service), to_ask, answers, idle: 0, threads: 0 },
        told: 0,
        workers,
        counters,
    };
    thread::Builder::new().name("auth".to_owned()).spawn(move || dispatcher.run())?;
    Ok(sender)
}

struct Dispatcher {
    timeout: Duration,
    then: Unanswered,
    questions: Questions,
    asked: Receiver<Ask>,
    jobs: Sender<Job>,
    answered: Receiver<Answered>,
    askers: Askers,
    /// The part of the counter of waiting viewers that is of this thread.
    told: u64,
    workers: Vec<WorkerHandle>,
    counters: Arc<AuthCounters>,
}

/// A question for a thread that asks.
struct Job {
    key: QuestionKey,
    body: String,
}

/// What has become of it.
struct Answered {
    key: QuestionKey,
    took: Duration,
    result: Result<ServiceAnswer, (NoAnswer, String)>,
}

/// The threads that ask, of which more begin as they are needed.
struct Askers {
    service: Arc<AuthService>,
    to_ask: Receiver<Job>,
    answers: Sender<Answered>,
    idle: usize,
    threads: usize,
}

impl Dispatcher {
    fn run(mut self) {
        let mut is_replaced = false;
        while !is_replaced || self.questions.waiting() > 0 {
            let deadline = self.questions.deadline().map_or_else(never, at);
            select! {
                recv(self.asked) -> ask => match ask {
                    Ok(ask) => self.take(ask),
                    // Another service is asked from now on; this one's answers are still taken.
                    Err(_) => (is_replaced, self.asked) = (true, never()),
                },
                recv(self.answered) -> answered => answered.into_iter().for_each(|it| self.end(it)),
                recv(deadline) -> _ => self.expire(),
            }
            self.ask_next();
            self.count_waiting();
        }
    }

    /// Counts those who wait here, beside those of a service that was asked before.
    fn count_waiting(&mut self) {
        let waiting = self.questions.waiting() as u64;
        self.counters.waiting.fetch_add(waiting, Ordering::Relaxed);
        self.counters.waiting.fetch_sub(self.told, Ordering::Relaxed);
        self.told = waiting;
    }

    fn take(&mut self, ask: Ask) {
        let (id, caller) = (ask.id, ask.caller);
        match self.questions.ask(ask, Instant::now()) {
            AskOutcome::Kept(id, verdict) => {
                self.counters.shared.fetch_add(1, Ordering::Relaxed);
                self.tell(caller, id, verdict);
            }
            AskOutcome::Busy => self.tell(caller, id, AuthVerdict::Busy),
            AskOutcome::Waits(true) => {
                self.counters.shared.fetch_add(1, Ordering::Relaxed);
            }
            AskOutcome::Waits(false) => {}
        }
    }

    fn ask_next(&mut self) {
        while let Some(next) = self.questions.next() {
            if let Err(error) = self.askers.make_room() {
                let why = (NoAnswer::Connection, format!("cannot start a thread: {error}"));
                let (key, took) = (next.key, Duration::ZERO);
                self.end_one(Answered { key, took, result: Err(why) });
                continue;
            }
            // There are no more jobs than threads to take them.
            let _ = self.jobs.try_send(Job { key: next.key, body: next.body });
        }
    }

    /// A thread has asked, and is free again.
    fn end(&mut self, answered: Answered) {
        self.askers.idle += 1;
        self.end_one(answered);
    }

    fn end_one(&mut self, Answered { key, took, result }: Answered) {
        let (verdict, keep) = match result {
            Ok(ServiceAnswer { verdict, keep }) => {
                self.counters.answers.observe(took.as_secs_f64());
                (verdict, keep)
            }
            Err((cause, why)) => {
                self.counters.failures[cause as usize].fetch_add(1, Ordering::Relaxed);
                (AuthVerdict::Unanswered { why, then: self.then }, Duration::ZERO)
            }
        };
        for settled in self.questions.answered(key, &verdict, keep, Instant::now()) {
            self.tell(settled.caller, settled.id, verdict.clone());
        }
    }

    fn expire(&mut self) {
        for settled in self.questions.expired(Instant::now()) {
            let limit = show::length(self.timeout.as_secs_f64());
            let why = format!("no answer within the time limit of {limit}");
            let verdict = AuthVerdict::Unanswered { why, then: self.then };
            self.tell(settled.caller, settled.id, verdict);
        }
    }

    fn tell(&self, caller: Caller, id: Uuid, verdict: AuthVerdict) {
        let answer = Box::new(AuthAnswer { id, verdict });
        let connection = caller.connection;
        if let Some(worker) = self.workers.get(caller.worker) {
            worker.send(WorkerMessage::Authorized { connection, answer });
        }
    }
}

impl Askers {
    /// Takes one of the threads that wait for a question, or starts one.
    fn make_room(&mut self) -> io::Result<()> {
        if self.idle > 0 {
            self.idle -= 1;
            return Ok(());
        }
        let (service, to_ask) = (Arc::clone(&self.service), self.to_ask.clone());
        let answers = self.answers.clone();
        let name = format!("auth-{}", self.threads);
        thread::Builder::new().name(name).spawn(move || {
            for Job { key, body } in to_ask {
                let begun = Instant::now();
                let result = service.ask(&body);
                // Nobody waits any more where the other end has gone.
                let _ = answers.send(Answered { key, took: begun.elapsed(), result });
            }
        })?;
        self.threads += 1;
        Ok(())
    }
}

fn limits() -> QuestionLimits {
    let of_client = ClientLimit::new(None, OF_CLIENT);
    QuestionLimits { asked: ASKED, waiting: WAITING, of_client, kept: KEPT }
}

/// Questions that are asked at a time: a service that needs a tenth of a second answers 640 in each
/// second.
const ASKED: usize = 64;
/// Viewers who wait at a time: some seconds of a crowd. Each has a connection that is open already.
const WAITING: usize = 4096;
/// Answers that are kept; with the longest reasons some MB.
const KEPT: usize = 10_000;
/// Viewers of one client who wait at a time: many behind one address, and few of all who may wait.
const OF_CLIENT: usize = 64;
/// Questions that the thread has not looked at yet.
const QUEUE: usize = 1024;
