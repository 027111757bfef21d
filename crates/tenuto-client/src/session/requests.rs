//! A viewer's requests on its lanes: sent, answered, repeated after a 503, redirected.

use super::failover::Attempts;
use super::manifest_loader::{error_status, is_forwards_only};
use super::{LANES, PlayContext, Session};
use crate::connection::HttpConnection;
use crate::fetched::Fetched;
use crate::http::ResponseHead;
use crate::ldus::{FoundLdu, Ldu};
use crate::piece_reader::PieceReader;
use crate::source::FetchRequest;
use crate::transport::MOST_STREAMS;
use crate::{ClientError, RequestError};
use mio::Token;
use player::{Download, Fetch};
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;
use units::{ByteCount, Moment};

#[derive(Debug)]
pub(super) struct Lane {
    pub(super) connection: HttpConnection,
    pub(super) job: Option<LaneRequest>,
    /// The body of a small response, or of a piece to be saved.
    pub(super) body: Vec<u8>,
    /// The moment at which anything arrived last, or the request was sent.
    pub(super) heard: Moment,
    /// The moment of the first request, and the arrival of the first byte.
    pub(super) asked: Moment,
    pub(super) first: Option<Moment>,
    /// Bytes of the body so far.
    pub(super) came: u64,
    /// A request that got a 503, and the moment at which it is repeated.
    pub(super) again: Option<(Moment, LaneRequest)>,
    /// The last of the track's headers that was fetched.
    pub(super) init: Option<usize>,
    /// Finds LDUs in the pieces.
    pub(super) reader: PieceReader,
    /// LDUs of the present piece that were found and not noted, and the decode time of the first of
    /// each elementary stream.
    pub(super) found: Vec<FoundLdu>,
    pub(super) first_decode: [Option<Duration>; MOST_STREAMS],
    /// LDUs found in this response, and those noted of the piece: a piece that comes again, from
    /// another place, has the same.
    seen: u64,
    noted: u64,
}

#[derive(Clone, Debug)]
pub(super) struct LaneRequest {
    pub(super) what: RequestPurpose,
    pub(super) request: FetchRequest,
    pub(super) redirects: u8,
    /// The number of 503 responses to it.
    pub(super) put_off: u8,
    pub(super) attempts: Attempts,
}

impl LaneRequest {
    pub(super) fn new(what: RequestPurpose, request: FetchRequest, attempts: Attempts) -> Self {
        Self { what, request, redirects: 0, put_off: 0, attempts }
    }
}

/// A complete response with the request that it answers.
pub(super) struct Reply<'a> {
    pub(super) job: LaneRequest,
    pub(super) head: &'a ResponseHead,
    pub(super) body: &'a [u8],
}

impl<'a> Reply<'a> {
    /// The requested bytes: a server without byte ranges sends the whole file.
    pub(super) fn wanted(&self) -> &'a [u8] {
        let Some(wanted) = &self.job.request.range else { return self.body };
        let came = self.head.range.as_ref().map_or(0, |(range, _)| range.start);
        let bytes = wanted
            .start
            .checked_sub(came)
            .and_then(|skipped| self.body.get(usize::try_from(skipped).ok()?..))
            .unwrap_or_default();
        &bytes[..bytes.len().min(usize::try_from(wanted.end - wanted.start).unwrap_or(0))]
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestPurpose {
    /// The address itself, whose response decides admission.
    Admission,
    /// The media playlist of this track.
    Playlist(usize),
    /// The index of this track's pieces in a file that a manifest names.
    Index(usize),
    /// The next boxes of a progressive file.
    Boxes,
    /// The list of pieces of this rendition of the first track, and the piece to fetch next.
    Rendition(Fetch, usize),
    /// The media playlist of a track at another place, and the piece to fetch next.
    Reload(Fetch),
    /// The steering manifest.
    Steering,
    /// The header of a track, and the piece to fetch next.
    Init(Fetch),
    Piece(Fetch),
}

impl Session {
    /// Handles a lane's socket that is readable or writable.
    pub(super) fn ready_lane(&mut self, lane_number: usize, shared: &mut PlayContext) {
        let Some(lane) = self.lanes.get_mut(lane_number) else { return };
        let Some(job) = lane.job.clone() else { return };
        // Only the first viewer's media is saved; the others discard theirs as they come.
        let saved = shared.saver.is_some() && self.number == 0;
        let keep = saved || !matches!(job.what, RequestPurpose::Piece(_));
        let piece = match job.what {
            RequestPurpose::Piece(fetch) => Some(fetch),
            _ => None,
        };
        let (body, heard, first) = (&mut lane.body, &mut lane.heard, &mut lane.first);
        let (reader, found) = (&mut lane.reader, &mut lane.found);
        let mut bytes = 0;
        let mut too_large = false;
        let answer = lane.connection.ready(
            &mut shared.network,
            &job.request,
            &mut shared.scratch,
            &mut |head, part| {
                *heard = shared.now;
                first.get_or_insert(shared.now);
                if head.status < 300 {
                    bytes += part.len() as u64;
                    if piece.is_some() {
                        reader.push(part, shared.now, &mut |ldu| found.push(ldu));
                    }
                }
                // The body of an error is kept for the message.
                if keep || head.status >= 300 {
                    let room = MAX_KEPT - body.len();
                    too_large |= part.len() > room;
                    body.extend_from_slice(&part[..part.len().min(room)]);
                }
            },
        );
        lane.came += bytes;
        if piece.is_some() && matches!(answer, Ok(Some(_))) {
            lane.reader.finish(&mut |ldu| lane.found.push(ldu));
        }
        if let Some(fetch) = piece {
            self.note_ldus(lane_number, fetch, shared);
        }
        // Progressive media has no segments: its pieces are ranges of one file.
        let about = matches!(
            job.what,
            RequestPurpose::Playlist(_)
                | RequestPurpose::Index(_)
                | RequestPurpose::Rendition(..)
                | RequestPurpose::Reload(_)
        );
        let media = !about && job.request.range.is_some();
        if media || matches!(job.what, RequestPurpose::Piece(_) | RequestPurpose::Init(_)) {
            self.bytes += bytes;
        }
        if too_large {
            let reason = "the answer is too large; does the server serve byte ranges?";
            return self
                .fail(shared.now, job.request.url.failed(RequestError::NotAPlaylist(reason)));
        }
        match answer {
            Ok(None) => {}
            Ok(Some(head)) => {
                self.lanes[lane_number].job = None;
                let body = std::mem::take(&mut self.lanes[lane_number].body);
                if let Err(error) =
                    self.answer(lane_number, Reply { job, head: &head, body: &body }, shared)
                {
                    self.fail(shared.now, error);
                }
                self.go_on(shared);
            }
            Err(error) => self.request_failed(lane_number, job, error, shared),
        }
    }

    /// Notes the LDUs that have arrived on a lane, on the player's clock.
    fn note_ldus(&mut self, lane_number: usize, fetch: Fetch, shared: &mut PlayContext) {
        let lane = &mut self.lanes[lane_number];
        let Some((_, timeline)) = self.timelines.last() else { return };
        let begins = timeline.tracks[fetch.track].start(fetch.piece);
        let pace = self.view.unwrap_or(shared.options.view).pace();
        for found in lane.found.drain(..) {
            let decode = found.place.decode;
            let first = *lane.first_decode[found.stream].get_or_insert(decode);
            lane.seen += 1;
            if lane.seen <= lane.noted {
                continue;
            }
            lane.noted = lane.seen;
            let into_piece = decode.saturating_sub(first).div_f64(pace);
            let position = begins + into_piece;
            if fetch.track == 0 && found.stream == 0 {
                self.ldus.arrived(position, found.at, self.player.as_ref());
            }
            if let Some(received) = &mut shared.received {
                let due = self.player.as_ref().and_then(|player| player.ideal_moment(position));
                // The sound in the same stream as the pictures is behind the tracks.
                let track = match found.stream {
                    0 => fetch.track,
                    further => timeline.tracks.len() + further - 1,
                };
                received.push_back(Ldu::new(track, found, due, shared.network.begun));
            }
        }
    }

    /// Makes a request on a lane, whose last request is answered.
    pub(super) fn ask(
        &mut self,
        lane: usize,
        what: RequestPurpose,
        request: FetchRequest,
        shared: &mut PlayContext,
    ) {
        let attempts = Attempts::default();
        self.send(lane, LaneRequest::new(what, request, attempts), shared);
    }

    pub(super) fn send(
        &mut self,
        lane_number: usize,
        mut job: LaneRequest,
        shared: &mut PlayContext,
    ) {
        let elsewhere = matches!(job.what, RequestPurpose::Admission | RequestPurpose::Steering);
        // A place may itself redirect to another.
        if !elsewhere && job.redirects == 0 {
            job.request.url = self.pathways.at_present(&job.request.url);
        }
        if self.looks_elsewhere(&job) {
            shared.network.hosts.trust_address(&job.request.url.host_and_port());
        }
        while self.lanes.len() <= lane_number {
            let token = Token(self.number as usize * LANES + self.lanes.len());
            self.lanes.push(Lane {
                connection: HttpConnection::new(token),
                job: None,
                body: Vec::new(),
                heard: shared.now,
                asked: shared.now,
                first: None,
                came: 0,
                again: None,
                init: None,
                reader: PieceReader::new(shared.received.is_some()),
                found: Vec::new(),
                first_decode: [None; MOST_STREAMS],
                seen: 0,
                noted: 0,
            });
        }
        let lane = &mut self.lanes[lane_number];
        lane.heard = shared.now;
        // The time of a request runs from the first attempt, redirects and waits included.
        if job.redirects == 0 && job.put_off == 0 && !job.attempts.looks_elsewhere() {
            (lane.asked, lane.noted) = (shared.now, 0);
        }
        (lane.first, lane.came, lane.first_decode, lane.seen) = (None, 0, [None; MOST_STREAMS], 0);
        lane.body.clear();
        lane.reader.begin();
        match lane.connection.ask(&mut shared.network, &job.request) {
            Ok(()) => lane.job = Some(job),
            Err(error) => self.request_failed(lane_number, job, error, shared),
        }
    }

    fn answer(
        &mut self,
        lane: usize,
        mut reply: Reply<'_>,
        shared: &mut PlayContext,
    ) -> Result<(), ClientError> {
        let Reply { ref mut job, head, body } = reply;
        match (head.status, &head.location) {
            (200 | 206, _) => self.good_answer(lane, reply, shared),
            (301 | 302 | 303 | 307 | 308, Some(to)) if job.redirects < MAX_REDIRECTS => {
                job.request.url = job.request.url.join(to)?;
                job.redirects += 1;
                self.send(lane, reply.job, shared);
                Ok(())
            }
            // Before the admission a 503 is the verdict on the viewer; later the server is only
            // busy.
            (503, _) if job.what == RequestPurpose::Admission => {
                if self.speed_refused(shared) {
                    return Ok(());
                }
                self.refused(shared.now, head, body, shared.options.retry);
                Ok(())
            }
            (400, _)
                if job.what == RequestPurpose::Admission
                    && is_forwards_only(body)
                    && self.speed_refused(shared) =>
            {
                Ok(())
            }
            (503, _) if job.what != RequestPurpose::Steering && self.looks_elsewhere(job) => {
                let error = job.request.url.failed(error_status(503, body));
                self.no_room(lane, reply.job, head, error, shared);
                Ok(())
            }
            (503, _) if job.what != RequestPurpose::Steering && job.put_off < MAX_PUT_OFF => {
                self.put_off += 1;
                let wait = Duration::from_secs(head.retry_after.unwrap_or(1));
                self.repeat_later(lane, reply.job, wait, shared);
                Ok(())
            }
            (status, _) => {
                let error = job.request.url.failed(error_status(status, body));
                self.request_failed(lane, reply.job, error, shared);
                Ok(())
            }
        }
    }

    /// Repeats a request after a 503; false if that was done too often.
    pub(super) fn repeat_later(
        &mut self,
        lane: usize,
        mut job: LaneRequest,
        wait: Duration,
        shared: &PlayContext,
    ) -> bool {
        if job.put_off >= MAX_PUT_OFF {
            return false;
        }
        job.put_off += 1;
        // No server may make the viewer ask without a pause, or wait for ever.
        let wait = wait.clamp(SHORTEST_RETRY, LONGEST_PUT_OFF);
        self.lanes[lane].again = Some((shared.now + wait, job));
        true
    }

    fn good_answer(
        &mut self,
        lane: usize,
        reply: Reply<'_>,
        shared: &mut PlayContext,
    ) -> Result<(), ClientError> {
        let Reply { ref job, body, .. } = reply;
        match job.what {
            RequestPurpose::Admission
            | RequestPurpose::Playlist(_)
            | RequestPurpose::Index(_)
            | RequestPurpose::Boxes => {
                self.document_received(&reply, shared)?;
            }
            RequestPurpose::Reload(fetch) => self.reloaded(fetch, reply, shared)?,
            RequestPurpose::Steering => self.steered(&reply, shared),
            RequestPurpose::Rendition(fetch, number) => {
                let took = shared.now.since(self.lanes[lane].asked);
                if let Some(ladder) = &mut self.ladder {
                    let like = &self.tracks[0].timeline;
                    ladder.found(number, &job.request.url, reply.wanted(), like)?;
                    ladder.renditions.playlist_received(number, took);
                }
                self.fetch_in(fetch, number, reply.job.attempts, shared)?;
            }
            RequestPurpose::Init(fetch) => {
                self.media_came_from(&job.request.url);
                let init = self.tracks[fetch.track].init(fetch.piece);
                self.lanes[lane].init = init.map(|(number, _)| number);
                self.lanes[lane].reader.header(body);
                self.save(fetch.track, None, body, shared);
                self.fetch_piece(fetch, reply.job.attempts, shared)?;
            }
            RequestPurpose::Piece(fetch) => {
                self.media_came_from(&job.request.url);
                let Lane { asked, first, came: bytes, ref connection, .. } = self.lanes[lane];
                // Without the time of connecting, which is no property of the segment.
                let sent = connection.sent_at().unwrap_or(asked);
                let Fetch { track, piece } = fetch;
                let mut rendition = 0;
                if let Some(ladder) = self.ladder.as_mut().filter(|_| track == 0) {
                    rendition = ladder.now();
                    let (took, waited) =
                        (shared.now.since(sent), first.unwrap_or(shared.now).since(sent));
                    let transfer = Download { bytes: ByteCount(bytes), took, waited };
                    ladder.renditions.piece_received(rendition, &transfer);
                }
                let end = shared.now;
                let got = Fetched { track, piece, rendition, asked, sent, first, end, bytes };
                self.fetched.push(got);
                // Without a reference of its own a piece is a range of the file that is being
                // saved.
                let whole = self.tracks[track].pieces[piece].reference.is_none();
                let offset = job.request.range.as_ref().map(|range| range.start);
                self.save(track, offset.filter(|_| whole), body, shared);
                if let Some(player) = &mut self.player {
                    player.arrived(shared.now, fetch);
                }
            }
        }
        Ok(())
    }

    pub(super) fn open_saver(&self, tracks: usize, shared: &mut PlayContext) {
        if let Some(saver) = shared.saver.as_mut().filter(|_| self.number == 0) {
            shared.fatal = saver.open(tracks).err().or(shared.fatal.take());
        }
    }

    pub(super) fn save(
        &self,
        track: usize,
        offset: Option<u64>,
        bytes: &[u8],
        shared: &mut PlayContext,
    ) {
        if let Some(saver) = shared.saver.as_mut().filter(|_| self.number == 0) {
            shared.fatal = saver.write(track, offset, bytes).err().or(shared.fatal.take());
        }
    }
}

/// The largest number of redirects: browsers stop at twenty, and longer chains are usually loops.
pub(crate) const MAX_REDIRECTS: u8 = 8;

/// The largest response that is kept whole (`moov` boxes, pieces to save).
const MAX_KEPT: usize = 72 << 20;

/// The largest number of attempts after 503 responses: hls.js tries a segment seven times.
pub(crate) const MAX_PUT_OFF: u8 = 10;

/// The longest delay before a repetition, even if the server asks for more.
pub(crate) const LONGEST_PUT_OFF: Duration = Duration::from_secs(10);

/// The shortest delay: `Retry-After: 0` must not become a busy loop.
pub(crate) const SHORTEST_RETRY: Duration = Duration::from_millis(200);

/// The longest wait of a viewer without a place, whatever the server says: room may come sooner
/// than was known, and a number that is wrong must not keep the viewer away for ever.
pub(crate) const LONGEST_RETRY: Duration = Duration::from_secs(60);

/// The wait of a viewer without a place, where the server has named this one: up to a tenth longer,
/// so that viewers who were refused together do not come back together.
pub(crate) fn wait_for_place(named: Duration) -> Duration {
    // Drawn anew by each program: a seed would be the same in all of them.
    let mut random = fastrand::Rng::with_seed(RandomState::new().hash_one(named));
    named.clamp(SHORTEST_RETRY, LONGEST_RETRY).mul_f64(1.0 + LATER * random.f64())
}

/// The part by which a viewer comes back later, at most.
const LATER: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_viewer_without_a_place_waits_as_it_was_told_within_bounds() {
        let rows = [(0, 200), (2_000, 2_000), (60_000, 60_000), (3_600_000, 60_000)];
        for (named, least) in rows {
            let wait = wait_for_place(Duration::from_millis(named));
            let range = Duration::from_millis(least)..=Duration::from_millis(least + least / 10);
            assert!(range.contains(&wait), "{named} ms: {wait:?}");
        }
        // As a header field may name it.
        assert!(wait_for_place(Duration::from_secs(u64::MAX)) <= LONGEST_RETRY * 11 / 10);
    }
}
