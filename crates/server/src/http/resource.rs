//! What an address under a title names: bytes in memory or media, with entity tag and type. They
//! are the same for a session and for caches; who may keep them is said where they are sent.

use super::cmsd::Cmsd;
use super::ranged::modified;
use super::response::Response;
use super::routes::Route;
use crate::library::OpenTitle;
use crate::presentation::{BuiltFile, Presentation};
use media::{Body, CueClock, Slice, TextForm, TrackKind};
use std::sync::Arc;
use std::time::SystemTime;

/// A resource of a title.
pub(super) enum TitleResource {
    InMemory(MemoryResource),
    Media(MediaResource),
}

/// A playlist of one track, subtitles, or an image with thumbnails.
pub(super) struct MemoryResource {
    pub(super) kind: &'static str,
    body: Vec<u8>,
    etag: String,
}

/// A file, an initialization segment, a media segment or an I-frame.
pub(super) struct MediaResource {
    pub(super) body: Arc<Body>,
    pub(super) etag: String,
    pub(super) kind: &'static str,
    pub(super) cmsd: Option<Cmsd>,
}

/// The resource that a route names in a presentation of a title; `None` if there is none, also for
/// routes that name no single track. `clock`: of subtitles and thumbnails. `query` is appended to
/// the addresses in playlists. Transport streams have to be planned.
pub(super) fn find(
    route: &Route,
    title: &OpenTitle,
    presentation: &Presentation,
    clock: CueClock,
    query: &str,
) -> Option<TitleResource> {
    let packaging = &presentation.packaging;
    // A whole title has one clock.
    let of_file = clock == CueClock::File && !presentation.tag.is_empty();
    let of_clock = if of_file { "f" } else { "" };
    let etag = |what: String| title.etag(&format!("{what}{}", presentation.tag));
    let playlist = |text: Option<String>, what: String| in_memory(PLAYLIST, text, etag(what));
    let media = |body: Option<Body>, kind: &'static str, what: String, cmsd: Option<Cmsd>| {
        let (body, etag) = (Arc::new(body?), etag(what));
        Some(TitleResource::Media(MediaResource { body, etag, kind, cmsd }))
    };
    let of_track = |track| content_type(title, &[track]);
    match *route {
        Route::Playlist { track, .. } => {
            playlist(packaging.media_playlist(track, query), format!("p{track}"))
        }
        Route::TransportPlaylist { track, .. } => {
            playlist(packaging.transport_playlist(track, query), format!("tp{track}"))
        }
        Route::IframePlaylist { track, .. } => {
            playlist(packaging.iframe_playlist(track, query), format!("kp{track}"))
        }
        Route::TextPlaylist { text, form, .. } => {
            let list = packaging.text_playlist(text, form, query);
            playlist(list, format!("{}p{text}", tag_of(form)))
        }
        Route::TextInit { text, .. } => {
            in_memory(MP4, packaging.text_init(text), etag(format!("ti{text}")))
        }
        Route::TextSegment { text, number, form, .. } => {
            let segment = packaging.text_segment(text, number, form);
            let kind = if form == TextForm::Imsc { MP4 } else { WEBVTT };
            in_memory(kind, segment, etag(format!("{}{text}-{number}", tag_of(form))))
        }
        Route::TextFile { text, form, .. } => {
            let file = packaging.text_file(text, form, clock);
            let kind = if form == TextForm::Imsc { TTML } else { WEBVTT };
            in_memory(kind, file, etag(format!("{}{text}{of_clock}", tag_of(form))))
        }
        Route::ThumbnailPlaylist { .. } => {
            playlist(packaging.thumbnail_playlist(query), "jp".to_owned())
        }
        Route::ThumbnailCues { .. } => {
            let cues = packaging.thumbnail_cues(query, clock);
            in_memory(WEBVTT, cues, etag(format!("jv{of_clock}")))
        }
        Route::ThumbnailImage { number, .. } => {
            let image = packaging.thumbnail_image(number);
            in_memory("image/jpeg", image.as_deref(), etag(format!("j{number}")))
        }
        Route::TransportSegment { track, number, .. } => {
            let tracks = packaging.transport_tracks(track)?;
            let duration = packaging.transport_segment_duration(track, number);
            let cmsd = Cmsd::of_transport(packaging, &tracks, duration);
            let body = packaging.transport_segment(track, number);
            media(body, TRANSPORT_STREAM, format!("t{track}-{number}"), Some(cmsd))
        }
        Route::Init { track, .. } => {
            let body = packaging.init_segment(track).map(generated);
            media(body, of_track(track), format!("i{track}"), Some(Cmsd::of_init("h")))
        }
        Route::DashInit { track, .. } => {
            let body = packaging.dash_init_segment(track).map(generated);
            media(body, of_track(track), format!("d{track}"), Some(Cmsd::of_init("d")))
        }
        Route::Segment { track, number, .. } => {
            let body = Some(packaging.segment(track, number)?);
            let cmsd = Cmsd::of_segment(packaging, track, number);
            media(body, of_track(track), format!("s{track}-{number}"), Some(cmsd))
        }
        Route::Iframe { track, number, .. } => {
            let body = packaging.iframe(track, number);
            media(body, of_track(track), format!("k{track}-{number}"), None)
        }
        _ => None,
    }
}

impl MemoryResource {
    /// The response with these bytes, which caches may keep by `rule`.
    pub(super) fn response(self, title: &OpenTitle, rule: &str) -> Response {
        let mut response = Response::new(200, self.kind, self.body);
        response.head.add("Cache-Control", rule);
        response.etag = Some(self.etag);
        response.modified = modified(title, SystemTime::now());
        response
    }
}

impl MediaResource {
    /// A title, or a part of it, as the file of these tracks, which is `body`.
    pub(super) fn file(
        title: &OpenTitle,
        presentation: &Presentation,
        tracks: &[u16],
        body: Arc<Body>,
    ) -> Self {
        let (etag, kind) = (file_etag(title, presentation, tracks), content_type(title, tracks));
        let cmsd = Some(Cmsd::of_file(&presentation.packaging, tracks));
        Self { body, etag, kind, cmsd }
    }

    /// The segments, or the I-frames, of a track as one file, which is `body`.
    pub(super) fn track_file(
        title: &OpenTitle,
        presentation: &Presentation,
        file: &BuiltFile,
        body: Arc<Body>,
    ) -> Self {
        let (name, tracks, cmsd) = match file {
            BuiltFile::Movie(tracks) => ("mp4".to_owned(), tracks.clone(), None),
            BuiltFile::Track(track) => {
                let cmsd = Cmsd::of_track_file(&presentation.packaging, *track);
                (format!("f{track}"), vec![*track], Some(cmsd))
            }
            BuiltFile::Iframes(track) => (format!("kf{track}"), vec![*track], None),
            BuiltFile::Transport(track) => {
                let rate = presentation.params.rate.map_or(0, |rate| rate.0);
                let tracks = presentation.packaging.transport_tracks(*track).unwrap_or_default();
                let cmsd = Cmsd::of_transport(&presentation.packaging, &tracks, None);
                (format!("tf{track}-{rate}"), tracks, Some(cmsd))
            }
        };
        let etag = title.etag(&(name + &presentation.tag));
        let kind = match file {
            BuiltFile::Transport(_) => TRANSPORT_STREAM,
            _ => content_type(title, &tracks),
        };
        Self { body, etag, kind, cmsd }
    }
}

/// The entity tag of the MP4 file of these tracks.
pub(super) fn file_etag(title: &OpenTitle, part: &Presentation, tracks: &[u16]) -> String {
    let name = tracks.iter().fold("mp4".to_owned(), |tag, track| format!("{tag}-{track}"));
    title.etag(&(name + &part.tag))
}

/// The content type of media of these tracks.
pub(super) fn content_type(title: &OpenTitle, tracks: &[u16]) -> &'static str {
    let all = &title.whole.packaging.index().tracks;
    let is_video = |track: &u16| {
        all.get(usize::from(*track)).is_some_and(|t| t.description.kind == TrackKind::Video)
    };
    if tracks.iter().any(is_video) { "video/mp4" } else { "audio/mp4" }
}

/// What distinguishes the entity tags of text in this form.
fn tag_of(form: TextForm) -> &'static str {
    match form {
        TextForm::WebVtt => "v",
        TextForm::Imsc => "x",
    }
}

fn in_memory(
    kind: &'static str,
    body: Option<impl Into<Vec<u8>>>,
    etag: String,
) -> Option<TitleResource> {
    Some(TitleResource::InMemory(MemoryResource { kind, body: body?.into(), etag }))
}

fn generated(bytes: Arc<[u8]>) -> Body {
    let range = 0..bytes.len();
    [Slice::Generated { bytes, range }].into_iter().collect()
}

/// The content type of HLS playlists.
pub(super) const PLAYLIST: &str = "application/vnd.apple.mpegurl";
const TRANSPORT_STREAM: &str = "video/mp2t";
/// The content type of subtitles.
const WEBVTT: &str = "text/vtt";
const TTML: &str = "application/ttml+xml";
/// The content type of subtitles in fragmented MP4.
const MP4: &str = "application/mp4";
