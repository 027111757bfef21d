//! The records of a run: what each viewer received and when, for programs that judge it in their
//! own way.

use crate::fetched::{Fetched, OwnLateness};
use crate::outcome::ViewerOutcome;
use crate::rendition_account::shown;
use crate::run::PlayRun;
use crate::session::{Session, SessionState};
use player::{PlayerReport, Timeline};
use std::sync::Arc;
use std::time::Duration;
use units::Moment;

/// What the viewers of a run received.
#[derive(Clone, Debug)]
pub struct PlayRecords {
    /// The viewers in order of arrival.
    pub viewers: Vec<ViewerRecord>,
    /// From the first arrival to the end.
    pub took: Duration,
    /// Whether the run went to its end.
    pub complete: bool,
    /// The lateness of the client itself.
    pub own: OwnLateness,
}

/// What one viewer received.
#[derive(Clone, Debug)]
pub struct ViewerRecord {
    /// The number of the viewer.
    pub number: u32,
    /// How its visit ended.
    pub outcome: ViewerOutcome,
    /// The moment of the last request for admission: the player's time counts from here.
    pub admission_asked: Moment,
    /// The timeline of the title, where it became known.
    pub timeline: Option<Arc<Timeline>>,
    /// The player's measurements, where one was started.
    pub player: Option<PlayerReport>,
    /// Fetched pieces in the order of their arrival.
    pub fetched: Vec<Fetched>,
    /// The pieces of the first track that were of a lower rendition than necessary.
    pub below_best: Vec<usize>,
}

/// The records of a run.
pub(crate) fn of(run: &PlayRun) -> PlayRecords {
    let viewers = run.sessions.iter().zip(shown(&run.sessions));
    PlayRecords {
        viewers: viewers
            .map(|(session, shown)| viewer(session, shown.map_or(Vec::new(), |shown| shown.below)))
            .collect(),
        took: run.took,
        complete: run.complete,
        own: run.own.clone(),
    }
}

fn viewer(session: &Session, below_best: Vec<usize>) -> ViewerRecord {
    let SessionState::Done(outcome) = session.state else {
        panic!("the end of the run closed every session")
    };
    ViewerRecord {
        number: session.number,
        outcome,
        admission_asked: session.admission_asked,
        timeline: session.timeline().cloned(),
        player: session.last.clone(),
        fetched: session.fetched.clone(),
        below_best,
    }
}
