//! The responses before the player runs: refusals, playlists, manifests, and a file's boxes.
//!
//! ```text
//!   Admission ─┬─ media playlist ────────────────────────────────┐
//!              ├─ multivariant playlist ─▶ Playlist of each track ┤
//!              ├─ manifest ─▶ Index of each track that needs one ─┼─▶ start
//!              └─ MP4 ─▶ Boxes, until moov has arrived ───────────┘
//! ```

use super::renditions::{Ladder, list_of_lists};
use super::requests::{Reply, RequestPurpose, wait_for_place};
use super::{PlayContext, Session, SessionState};
use crate::dash::{looks_like_a_manifest, read_manifest};
use crate::http::ResponseHead;
use crate::outcome::{RefusalReport, ViewerOutcome};
use crate::pathways::Pathways;
use crate::progressive::MoovSearch;
use crate::renditions::OfferedRenditions;
use crate::source::{FetchRequest, Listing, TrackSource, looks_like_a_playlist, read_playlist};
use crate::url::Url;
use crate::{ClientError, RequestError};
use player::{Player, Timeline};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use units::{BitRate, Moment};

impl Session {
    /// Handles a successful response that contains no media.
    pub(super) fn document_received(
        &mut self,
        reply: &Reply<'_>,
        shared: &mut PlayContext,
    ) -> Result<(), ClientError> {
        let Reply { job, head, body } = reply;
        let url = &job.request.url;
        match job.what {
            RequestPurpose::Playlist(number) => {
                self.playlist(number, read_playlist(url, body)?, shared)
            }
            RequestPurpose::Index(track) => {
                if let Some(manifest) = &mut self.manifest {
                    manifest.found(track, reply.wanted())?;
                }
                self.seek_index(track, shared)
            }
            _ if looks_like_a_playlist(body) || looks_like_a_manifest(body) => {
                self.answered = Some(shared.now);
                if is_part(head) {
                    // By its address it was taken for a file and fetched in part.
                    let whole = FetchRequest::whole(url.clone());
                    self.ask(0, RequestPurpose::Admission, whole, shared);
                    return Ok(());
                }
                if looks_like_a_manifest(body) {
                    return self.manifest(url, body, shared);
                }
                match read_playlist(url, body)? {
                    Listing::Track(track) => self.start(vec![track], shared),
                    Listing::Offers(mut offers) => {
                        self.found_pathways(Pathways::of_playlist(url, body), shared);
                        let audio = offers.audio.take();
                        let ladder = Ladder::of_lists(shared.options.switching, offers);
                        let lists: Vec<_> =
                            ladder.list().cloned().into_iter().chain(audio).collect();
                        self.ladder = Some(ladder);
                        self.awaited = lists.len();
                        for (track, url) in lists.into_iter().enumerate() {
                            let whole = FetchRequest::whole(url);
                            self.ask(track, RequestPurpose::Playlist(track), whole, shared);
                        }
                    }
                }
                Ok(())
            }
            RequestPurpose::Admission if job.request.range.is_none() => {
                if url.path().ends_with(".mpd") {
                    read_manifest(url, body, None).map(drop)
                } else {
                    read_playlist(url, body).map(drop)
                }
            }
            _ => {
                self.answered.get_or_insert(shared.now);
                self.boxes(reply, shared)
            }
        }
    }

    fn playlist(
        &mut self,
        number: usize,
        listing: Listing,
        shared: &mut PlayContext,
    ) -> Result<(), ClientError> {
        let Listing::Track(track) = listing else { return Err(list_of_lists(&self.url)) };
        if let Some(ladder) = self.ladder.as_mut().filter(|_| number == 0) {
            ladder
                .renditions
                .playlist_received(ladder.now(), shared.now.since(self.lanes[0].asked));
        }
        // Both lanes load in parallel, so that the second track may arrive first.
        let at = self.tracks.len().min(number);
        self.tracks.insert(at, track);
        self.awaited -= 1;
        if self.awaited == 0 {
            let tracks = std::mem::take(&mut self.tracks);
            self.start(tracks, shared);
        }
        Ok(())
    }

    fn manifest(
        &mut self,
        url: &Url,
        body: &[u8],
        shared: &mut PlayContext,
    ) -> Result<(), ClientError> {
        let best = read_manifest(url, body, None)?;
        let ladder = Ladder::of_manifest(shared.options.switching, url, body, &best);
        let first = ladder.now();
        let is_best = first + 1 == best.renditions().len();
        let manifest = if is_best { best } else { read_manifest(url, body, Some(first))? };
        self.ladder = Some(ladder);
        self.found_pathways(manifest.places().clone(), shared);
        let tracks = manifest.tracks();
        self.awaited = tracks;
        self.manifest = Some(manifest);
        (0..tracks).try_for_each(|track| self.seek_index(track, shared))
    }

    /// Fetches a track's next index, or starts the player when all tracks are complete.
    fn seek_index(&mut self, track: usize, shared: &mut PlayContext) -> Result<(), ClientError> {
        let Some(manifest) = &self.manifest else { return Ok(()) };
        if let Some(request) = manifest.wanted(track)? {
            self.ask(track, RequestPurpose::Index(track), request, shared);
            return Ok(());
        }
        self.awaited -= 1;
        if self.awaited == 0
            && let Some(manifest) = self.manifest.take()
        {
            self.start(manifest.sources()?, shared);
        }
        Ok(())
    }

    /// Handles a part of a progressive file's boxes.
    fn boxes(
        &mut self,
        Reply { job, head, body }: &Reply<'_>,
        shared: &mut PlayContext,
    ) -> Result<(), ClientError> {
        let url = &job.request.url;
        let error = |reason| url.failed(RequestError::NotMp4(reason));
        // A server without byte ranges sends the whole of a small file, which also works.
        let whole = (0..body.len() as u64, Some(body.len() as u64));
        let (range, total) = head.range.clone().unwrap_or(whole);
        let total = total.ok_or_else(|| error("the server does not say how long it is"))?;
        self.open_saver(1, shared);
        self.save(0, Some(range.start), body, shared);
        match self.finder.look(range.start, body, total).map_err(error)? {
            MoovSearch::Need(range) => {
                let request = FetchRequest { url: url.clone(), range: Some(range) };
                self.ask(0, RequestPurpose::Boxes, request, shared);
            }
            MoovSearch::Moov(moov) => {
                let track = self.finder.pieces(url, &moov, total).map_err(error)?;
                self.start(vec![track], shared);
            }
        }
        Ok(())
    }

    /// Starts the player: everything is known. Its time counts from the request that was admitted.
    fn start(&mut self, tracks: Vec<TrackSource>, shared: &mut PlayContext) {
        let pace = self.next_view(shared).pace();
        let timelines = tracks.iter().map(|track| track.timeline.at_speed(pace)).collect();
        let timeline = Arc::new(Timeline { tracks: timelines });
        self.timelines.push((self.fetched.len(), Arc::clone(&timeline)));
        self.tracks = tracks;
        self.offered = self.ladder.as_ref().and_then(|ladder| {
            let peaks: Vec<BitRate> =
                ladder.renditions.offers().iter().map(|offer| offer.peak).collect();
            let best = ladder.renditions.best();
            // Some manifests do not declare rates.
            (peaks[best].0 > 0).then_some(OfferedRenditions { peaks, best })
        });
        if self.speed_changed(&timeline, shared) {
            return;
        }
        self.open_saver(self.tracks.len(), shared);
        self.state = SessionState::Playing;
        let options = &shared.options;
        self.player =
            Some(Player::new(self.admission_asked, timeline, options.player, &self.behaviour));
    }

    pub(super) fn refused(&mut self, now: Moment, head: &ResponseHead, body: &[u8], retry: bool) {
        let retry = retry && !is_for_ever(body);
        self.refused_with(now, refusal(head.retry_after, body), retry);
    }

    /// Notes a refusal; the viewer asks again later, or leaves.
    pub(super) fn refused_with(&mut self, now: Moment, refusal: RefusalReport, retry: bool) {
        self.answered = Some(now);
        let wait = wait_for_place(Duration::from_secs(refusal.retry_after_s.unwrap_or(5)));
        self.refusal = Some(refusal);
        if retry {
            self.state = SessionState::WaitingToRetry(now + wait);
        } else {
            self.state = SessionState::Done(ViewerOutcome::Refused);
            self.close();
        }
    }
}

/// Whether more of the index follows the received bytes.
fn is_part(head: &ResponseHead) -> bool {
    let range = head.range.as_ref();
    range.is_some_and(|(range, total)| total.is_none_or(|total| range.end < total))
}

/// The content of a refusal: JSON with `resource` and `message` from Tenuto (or `error`, when no
/// resource is scarce), a line of text from other servers.
pub(crate) fn refusal(retry_after_s: Option<u64>, body: &[u8]) -> RefusalReport {
    let value: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |keys: &[&str]| keys.iter().find_map(|key| value.get(key)?.as_str());
    RefusalReport {
        resource: text(&["resource", "error"]).unwrap_or("unknown").to_owned(),
        cause: text(&["cause"]).map(str::to_owned),
        retry_after_s,
        reason: text(&["message"]).map_or_else(|| beginning(body), str::to_owned),
        detail: text(&["detail"]).map(str::to_owned),
    }
}

/// Whether a Tenuto server says that the same request will never fit: `wait`, that only one with a
/// longer wait would.
pub(crate) fn is_for_ever(body: &[u8]) -> bool {
    let value: Value = serde_json::from_slice(body).unwrap_or_default();
    value["retry"] == "never" || value["retry"] == "wait"
}

/// The failure of a request whose response has this error status.
pub(crate) fn error_status(status: u16, body: &[u8]) -> RequestError {
    // A Tenuto server explains an error in JSON; of other bodies the first line is shown.
    let json = serde_json::from_slice::<Value>(body).ok();
    let field = |name: &str| Some(json.as_ref()?[name].as_str()?.to_owned());
    let (message, hint) = (field("message"), field("hint"));
    match status {
        404 => RequestError::NotFound { message: message.unwrap_or_default(), hint },
        _ => {
            let message = message.unwrap_or_else(|| beginning(body));
            RequestError::Status { status, message, hint }
        }
    }
}

/// Whether a Tenuto server has answered that it plays this backwards to nobody: it is a file.
pub(crate) fn is_forwards_only(body: &[u8]) -> bool {
    serde_json::from_slice::<Value>(body).is_ok_and(|answer| answer["error"] == "forwards-only")
}

/// The first line of a response, for error messages.
fn beginning(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(SHOWN)]);
    text.lines().next().unwrap_or_default().trim().to_owned()
}

/// Bytes of an error page that are shown.
const SHOWN: usize = 200;
