//! Sessions that are handed over to the next server, and those that the server before has handed
//! over.

use super::sessions::{OpenSession, PlayingTitle};
use super::{Core, DrainStage};
use crate::access::Permit;
use crate::clients::ClientAddress;
use crate::handover::{LeftState, PartRecord, SessionRecord};
use crate::layout::DeliveryFormat;
use crate::library::OpenError;
use crate::messages::WorkerMessage;
use crate::opening::disk_number;
use crate::playback_params::PlaybackParams;
use crate::presentation::Presentation;
use crate::sessions::PlayerSession;
use crossbeam_channel::Sender;
use engine::{AdmitRequest, MaxWait, SessionId, TakenOver};
use serde_json::json;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use units::Moment;

/// A handover that has begun.
pub(super) struct HandingOver {
    /// When the state is taken, whatever is still being sent.
    pub(super) until: Moment,
    /// Threads that still have a request to answer.
    pub(super) busy: usize,
    to: Sender<LeftState>,
}

impl Core {
    /// Lets the threads end their connections, at the latest `within` this time.
    pub(super) fn begin_handover(&mut self, now: Moment, within: Duration, to: Sender<LeftState>) {
        let busy = self.workers.len();
        self.handing_over = Some(HandingOver { until: now + within, busy, to });
        self.workers.iter().for_each(|worker| worker.send(WorkerMessage::HandOver));
        // Their sessions begin later all the same, and their players cannot wait on a connection.
        self.notify_deferred_admissions(Moment::MAX);
    }

    /// Sends the state, if it is to be handed over; else all sessions are over. Nothing of it
    /// changes any more.
    pub(super) fn hand_over(&mut self) {
        let Some(HandingOver { to, .. }) = self.handing_over.take() else {
            return self.tell_all_ends(|_| false);
        };
        let mut fingerprints = Fingerprints::default();
        let states = self.engine.handed_sessions();
        let records = states.into_iter().filter_map(|state| {
            let session = &self.sessions.get(&state.session)?.session;
            if session.in_mount {
                return None;
            }
            Some(SessionRecord {
                token: session.token?.to_string(),
                name: session.name.clone(),
                content: session.title.content.clone(),
                part: PartRecord::from(&session.presentation.params),
                format: session.format,
                offer: session.offer,
                max_height: session.permit.max_height,
                priority: session.permit.priority,
                bound_to: session.permit.client,
                owner: session.permit.owner.as_deref().cloned(),
                until: session.permit.until,
                client: session.client.address(),
                age: session.admitted.elapsed(),
                wait: session.wait,
                is_directed: session.is_directed,
                has_played: session.has_played(),
                trace: session.trace,
                fingerprint: fingerprints.of(session),
                state,
            })
        });
        let sessions: Vec<SessionRecord> = records.collect();
        let going_on: HashSet<SessionId> =
            sessions.iter().map(|record| record.state.session).collect();
        self.tell_all_ends(|session| going_on.contains(&session));
        let disks = self.engine.status(self.clock.now()).disks.into_iter().enumerate();
        let (mut draining, mut told_drained) = (Vec::new(), Vec::new());
        for (number, _) in disks.filter(|(_, disk)| disk.draining) {
            let uuid = self.shared.content.stores[number].store.info().uuid.to_string();
            if self.drain_told.get(number) == Some(&DrainStage::Empty) {
                told_drained.push(uuid.clone());
            }
            draining.push(uuid);
        }
        // Without a receiver the server ends, and its sessions with it.
        let next_session = self.engine.next_session();
        let _ = to.send(LeftState { sessions, draining, told_drained, next_session });
    }

    /// Goes on with the sessions of the server before this one. Before the first connection.
    pub(crate) fn take_over(&mut self, left: LeftState) {
        let LeftState { sessions: records, draining, told_drained, next_session } = left;
        self.engine.begin_sessions_at(next_session);
        let shared = Arc::clone(&self.shared);
        self.drain_told.resize(shared.content.stores.len(), DrainStage::None);
        for (number, opened) in shared.content.stores.iter().enumerate() {
            let uuid = opened.store.info().uuid.to_string();
            if draining.contains(&uuid) {
                self.drain_disk(self.clock.now(), disk_number(number), true);
            }
            if told_drained.contains(&uuid) {
                self.drain_told[number] = DrainStage::Empty;
            }
        }
        let mut fingerprints = Fingerprints::default();
        let (all, mut without, mut ended) = (records.len(), 0, 0);
        for record in records {
            let (session, title) = (record.state.session, record.name.clone());
            let Ok(token) = record.token.parse() else { continue };
            match self.take_over_session(record, &mut fingerprints) {
                Ok(TakenOver::Booked { .. } | TakenOver::Silent) => {}
                Ok(TakenOver::Refused(refusal)) => {
                    without += 1;
                    self.shared.log.line(|| {
                        json!({
                            "event": "session-without-reservation",
                            "session": session.0,
                            "title": title,
                            "detail": refusal.detail,
                        })
                    });
                }
                Err(why) => {
                    ended += 1;
                    // Its player gets 410 from now on, and begins again.
                    self.shared.sessions.remove(token);
                    self.shared.log.line(|| {
                        json!({
                            "event": "session-not-taken-over",
                            "session": session.0,
                            "title": title,
                            "error": why,
                        })
                    });
                }
            }
        }
        self.execute_actions();
        self.shared.tell("restarted", || {
            json!({
                "sessions": all - ended,
                "without_reservation": without,
                "sessions_ended": ended,
            })
        });
    }

    /// Goes on with a session, or says why it ends.
    fn take_over_session(
        &mut self,
        record: SessionRecord,
        fingerprints: &mut Fingerprints,
    ) -> Result<TakenOver, String> {
        let content = &self.shared.content;
        let title = content.open_content(&record.name, &record.content);
        let title = title.map_err(|why| why_not_open(&why))?;
        let part = PlaybackParams::from(&record.part);
        let presentation = title.build_presentation(&part).map_err(|why| why.to_string())?;
        let permit = Permit {
            max_height: record.max_height,
            priority: record.priority,
            client: record.bound_to,
            owner: record.owner.map(Arc::new),
            until: record.until,
        };
        let format = record.format;
        let offers = presentation.offers(format);
        if record.offer >= offers.len() {
            return Err("the title has other tracks now".to_owned());
        }
        let best =
            presentation.best_offer(format, &permit).ok_or("the token permits none of it")?;
        let (layout, copies) =
            presentation.layouts(format).split_first().ok_or("this form of the title is gone")?;
        let request = AdmitRequest {
            layout: Arc::clone(layout),
            copies: copies.to_vec(),
            offers: offers[best..].to_vec(),
            start: Duration::ZERO,
            max_wait: MaxWait { time: LONGEST_DELAY, is_chosen: true, ..MaxWait::default() },
            replaces: None,
            fill: None,
            priority: permit.priority,
        };
        let session = Arc::new(PlayerSession {
            id: record.state.session,
            token: record.token.parse().ok(),
            title,
            presentation,
            name: record.name,
            format,
            offer: record.offer,
            permit,
            client: ClientAddress::of(record.client),
            // Channels and the files of mounts are not handed over.
            sent_to: None,
            listed_as: None,
            in_mount: false,
            is_directed: record.is_directed,
            failover: None,
            admitted: Instant::now().checked_sub(record.age).unwrap_or_else(Instant::now),
            wait: record.wait,
            trace: record.trace,
            started: Arc::new(AtomicBool::new(record.has_played)),
            reported: Arc::default(),
        });
        if fingerprints.of(&session) != record.fingerprint {
            return Err("the title is packaged differently now".to_owned());
        }
        let taken = self.engine.take_over(self.clock.now(), record.state, request);
        self.open_session(&session);
        Ok(taken)
    }

    /// A session is there from now on.
    pub(super) fn open_session(&mut self, session: &Arc<PlayerSession>) {
        let playing = self.titles.entry(session.title.key).or_insert_with(|| {
            let title = Arc::clone(&session.title);
            PlayingTitle { title, name: String::new(), sessions: 0 }
        });
        playing.sessions += 1;
        playing.lengthen(&session.title);
        playing.name.clone_from(&session.name);
        if !session.is_fill() && !session.has_played() {
            self.unplayed.add(session.client);
        }
        if let Some(until) = session.permit.until {
            self.ends.insert((until, session.id));
        }
        self.shared.sessions.insert(session);
        self.sessions.insert(session.id, OpenSession::new(Arc::clone(session)));
    }
}

/// What players were given, computed once for each presentation, format and set of tracks.
#[derive(Default)]
struct Fingerprints(HashMap<FingerprintKey, (Arc<Presentation>, String)>);

/// The address of a presentation that is kept, and how it is played.
type FingerprintKey = (*const Presentation, DeliveryFormat, Vec<u16>);

impl Fingerprints {
    fn of(&mut self, session: &PlayerSession) -> String {
        let (part, format) = (&session.presentation, session.format);
        let key = (Arc::as_ptr(part), format, session.tracks().to_vec());
        let entry = self.0.entry(key);
        let new = || (Arc::clone(part), part.fingerprint(format, session.tracks()));
        entry.or_insert_with(new).1.clone()
    }
}

fn why_not_open(why: &OpenError) -> String {
    match why {
        OpenError::NoTitle { .. } => "there is no such title any more".to_owned(),
        OpenError::NotPlayable(why) => why.to_string(),
        OpenError::NotEncryptedYet => "it is to be encrypted, and is being recorded".to_owned(),
        OpenError::NoKeys(why) => why.clone(),
        OpenError::NotYet => "its recording has just begun".to_owned(),
        OpenError::DiskBusy => "its disk is busy".to_owned(),
        OpenError::Failed(why) => why.clone(),
    }
}

/// The longest time by which a session's deadlines may move to make it fit.
const LONGEST_DELAY: Duration = Duration::from_secs(5);
