//! A viewer whose node does not answer, or who is led elsewhere, goes on at another place of the
//! title, at the same piece.
//!
//! ```text
//!   request fails ─▶ tried += here ─▶ next place ─┬─ 200 ──▶ all requests go there
//!        ▲                                        ├─ 503 ──▶ noted, the next one
//!        └────────────────────────────────────────┴─ fails
//!   none left: wait for a place that said 503 ─▶ once more; otherwise the request has failed
//! ```
//!
//! Each pathway of HLS has media playlists of its own, which are fetched there before a segment.
//! The steering manifest is fetched on a lane of its own. Without it the last list stays. A place
//! to which it leads counts as the next one; where that does not take the viewer, the viewer goes
//! on where the last piece came from.

use super::renditions::{WITHIN, list_of_lists};
use super::requests::{LaneRequest, Reply, RequestPurpose, SHORTEST_RETRY};
use super::{PlayContext, Session};
use crate::http::ResponseHead;
use crate::pathways::{ASK_AGAIN, Pathways};
use crate::source::{FetchRequest, Listing, read_playlist};
use crate::url::Url;
use crate::{ClientError, RequestError};
use player::Fetch;
use std::time::Duration;

/// Where a request was tried.
#[derive(Clone, Debug, Default)]
pub(super) struct Attempts {
    /// The places at which it failed since it was asked or put off last.
    pub(super) tried: Vec<usize>,
    /// The first of them that had no room, and how long to wait for it.
    busy: Option<(usize, Duration)>,
}

impl Attempts {
    /// Whether the viewer has lost a place and looks for another.
    pub(super) fn looks_elsewhere(&self) -> bool {
        !self.tried.is_empty()
    }
}

impl Session {
    /// Takes the places that a manifest from `url` names, and asks for the steering manifest.
    pub(super) fn found_pathways(&mut self, pathways: Pathways, shared: &mut PlayContext) {
        self.pathways = pathways;
        self.ask_steering(shared);
    }

    /// Asks where the viewer should be, and could go on.
    pub(super) fn ask_steering(&mut self, shared: &mut PlayContext) {
        self.steer_at = None;
        if let Some(url) = self.pathways.steering() {
            self.ask(STEERING, RequestPurpose::Steering, FetchRequest::whole(url), shared);
        }
    }

    /// Handles a steering manifest.
    pub(super) fn steered(&mut self, reply: &Reply<'_>, shared: &mut PlayContext) {
        let again = self.pathways.steer(reply.body).unwrap_or(ASK_AGAIN);
        self.steer_at = Some(shared.now + again.max(SHORTEST_STEERING));
        // Not while the viewer looks for a place already.
        let has_place = self.pathways.is_present(self.place);
        if let Some(place) = self.pathways.preferred().filter(|_| has_place) {
            self.pathways.go_to(place);
            self.is_led = true;
        }
        // The server of steering manifests has other viewers to serve meanwhile.
        self.lanes[STEERING].connection.close();
    }

    /// Handles a request that got no response, or one that only this place gives: the viewer goes
    /// on elsewhere, or has failed.
    pub(super) fn request_failed(
        &mut self,
        lane_number: usize,
        job: LaneRequest,
        error: ClientError,
        shared: &mut PlayContext,
    ) {
        if let Some(lane) = self.lanes.get_mut(lane_number) {
            lane.job = None;
            lane.connection.close();
        }
        if job.what == RequestPurpose::Steering {
            self.steer_at = Some(shared.now + ASK_AGAIN);
            return;
        }
        let looks = self.looks_elsewhere(&job);
        if job.what == RequestPurpose::Admission || !is_of_the_place(&error, looks) {
            return self.fail(shared.now, error);
        }
        self.go_elsewhere(lane_number, job, error, shared);
    }

    /// Whether a request is that of a viewer who has lost a place, or is led to another by it.
    pub(super) fn looks_elsewhere(&self, job: &LaneRequest) -> bool {
        let leaves = || self.pathways.place_of(&job.request.url).is_some_and(|at| at != self.place);
        job.attempts.looks_elsewhere() || self.is_led && leaves()
    }

    /// Handles a place without room for a viewer who comes from another: the next one may have it.
    pub(super) fn no_room(
        &mut self,
        lane_number: usize,
        mut job: LaneRequest,
        head: &ResponseHead,
        error: ClientError,
        shared: &mut PlayContext,
    ) {
        self.put_off += 1;
        let wait = Duration::from_secs(head.retry_after.unwrap_or(1)).max(SHORTEST_RETRY);
        if let Some(here) = self.pathways.place_of(&job.request.url) {
            job.attempts.busy.get_or_insert((here, wait));
        }
        self.go_elsewhere(lane_number, job, error, shared);
    }

    /// Handles the media playlist of a track at the present place, whose piece is to be fetched.
    pub(super) fn reloaded(
        &mut self,
        fetch: Fetch,
        reply: Reply<'_>,
        shared: &mut PlayContext,
    ) -> Result<(), ClientError> {
        let url = &reply.job.request.url;
        let track = &mut self.tracks[fetch.track];
        *track = match read_playlist(url, reply.body)? {
            Listing::Track(new) if new.timeline.has_same_bounds(&track.timeline, WITHIN) => new,
            Listing::Track(_) => return Err(url.failed(RequestError::CutElsewhere)),
            Listing::Offers(_) => return Err(list_of_lists(url)),
        };
        self.fetch_piece(fetch, reply.job.attempts, shared)
    }

    /// Sends a request to the next place. Where there is none it is repeated later, or the viewer
    /// has failed.
    fn go_elsewhere(
        &mut self,
        lane: usize,
        mut job: LaneRequest,
        error: ClientError,
        shared: &mut PlayContext,
    ) {
        let next = self.pathways.place_of(&job.request.url).and_then(|here| {
            job.attempts.tried.push(here);
            let back = std::mem::take(&mut self.is_led).then_some(self.place);
            let back = back.filter(|place| !job.attempts.tried.contains(place));
            back.or_else(|| self.pathways.next(&job.attempts.tried))
        });
        let Some(next) = next else {
            if !self.wait_for_room(lane, job, shared) {
                self.fail(shared.now, error);
            }
            return;
        };
        self.pathways.go_to(next);
        job.redirects = 0;
        if let RequestPurpose::Init(fetch) | RequestPurpose::Piece(fetch) = job.what
            && self.pathways.is_of_another(&self.tracks[fetch.track].base)
        {
            job.what = RequestPurpose::Reload(fetch);
            job.request = FetchRequest::whole(self.tracks[fetch.track].base.clone());
        }
        self.send(lane, job, shared);
    }

    /// Repeats a request later at the place that had no room first; false if none said that, or
    /// too often.
    fn wait_for_room(
        &mut self,
        lane: usize,
        mut job: LaneRequest,
        shared: &mut PlayContext,
    ) -> bool {
        let Some((place, wait)) = job.attempts.busy.take() else { return false };
        // Each round asks the others again, but for the place that was lost first.
        job.attempts.tried.truncate(1);
        self.pathways.go_to(place);
        self.repeat_later(lane, job, wait, shared)
    }

    /// Counts a change of place, once media has come from the new one.
    pub(super) fn media_came_from(&mut self, url: &Url) {
        // A response from the place before may still have been on its way.
        let here = self.pathways.place_of(url).filter(|here| self.pathways.is_present(*here));
        if let Some(place) = here.filter(|here| *here != self.place) {
            (self.place, self.is_led) = (place, false);
            self.failovers += 1;
        }
    }
}

/// Whether another place may give another response. `looks`: the viewer has lost one already.
fn is_of_the_place(error: &ClientError, looks: bool) -> bool {
    match error {
        ClientError::Host { .. } | ClientError::Connect { .. } => true,
        ClientError::Request { error, .. } => match error {
            RequestError::Tls(_)
            | RequestError::Lost(_)
            | RequestError::Silent(_)
            | RequestError::NotFound { .. } => true,
            RequestError::Status { status, .. } => {
                looks || *status == 410 || (*status >= 500 && *status != 503)
            }
            _ => false,
        },
        _ => false,
    }
}

/// The lane of steering manifests: video and audio have the first two.
pub(super) const STEERING: usize = 2;

/// The shortest time between two steering manifests, whatever the server says.
const SHORTEST_STEERING: Duration = Duration::from_secs(5);
