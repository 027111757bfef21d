//! The loop that plays all viewers: one thread, one `epoll`, one clock.
//!
//! ```text
//!   arrivals, players' clocks ─▶ timers ─┐
//!                                        ├─▶ Session::tick / ready ─▶ sockets
//!   sockets ─▶ poll ─────────────────────┘
//! ```

use super::fetched::OwnLateness;
use super::hosts::{Hosts, Network};
use super::options::exponential;
use super::outcome::{ViewerOutcome, ViewerSample};
use super::save::Saver;
use super::session::{LANES, PlayContext, Session, SessionState};
use super::url::Url;
use super::wire::Opened;
use super::{ClientError, PlayOptions};
use mio::{Events, Poll, Registry};
use player::PlaybackState;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use units::{Moment, Reason};

/// The state of all sessions at the end of a run.
pub(crate) struct PlayRun {
    pub(crate) sessions: Vec<Session>,
    pub(crate) samples: Vec<ViewerSample>,
    pub(crate) took: Duration,
    pub(crate) complete: bool,
    pub(crate) saved: Vec<PathBuf>,
    pub(crate) own: OwnLateness,
    pub(crate) opened: Vec<Opened>,
}

/// When each viewer arrives, and the index of its title.
pub(crate) type AssignedViewers = (Vec<Duration>, Vec<usize>);

/// Plays `urls` to all viewers until the end, the time limit or the `stop` flag. `audience`: who
/// comes when and plays what, in place of what the options say.
pub(crate) fn run(
    options: &PlayOptions,
    urls: &[Url],
    audience: Option<AssignedViewers>,
    hosts: Hosts,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(&ViewerSample),
) -> Result<PlayRun, ClientError> {
    let system = |what| {
        move |error| {
            ClientError::from(Reason::new(
                format!("{what}: {error}"),
                "try fewer viewers, or raise the limit with `ulimit -n`",
            ))
        }
    };
    let mut poll = Poll::new().map_err(system("cannot watch sockets"))?;
    let registry = poll.registry().try_clone().map_err(system("cannot watch sockets"))?;
    let mut event_loop = EventLoop::new(options, urls, audience, hosts, registry);
    let mut events = Events::with_capacity(EVENTS);
    while !stop.load(Ordering::Relaxed) {
        event_loop.tick(progress);
        if event_loop.is_over()? {
            break;
        }
        match poll.poll(&mut events, Some(event_loop.patience())) {
            Err(error) if error.kind() != std::io::ErrorKind::Interrupted => {
                return Err(system("cannot wait for sockets")(error));
            }
            _ => {}
        }
        let woken = event_loop.now();
        for event in &events {
            event_loop.ready(event.token().0);
        }
        // The time spent on the other events is the delay with which this one was noticed.
        let now = event_loop.now();
        event_loop.own.busy(now, now.since(woken));
    }
    event_loop.close(progress, !stop.load(Ordering::Relaxed))
}

/// The event loop: all viewers and their timers.
#[derive(Debug)]
pub(crate) struct EventLoop {
    pub(crate) shared: PlayContext,
    pub(crate) sessions: Vec<Session>,
    /// The timers. Each session has at most one entry, and `timers[i]` is its time.
    queue: BTreeSet<(Moment, usize)>,
    timers: Vec<Option<Moment>>,
    /// The sessions that are not done.
    open: BTreeSet<usize>,
    samples: Vec<ViewerSample>,
    next_sample: Moment,
    own: OwnLateness,
}

impl EventLoop {
    pub(crate) fn new(
        options: &PlayOptions,
        urls: &[Url],
        audience: Option<AssignedViewers>,
        hosts: Hosts,
        registry: Registry,
    ) -> Self {
        let mut random = fastrand::Rng::with_seed(options.seed);
        let (arrivals, titles) = audience.unwrap_or_else(|| {
            let arrivals = options.arrivals.times(options.viewers, &mut random);
            (arrivals, options.choice.titles(options.viewers, urls.len(), &mut random))
        });
        let sessions: Vec<Session> = (0..)
            .zip(arrivals)
            .zip(titles)
            .map(|((number, arrival), title)| {
                let leaves = options.stay.map(|mean| exponential(mean, &mut random));
                let behaviour = options.behaviour.clone().leaving(leaves);
                let (url, arrived) = (urls[title].clone(), Moment::ZERO + arrival);
                Session::new(number, url, arrived, behaviour, options.player.dead_band)
            })
            .collect();
        // Arrivals are timers like all others.
        let queue = sessions.iter().enumerate().map(|(i, session)| (session.arrived, i)).collect();
        Self {
            shared: PlayContext {
                options: Arc::new(options.clone()),
                network: Network {
                    registry,
                    hosts,
                    begun: Instant::now(),
                    opened: Vec::new(),
                    room: None,
                },
                scratch: vec![0; SCRATCH],
                now: Moment::ZERO,
                saver: options.save.as_deref().map(Saver::new),
                received: None,
                fatal: None,
            },
            timers: sessions.iter().map(|session| Some(session.arrived)).collect(),
            open: (0..sessions.len()).collect(),
            sessions,
            queue,
            samples: Vec::new(),
            next_sample: Moment::ZERO,
            own: OwnLateness::default(),
        }
    }

    pub(crate) fn now(&self) -> Moment {
        self.shared.network.now()
    }

    /// Whether all viewers are done, or the time is over. Fails if nothing can be saved, or no
    /// viewer gets any response.
    fn is_over(&mut self) -> Result<bool, ClientError> {
        if let Some(fatal) = self.shared.fatal.take() {
            return Err(fatal);
        }
        // If every viewer so far has failed, the others will too: report it now.
        let mut here = self.sessions.iter().filter(|session| session.state != SessionState::Absent);
        if here.all(Session::has_seen_nothing)
            && let Some(error) = &self.sessions[0].error
        {
            return Err(error.clone());
        }
        let now = self.now();
        // With viewers that stay for ever the duration is the only end.
        let limit = self.shared.options.duration.map(|limit| Moment::ZERO + limit);
        Ok(self.open.is_empty() || limit.is_some_and(|limit| now >= limit))
    }

    /// Wakes the viewers whose timers expired, and samples the state twice a second.
    pub(crate) fn tick(&mut self, progress: &mut dyn FnMut(&ViewerSample)) {
        let mut now = self.now();
        while let Some((at, number)) = self.queue.first().copied() {
            if at > now {
                break;
            }
            self.own.woke(now, now.since(at));
            self.shared.now = now;
            self.sessions[number].tick(&mut self.shared);
            self.touched(number);
            // The session took time, so that more timers may have expired.
            now = self.now();
        }
        if now >= self.next_sample {
            let sample = self.sample(now);
            progress(&sample);
            self.samples.push(sample);
            // Skips samples that were missed: two at the same moment would show nothing.
            while self.next_sample <= now {
                self.next_sample = self.next_sample + SAMPLE;
            }
        }
    }

    pub(crate) fn ready(&mut self, token: usize) {
        let (number, lane) = (token / LANES, token % LANES);
        self.shared.now = self.now();
        self.sessions[number].ready(lane, &mut self.shared);
        self.touched(number);
    }

    /// Updates the timers after a session was called.
    pub(crate) fn touched(&mut self, number: usize) {
        let session = &self.sessions[number];
        let wake = session.wake_at(self.shared.options.patience);
        if let Some(old) = std::mem::replace(&mut self.timers[number], wake) {
            self.queue.remove(&(old, number));
        }
        if let Some(wake) = wake {
            self.queue.insert((wake, number));
        }
        if matches!(session.state, SessionState::Done(_)) {
            self.open.remove(&number);
        }
    }

    /// The longest wait for sockets.
    pub(crate) fn patience(&self) -> Duration {
        let now = self.now();
        let limit = self.shared.options.duration.map(|limit| Moment::ZERO + limit);
        let first = self.queue.first().map(|(at, _)| *at);
        let until = [first, limit].into_iter().flatten().fold(self.next_sample, Moment::min);
        until.since(now)
    }

    fn sample(&self, now: Moment) -> ViewerSample {
        let mut sample = ViewerSample { at_s: now.as_secs_f64(), ..ViewerSample::default() };
        for session in &self.sessions {
            sample.arrived += u32::from(session.state != SessionState::Absent);
            sample.stalls += session.stalls;
            sample.bytes += session.bytes;
            let place = match session.state {
                SessionState::Absent => continue,
                SessionState::LoadingManifest | SessionState::WaitingToRetry(_) => {
                    &mut sample.waiting
                }
                SessionState::Done(ViewerOutcome::Refused) => &mut sample.refused,
                SessionState::Done(ViewerOutcome::Failed) => &mut sample.failed,
                SessionState::Done(_) => &mut sample.gone,
                SessionState::Playing => match session.playback(now) {
                    Some(PlaybackState::Waiting) | None => &mut sample.waiting,
                    Some(PlaybackState::Stalled) => &mut sample.stalled,
                    Some(_) => &mut sample.playing,
                },
            };
            *place += 1;
        }
        sample
    }

    /// Ends all sessions.
    fn close(
        mut self,
        progress: &mut dyn FnMut(&ViewerSample),
        complete: bool,
    ) -> Result<PlayRun, ClientError> {
        let now = self.now();
        // The players may not have been called for half a second.
        let last = self.sample(now);
        progress(&last);
        self.samples.push(last);
        for session in &mut self.sessions {
            session.leave(now);
        }
        // A viewer who had not arrived by the end of the run has no experience to report.
        self.sessions.retain(|session| session.state != SessionState::Absent);
        match self.shared.fatal.take() {
            Some(fatal) => Err(fatal),
            None => Ok(PlayRun {
                sessions: self.sessions,
                samples: self.samples,
                took: now.since(Moment::ZERO),
                complete,
                saved: self.shared.saver.map(Saver::paths).unwrap_or_default(),
                own: self.own,
                opened: self.shared.network.opened,
            }),
        }
    }
}

/// The interval of samples, and the longest delay of a `stop`.
const SAMPLE: Duration = Duration::from_millis(500);

/// The number of events that are taken from the kernel at a time.
pub(crate) const EVENTS: usize = 256;

/// Bytes of one read from a socket: as large as loopback buffers, so that few calls are made.
const SCRATCH: usize = 256 * 1024;
