//! Addresses for caches in front of the server: no session and no token in them, and the same bytes
//! for everybody.
//!
//! ```text
//!   /origin/TITLE/master.m3u8               names VERSION/0.m3u8 ...          kept for 10 s
//!   /origin/TITLE/manifest.mpd              names VERSION/0/17.m4s ...        kept for 10 s
//!   /origin/TITLE.mp4                       307 to TITLE/VERSION/file.mp4     kept for 10 s
//!   /origin/TITLE.ts?rate=8Mbps             307 to TITLE/VERSION/file-8000000.ts    the same
//!   /origin/TITLE/VERSION/0.m3u8            names 0/17.m4s                    kept for an hour
//!   /origin/TITLE/VERSION/0/17.m4s          media: a fill                     immutable
//!   /origin/TITLE/VERSION/0.mp4             a track as a file: a fill         immutable
//!   /origin/TITLE/VERSION/file-8000000.ts   a stream at that rate: a fill     immutable
//!   /origin/TITLE/VERSION/text/0/17.vtt     text, from memory                 immutable
//!   /origin/news/7.mp4                      307 to VERSION/news/7/file.mp4    kept for 10 s
//! ```
//!
//! The folders of a title are those of the address (`http_service::CachePath`), because many caches
//! do not keep `%2F`. Below VERSION stand the names that a title has for players of its own,
//! without `?s=TOKEN`. All addresses that a response names are relative, so that a cache may have
//! other folders in front. VERSION follows from the title's content and its packaging, so that what
//! a cache keeps of one title is never taken for another one of that name. Whoever has begun to
//! play a title that is replaced goes on as far as caches have it; 10 s later nobody begins any
//! more.
//!
//! Media that has to be read is a *fill*: a session of one response, admitted as those of viewers
//! are, and never more than `--origin` at a time.

use super::answer::{self, Decision, clear_file, open_title, title_to_admit};
use super::ranged::{FOR_EVER, KeptBy, MediaBody, ranged};
use super::refusals::{bad_parameter, no_on_demand, no_transport, not_found, rate_missing};
use super::request::HttpRequest;
use super::resource::{self, MediaResource, PLAYLIST, TitleResource};
use super::response::{Head, Response};
use super::routes::{Route, escape, escape_path, file_at_rate};
use crate::access::Permit;
use crate::layout::DeliveryFormat;
use crate::library::OpenTitle;
use crate::messages::{Manifest, PlayRequest};
use crate::playback_params::{self, PlaybackParams};
use crate::presentation::{BuiltFile, Presentation};
use crate::shared::Shared;
use crate::telemetry::Protocol;
use engine::{FillFor, MaxWait};
use http_service::is_name_for_caches;
use media::{CueClock, Encryption, KeyAccess, Links, Slice, TextForm};
use serde_json::json;
use std::sync::Arc;
use units::BitRate;

/// Decides on a request of a cache for a resource of `title`, which is of this version; without a
/// version for one of its manifests.
pub(super) fn answer(
    shared: &Arc<Shared>,
    request: &HttpRequest,
    (name, version): (&str, Option<&str>),
    route: &Route,
    opened: Option<Arc<OpenTitle>>,
) -> Result<Decision, Decision> {
    if shared.settings().fills.is_none() {
        let message = "this server has no addresses for caches; --origin FILLS starts it with them";
        return Ok(Response::error(404, "not-found", message).into());
    }
    if !is_name_for_caches(name) {
        return Ok(no_name_for_caches().into());
    }
    if playback_params::has_any(&request.query) {
        return Ok(whole_title_only().into());
    }
    let title = match version.is_some() && is_media(route) {
        true => title_to_admit(shared, request, name, opened, Some(FillFor::Cache))?,
        false => open_title(shared, name, opened)?,
    };
    may_be_kept(name, &title, route)?;
    match version {
        None => entry(request, name, &title, route),
        Some(version) if version == title.version => {
            of_version(shared, request, name, title, route)
        }
        // A viewer who began before an upgrade goes on. Ranges of a file must not be of two.
        Some(version) if title.is_of_other_program(version) && !is_whole_file(route) => {
            of_version(shared, request, name, title, route)
        }
        Some(_) => Ok(other_version(name).into()),
    }
}

/// Whether it is media that has to be read.
fn is_media(route: &Route) -> bool {
    use Route::{Iframe, Segment, TransportSegment};
    is_whole_file(route)
        || matches!(route, Iframe { .. } | Segment { .. } | TransportSegment { .. })
}

/// Whether it is a file of which players fetch ranges.
fn is_whole_file(route: &Route) -> bool {
    use Route::{IframeFile, Progressive, TrackFile, TransportFile};
    matches!(
        route,
        Progressive { .. } | TransportFile { .. } | TrackFile { .. } | IframeFile { .. }
    )
}

/// Refuses what of an encrypted title caches cannot have: its file, and any of it if its keys are
/// at this server, where only sessions get them.
fn may_be_kept(name: &str, title: &OpenTitle, route: &Route) -> Result<(), Decision> {
    let packaging = &title.whole.packaging;
    if matches!(route, Route::Progressive { .. } | Route::TransportFile { .. }) {
        clear_file(name, packaging)?;
    }
    let is_without = |it: &Arc<Encryption>| it.keys().any(|key| key.access == KeyAccess::Server);
    if packaging.encryption().is_some_and(is_without) {
        let message = "this title is encrypted, and its keys are given to sessions only";
        let hint = format!(
            "state the address of its keys in the key file, or play /t/{}/master.m3u8",
            escape(name)
        );
        let error = json!({ "error": "encrypted", "message": message, "hint": hint });
        return Err(Response::json(403, &error).into());
    }
    Ok(())
}

/// A manifest, which names the addresses of the present version, or the way to a file of it.
fn entry(
    request: &HttpRequest,
    name: &str,
    title: &Arc<OpenTitle>,
    route: &Route,
) -> Result<Decision, Decision> {
    // A cache keeps one response for both forms of the name of a title in a folder, and only one of
    // them has the folder in front of the place that a relative reference begins at.
    let version = &title.version;
    let folder = match name.contains('/') {
        true => format!("{version}/{}", escape_path(name)),
        false => format!("{}/{version}", escape(name)),
    };
    let file = |file: &str| {
        let head = Head::new(307)
            .field("Location", format_args!("{folder}/{file}"))
            .field("Cache-Control", BRIEFLY);
        Response::only_head(head, 0).into()
    };
    let manifest = match route {
        Route::Master { text, .. } => Manifest::Hls(*text),
        Route::TransportMaster { .. } => Manifest::HlsTransport,
        Route::DashManifest { text, .. } => Manifest::Dash(*text),
        Route::OnDemandManifest { text, .. } => Manifest::OnDemand(*text),
        Route::TransportFile { .. } => {
            let rate = playback_params::rate(&request.query);
            let rate = rate.map_err(|why| bad_parameter(&why))?;
            let rate =
                rate.ok_or_else(|| rate_missing(&format!("/origin/{}", escape_path(name))))?;
            // Refused here, where nothing is kept for long.
            at_rate(name, title, rate)?;
            return Ok(file(&file_at_rate(rate)));
        }
        _ => return Ok(file("file.mp4")),
    };
    if manifest == Manifest::HlsTransport {
        planned(name, title)?;
    }
    if matches!(manifest, Manifest::OnDemand(_)) {
        title.whole.packaging.on_demand().map_err(|why| no_on_demand(name, &why))?;
    }
    let folder = format!("{}/", title.version);
    let (kind, text) = answer::manifest_text(
        &title.whole.packaging,
        manifest,
        &answer::all_videos(&title.whole, manifest, 0),
        Links { folder: &folder, ..Links::default() },
    );
    // No Last-Modified: a title that is renamed to this name may be older than the one before.
    let mut response = Response::new(200, kind, text);
    response.head.add("Cache-Control", BRIEFLY);
    response.etag = Some(title.etag(match manifest {
        Manifest::Dash(TextForm::WebVtt) => "mpd",
        Manifest::Dash(TextForm::Imsc) => "mpd-imsc",
        Manifest::OnDemand(TextForm::WebVtt) => "od",
        Manifest::OnDemand(TextForm::Imsc) => "od-imsc",
        Manifest::HlsTransport => "master-ts",
        Manifest::Hls(TextForm::Imsc) => "master-imsc",
        _ => "master",
    }));
    Ok(response.into())
}

/// A resource of the present version of a title.
fn of_version(
    shared: &Arc<Shared>,
    request: &HttpRequest,
    name: &str,
    title: Arc<OpenTitle>,
    route: &Route,
) -> Result<Decision, Decision> {
    let (mut format, mut file) = (DeliveryFormat::Segmented, None);
    let mut presentation = Arc::clone(&title.whole);
    if matches!(route, Route::TransportPlaylist { .. } | Route::TransportSegment { .. }) {
        planned(name, &title)?;
    }
    if matches!(route, Route::Progressive { .. }) {
        format = DeliveryFormat::Progressive;
        let tracks = title.whole.offers(format).first().cloned().ok_or_else(not_found)?;
        let wanted = BuiltFile::Movie(tracks.clone());
        let Some(body) = title.whole.cached_file(&wanted) else {
            let whole = Arc::clone(&title.whole);
            return Ok(Decision::BuildFile(title, whole, wanted));
        };
        file = Some(MediaResource::file(&title, &title.whole, &tracks, body));
    }
    if let Some(wanted) = answer::indexed_file(route) {
        file = Some(answer::track_file(&title, &title.whole, wanted)?);
    }
    if let Route::TransportFile { rate, .. } = route {
        let (at_rate, lead) = at_rate(name, &title, rate.ok_or_else(not_found)?)?;
        let wanted = BuiltFile::Transport(lead);
        let Some(body) = at_rate.cached_file(&wanted) else {
            return Ok(Decision::BuildFile(title, at_rate, wanted));
        };
        file = Some(MediaResource::track_file(&title, &at_rate, &wanted, body));
        presentation = at_rate;
    }
    let is_file = file.is_some();
    let found = file
        .map(TitleResource::Media)
        .or_else(|| resource::find(route, &title, &title.whole, CueClock::Segments, ""))
        .ok_or_else(not_found)?;
    let media = match found {
        TitleResource::InMemory(found) => {
            let rule = if found.kind == PLAYLIST { AN_HOUR } else { FOR_EVER };
            return Ok(found.response(&title, rule).into());
        }
        TitleResource::Media(media) => media,
    };
    match ranged(request, &title, media, KeptBy::Caches) {
        Ok(media) => Ok(fill(shared, name, (title, &presentation), (format, is_file), media)),
        Err(response) => Ok(response.into()),
    }
}

/// The whole title with a transport stream at this rate, and the track that leads it.
fn at_rate(
    name: &str,
    title: &Arc<OpenTitle>,
    rate: BitRate,
) -> Result<(Arc<Presentation>, u16), Decision> {
    let params = PlaybackParams { rate: Some(rate), ..PlaybackParams::default() };
    answer::at_constant_rate(name, title, params, &Permit::default())
}

/// Media for a cache, in a format, of a file or not: admitted as a fill where any of it has to be
/// read.
fn fill(
    shared: &Arc<Shared>,
    name: &str,
    (title, whole): (Arc<OpenTitle>, &Presentation),
    (format, is_file): (DeliveryFormat, bool),
    media: MediaBody,
) -> Decision {
    let range = media.range.clone();
    let Some(presentation) = Presentation::fill(whole, format, is_file, &media.body, range) else {
        return generated(media).into();
    };
    let (presentation, name) = (Arc::new(presentation), name.to_owned());
    let wait = MaxWait { time: shared.settings().wait, is_chosen: true, ..MaxWait::default() };
    let play = PlayRequest::new(title, presentation, name, DeliveryFormat::Segmented, wait);
    let play = PlayRequest { fill: Some(FillFor::Cache), protocol: Protocol::Cache, ..play };
    Decision::Fill(Box::new(play), media)
}

/// The response with media of which nothing is stored, such as an initialization segment.
fn generated(media: MediaBody) -> Response {
    let mut bytes = Vec::new();
    for slice in media.body.range(media.range).slices() {
        if let Slice::Generated { bytes: made, range } = slice {
            bytes.extend_from_slice(&made[range.clone()]);
        }
    }
    Response { length: bytes.len() as u64, body: bytes, ..Response::only_head(media.head, 0) }
}

/// Makes sure that the transport streams of a title are planned.
fn planned(name: &str, title: &Arc<OpenTitle>) -> Result<(), Decision> {
    let packaging = &title.whole.packaging;
    packaging.transport_offers().map_err(|why| no_transport(name, &why))?;
    if packaging.is_transport_planned() {
        return Ok(());
    }
    Err(Decision::PlanTransport(Arc::clone(title), Arc::clone(&title.whole)))
}

fn no_name_for_caches() -> Response {
    let why = "caches cannot tell this name from others: they join '//' to '/' and leave out '.' \
               and '..'; rename the title (tenuto rename), or play it below /t/";
    Response::error(404, "not-found", why)
}

fn whole_title_only() -> Response {
    let why = "addresses for caches have the whole title at normal speed; use start, stop, speed, \
               skip and wait with the addresses of /t/";
    Response::error(400, "bad-parameter", why)
}

fn other_version(name: &str) -> Response {
    let message = "the title of this name has other content now, or is packaged in another way";
    let hint = format!("/origin/{}/master.m3u8 names its present addresses", escape_path(name));
    let error = json!({ "error": "version-unknown", "message": message, "hint": hint });
    Response::json(404, &error)
}

/// How long a manifest is kept, and so an old title is begun after it was replaced.
const BRIEFLY: &str = "public, max-age=10";
/// How long a playlist of one version is kept: nothing in it changes, and a title that is gone need
/// not stay.
const AN_HOUR: &str = "public, max-age=3600";
