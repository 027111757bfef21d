//! The resource that a path names. Whether the resource exists is not known here.

use crate::messages::Manifest;
use http_service::CachePath;
use media::TextForm;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use units::BitRate;

/// A resource of this server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// `/`
    Root,
    /// `/console/NAME`
    Console(String),
    /// `/titles`
    Titles,
    /// `/sessions`
    Sessions,
    /// `/status`
    Status,
    /// `/metrics`
    Metrics,
    /// `/healthz`
    Health,
    /// `/time`
    Time,
    /// `/t/TITLE/master.m3u8`: the admission request of an HLS player;
    /// `/t/TITLE/master-imsc.m3u8`: with subtitles as IMSC.
    Master { title: String, text: TextForm },
    /// `/t/TITLE/master-ts.m3u8`: that of an HLS player for transport streams.
    TransportMaster { title: String },
    /// `/t/TITLE/manifest.mpd`: the admission request of a DASH player;
    /// `/t/TITLE/manifest-imsc.mpd`: with subtitles as IMSC.
    DashManifest { title: String, text: TextForm },
    /// `/t/TITLE/ondemand.mpd`, `/t/TITLE/ondemand-imsc.mpd`: that of a DASH player that fetches
    /// ranges of files.
    OnDemandManifest { title: String, text: TextForm },
    /// `/t/TITLE/N.mp4?s=TOKEN`: the file of a track for such a player.
    TrackFile { title: String, track: u16 },
    /// `/t/TITLE/N-iframes.mp4?s=TOKEN`: that of its I-frames.
    IframeFile { title: String, track: u16 },
    /// `/t/TITLE/N.m3u8?s=TOKEN`
    Playlist { title: String, track: u16 },
    /// `/t/TITLE/N-ts.m3u8?s=TOKEN`: of the transport stream that track N leads.
    TransportPlaylist { title: String, track: u16 },
    /// `/t/TITLE/N-iframes.m3u8?s=TOKEN`
    IframePlaylist { title: String, track: u16 },
    /// `/t/TITLE/N/init.mp4?s=TOKEN`: for HLS.
    Init { title: String, track: u16 },
    /// `/t/TITLE/N/init-dash.mp4?s=TOKEN`
    DashInit { title: String, track: u16 },
    /// `/t/TITLE/N/K.m4s?s=TOKEN`
    Segment { title: String, track: u16, number: u32 },
    /// `/t/TITLE/N/K.ts?s=TOKEN`
    TransportSegment { title: String, track: u16, number: u32 },
    /// `/t/TITLE/N/iframe-K.m4s?s=TOKEN`
    Iframe { title: String, track: u16, number: u32 },
    /// `/t/TITLE/text/N.m3u8?s=TOKEN`, `/t/TITLE/text/N-imsc.m3u8?s=TOKEN`
    TextPlaylist { title: String, text: u16, form: TextForm },
    /// `/t/TITLE/text/N/init.mp4?s=TOKEN`: of IMSC.
    TextInit { title: String, text: u16 },
    /// `/t/TITLE/text/N/K.vtt?s=TOKEN`, `/t/TITLE/text/N/K.m4s?s=TOKEN`
    TextSegment { title: String, text: u16, number: u32, form: TextForm },
    /// `/t/TITLE/text/N.vtt` and `/t/TITLE/text/N.ttml`, of a whole title or with parameters;
    /// `?s=TOKEN`: of a session.
    TextFile { title: String, text: u16, form: TextForm },
    /// `/t/TITLE/thumbnails.m3u8?s=TOKEN`
    ThumbnailPlaylist { title: String },
    /// `/t/TITLE/thumbnails.vtt`, of a whole title; `?s=TOKEN`: of a session.
    ThumbnailCues { title: String },
    /// `/t/TITLE/thumbnails/K.jpg`, of a whole title; `?s=TOKEN`: of a session.
    ThumbnailImage { title: String, number: u32 },
    /// `/t/TITLE/key/ID?s=TOKEN`: the key of this number.
    Key { title: String, id: String },
    /// `/t/TITLE/session?s=TOKEN`: a session, to be ended.
    Session { title: String },
    /// `/t/TITLE.mp4`: an admission request; `/t/TITLE.mp4?s=TOKEN`: the file's bytes.
    Progressive { title: String },
    /// `/t/TITLE.ts?rate=RATE`: an admission request; `/t/TITLE.ts?s=TOKEN`: the bytes of the
    /// transport stream at a constant rate, which only addresses for caches name in their path.
    TransportFile { title: String, rate: Option<BitRate> },
    /// `/t/TITLE/rtsp`, and `/t/TITLE/rtsp-ts` of the transport stream: what a director asks for a
    /// player of RTSP.
    OverRtsp { title: String, is_transport: bool },
    /// `/parts/TITLE`: bytes of a track as they are stored, for another node of the cluster.
    Part { title: String },
    /// `/origin/TITLE/master.m3u8`, `/origin/TITLE/VERSION/0.m3u8`: the resource that is below
    /// `/t/` for players, for caches.
    Origin { title: String, version: Option<String>, resource: Box<Self> },
}

impl Route {
    /// The resource that a decoded path names; `None` for an unknown path.
    pub(crate) fn of(path: &[String]) -> Option<Self> {
        let names: Vec<&str> = path.iter().map(String::as_str).collect();
        Some(match names[..] {
            [""] => Self::Root,
            ["console"] => Self::Console(String::new()),
            ["console", ref name @ ..] => Self::Console(name.join("/")),
            ["titles"] => Self::Titles,
            ["sessions"] => Self::Sessions,
            ["status"] => Self::Status,
            ["metrics"] => Self::Metrics,
            ["healthz"] => Self::Health,
            ["time"] => Self::Time,
            ["t", name] => match name.strip_suffix(".ts") {
                Some(name) => Self::TransportFile { title: title(name)?, rate: None },
                None => Self::Progressive { title: title(name.strip_suffix(".mp4")?)? },
            },
            ["t", name, "master.m3u8"] => {
                Self::Master { title: title(name)?, text: TextForm::WebVtt }
            }
            ["t", name, "master-imsc.m3u8"] => {
                Self::Master { title: title(name)?, text: TextForm::Imsc }
            }
            ["t", name, "master-ts.m3u8"] => Self::TransportMaster { title: title(name)? },
            ["t", name, "manifest.mpd"] => {
                Self::DashManifest { title: title(name)?, text: TextForm::WebVtt }
            }
            ["t", name, "manifest-imsc.mpd"] => {
                Self::DashManifest { title: title(name)?, text: TextForm::Imsc }
            }
            ["t", name, "ondemand.mpd"] => {
                Self::OnDemandManifest { title: title(name)?, text: TextForm::WebVtt }
            }
            ["t", name, "ondemand-imsc.mpd"] => {
                Self::OnDemandManifest { title: title(name)?, text: TextForm::Imsc }
            }
            ["t", name, "rtsp"] => Self::OverRtsp { title: title(name)?, is_transport: false },
            ["t", name, "rtsp-ts"] => Self::OverRtsp { title: title(name)?, is_transport: true },
            ["t", name, "session"] => Self::Session { title: title(name)? },
            ["parts", name] => Self::Part { title: title(name)? },
            ["origin", ..] => Self::of_origin(&path[1..])?,
            ["t", name, "thumbnails.m3u8"] => Self::ThumbnailPlaylist { title: title(name)? },
            ["t", name, "thumbnails.vtt"] => Self::ThumbnailCues { title: title(name)? },
            ["t", name, file] => {
                let title = title(name)?;
                if let Some(track) = file.strip_suffix("-iframes.mp4") {
                    return Some(Self::IframeFile { title, track: number(track)? });
                }
                if let Some(track) = file.strip_suffix(".mp4") {
                    return Some(Self::TrackFile { title, track: number(track)? });
                }
                let track = file.strip_suffix(".m3u8")?;
                if let Some(track) = track.strip_suffix("-iframes") {
                    Self::IframePlaylist { title, track: number(track)? }
                } else if let Some(track) = track.strip_suffix("-ts") {
                    Self::TransportPlaylist { title, track: number(track)? }
                } else {
                    Self::Playlist { title, track: number(track)? }
                }
            }
            ["t", name, track, "init.mp4"] => {
                Self::Init { title: title(name)?, track: number(track)? }
            }
            ["t", name, track, "init-dash.mp4"] => {
                Self::DashInit { title: title(name)?, track: number(track)? }
            }
            ["t", name, "key", id] => Self::Key { title: title(name)?, id: id.to_owned() },
            ["t", name, "thumbnails", file] => {
                let number = number(file.strip_suffix(".jpg")?)?;
                Self::ThumbnailImage { title: title(name)?, number }
            }
            ["t", name, "text", file] => {
                let title = title(name)?;
                if let Some(text) = file.strip_suffix("-imsc.m3u8") {
                    let text = number(text)?;
                    Self::TextPlaylist { title, text, form: TextForm::Imsc }
                } else if let Some(text) = file.strip_suffix(".m3u8") {
                    let text = number(text)?;
                    Self::TextPlaylist { title, text, form: TextForm::WebVtt }
                } else {
                    let (text, form) = of_form(file, "ttml")?;
                    Self::TextFile { title, text: number(text)?, form }
                }
            }
            ["t", name, "text", text, "init.mp4"] => {
                Self::TextInit { title: title(name)?, text: number(text)? }
            }
            ["t", name, "text", text, file] => {
                let (segment, form) = of_form(file, "m4s")?;
                let (title, text, number) = (title(name)?, number(text)?, number(segment)?);
                Self::TextSegment { title, text, number, form }
            }
            ["t", name, track, file] => {
                let (title, track) = (title(name)?, number(track)?);
                if let Some(segment) = file.strip_suffix(".ts") {
                    return Some(Self::TransportSegment { title, track, number: number(segment)? });
                }
                let segment = file.strip_suffix(".m4s")?;
                match segment.strip_prefix("iframe-") {
                    Some(iframe) => Self::Iframe { title, track, number: number(iframe)? },
                    None => Self::Segment { title, track, number: number(segment)? },
                }
            }
            _ => return None,
        })
    }
}

impl Route {
    /// The title and the manifest that it names, if it is the manifest of a title.
    pub(crate) fn manifest(&self) -> Option<(&str, Manifest)> {
        Some(match self {
            Self::Master { title, text } => (title, Manifest::Hls(*text)),
            Self::TransportMaster { title } => (title, Manifest::HlsTransport),
            Self::DashManifest { title, text } => (title, Manifest::Dash(*text)),
            Self::OnDemandManifest { title, text } => (title, Manifest::OnDemand(*text)),
            _ => return None,
        })
    }

    /// The title of a resource that a viewer of another node may ask for, with a ticket: a segment
    /// and what comes before it.
    pub(crate) fn failover_title(&self) -> Option<&str> {
        match self {
            Self::Playlist { title, .. }
            | Self::IframePlaylist { title, .. }
            | Self::Init { title, .. }
            | Self::DashInit { title, .. }
            | Self::Segment { title, .. }
            | Self::Iframe { title, .. }
            | Self::TextPlaylist { title, .. }
            | Self::TextInit { title, .. }
            | Self::TextSegment { title, .. }
            | Self::ThumbnailPlaylist { title }
            | Self::Key { title, .. } => Some(title),
            _ => None,
        }
    }

    /// Whether a request for it, without the token of a session, begins one.
    pub(crate) fn begins_session(&self) -> bool {
        let is_file = matches!(self, Self::Progressive { .. } | Self::TransportFile { .. });
        is_file || matches!(self, Self::OverRtsp { .. }) || self.manifest().is_some()
    }

    /// The track of a session whose media, or whose playlist, it is.
    pub(crate) fn track(&self) -> Option<u16> {
        match self {
            Self::Playlist { track, .. }
            | Self::TransportPlaylist { track, .. }
            | Self::TransportSegment { track, .. }
            | Self::IframePlaylist { track, .. }
            | Self::Iframe { track, .. }
            | Self::Init { track, .. }
            | Self::DashInit { track, .. }
            | Self::TrackFile { track, .. }
            | Self::IframeFile { track, .. }
            | Self::Segment { track, .. } => Some(*track),
            _ => None,
        }
    }

    // The resource for caches of a path below `/origin/`: a manifest without a version, or what a
    // manifest names with one, so that each has one address.
    fn of_origin(path: &[String]) -> Option<Self> {
        CachePath::readings(path).find_map(|reading| Self::of_reading(&reading))
    }

    fn of_reading(reading: &CachePath<'_>) -> Option<Self> {
        let title = reading.title_name()?;
        let file = || Self::Progressive { title: title.clone() };
        let stream = |rate| Self::TransportFile { title: title.clone(), rate };
        let resource = match (reading.version, reading.resource) {
            (None, []) if reading.title.last()?.ends_with(".ts") => stream(None),
            (None, []) => file(),
            (Some(_), [below]) if below == "file.mp4" => file(),
            (Some(_), [below]) if let Some(rate) = constant_rate(below) => stream(Some(rate)),
            (_, below) => {
                let players = ["t", &title].map(str::to_owned);
                Self::of(&[&players, below].concat())?
            }
        };
        let is_below = match resource {
            Self::Progressive { .. } | Self::TransportFile { .. } => reading.version.is_some(),
            Self::Master { .. }
            | Self::TransportMaster { .. }
            | Self::DashManifest { .. }
            | Self::OnDemandManifest { .. } => false,
            // Caches keep no keys, and ask for no players.
            Self::Session { .. } | Self::Key { .. } | Self::OverRtsp { .. } => return None,
            _ => true,
        };
        if is_below != reading.version.is_some() {
            return None;
        }
        let version = reading.version.map(str::to_owned);
        Some(Self::Origin { title, version, resource: Box::new(resource) })
    }
}

/// The name of the transport stream at a constant rate among addresses for caches.
pub(crate) fn file_at_rate(rate: BitRate) -> String {
    format!("file-{}.ts", rate.0)
}

/// The rate that such a name states.
fn constant_rate(name: &str) -> Option<BitRate> {
    Some(BitRate(number(name.strip_prefix("file-")?.strip_suffix(".ts")?)?))
}

/// A title's name in percent-encoding, as in URLs.
pub(crate) fn escape(title: &str) -> String {
    utf8_percent_encode(title, ESCAPED).to_string()
}

/// A title's name in an address for caches, whose folders are those of the title.
pub(super) fn escape_path(title: &str) -> String {
    title.split('/').map(escape).collect::<Vec<_>>().join("/")
}

fn title(name: &str) -> Option<String> {
    (!name.is_empty()).then(|| name.to_owned())
}

/// The name of a file of text without its extension, which is `imsc` for IMSC, and the form.
fn of_form<'a>(file: &'a str, imsc: &str) -> Option<(&'a str, TextForm)> {
    match file.split_once('.')? {
        (name, "vtt") => Some((name, TextForm::WebVtt)),
        (name, extension) if extension == imsc => Some((name, TextForm::Imsc)),
        _ => None,
    }
}

/// A number as playlists write it (`0`, `17`; not `007` or `+7`), so that a resource has one URL.
fn number<T: std::str::FromStr + ToString>(digits: &str) -> Option<T> {
    let number: T = digits.parse().ok()?;
    (number.to_string() == digits).then_some(number)
}

/// Every character that is not unreserved in RFC 3986.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

#[cfg(test)]
mod tests {
    use super::*;

    fn route(path: &str) -> Option<Route> {
        Route::of(&path.split('/').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn paths_name_their_resources() {
        let film = || "film".to_owned();
        for (text, form) in [(TextForm::WebVtt, ""), (TextForm::Imsc, "-imsc")] {
            let manifest = |name: &str| route(&format!("t/film/{}", name.replace('*', form)));
            assert_eq!(manifest("master*.m3u8"), Some(Route::Master { title: film(), text }));
            let wanted = Route::DashManifest { title: film(), text };
            assert_eq!(manifest("manifest*.mpd"), Some(wanted));
            let wanted = Route::OnDemandManifest { title: film(), text };
            assert_eq!(manifest("ondemand*.mpd"), Some(wanted));
        }
        assert_eq!(route("t/film/1.mp4"), Some(Route::TrackFile { title: film(), track: 1 }));
        assert_eq!(
            route("t/film/1-iframes.mp4"),
            Some(Route::IframeFile { title: film(), track: 1 })
        );
        assert_eq!(route("t/film/0.m3u8"), Some(Route::Playlist { title: film(), track: 0 }));
        assert_eq!(route("t/film/1/init.mp4"), Some(Route::Init { title: film(), track: 1 }));
        let init = Route::DashInit { title: film(), track: 1 };
        assert_eq!(route("t/film/1/init-dash.mp4"), Some(init));
        for (path, is_transport) in [("t/film/rtsp", false), ("t/film/rtsp-ts", true)] {
            assert_eq!(route(path), Some(Route::OverRtsp { title: film(), is_transport }));
            assert_eq!(route(&path.replace("t/", "origin/")), None);
        }
        assert_eq!(route("t/film/session"), Some(Route::Session { title: film() }));
        let key = Route::Key { title: film(), id: "a-b".to_owned() };
        assert_eq!(route("t/film/key/a-b"), Some(key));
        let segment = Route::Segment { title: film(), track: 0, number: 17 };
        assert_eq!(route("t/film/0/17.m4s"), Some(segment));
        let list = Route::IframePlaylist { title: film(), track: 3 };
        assert_eq!(route("t/film/3-iframes.m3u8"), Some(list));
        let iframe = Route::Iframe { title: film(), track: 0, number: 17 };
        assert_eq!(route("t/film/0/iframe-17.m4s"), Some(iframe));
        for (form, list, file, segment) in [
            (TextForm::WebVtt, "2.m3u8", "2.vtt", "2/17.vtt"),
            (TextForm::Imsc, "2-imsc.m3u8", "2.ttml", "2/17.m4s"),
        ] {
            let of_film = |name: &str| route(&format!("t/film/text/{name}"));
            assert_eq!(of_film(list), Some(Route::TextPlaylist { title: film(), text: 2, form }));
            assert_eq!(of_film(file), Some(Route::TextFile { title: film(), text: 2, form }));
            let wanted = Route::TextSegment { title: film(), text: 2, number: 17, form };
            assert_eq!(of_film(segment), Some(wanted));
        }
        let init = Route::TextInit { title: film(), text: 2 };
        assert_eq!(route("t/film/text/2/init.mp4"), Some(init));
        let list = Route::ThumbnailPlaylist { title: film() };
        assert_eq!(route("t/film/thumbnails.m3u8"), Some(list));
        let cues = Route::ThumbnailCues { title: film() };
        assert_eq!(route("t/film/thumbnails.vtt"), Some(cues));
        let image = Route::ThumbnailImage { title: film(), number: 3 };
        assert_eq!(route("t/film/thumbnails/3.jpg"), Some(image));
        assert_eq!(route("t/film/master-ts.m3u8"), Some(Route::TransportMaster { title: film() }));
        let list = Route::TransportPlaylist { title: film(), track: 3 };
        assert_eq!(route("t/film/3-ts.m3u8"), Some(list));
        let segment = Route::TransportSegment { title: film(), track: 0, number: 17 };
        assert_eq!(route("t/film/0/17.ts"), Some(segment));
        assert_eq!(route("t/film.mp4"), Some(Route::Progressive { title: film() }));
        let stream = Route::TransportFile { title: film(), rate: None };
        assert_eq!(route("t/film.ts"), Some(stream));
        assert_eq!(route("t/...mp4"), Some(Route::Progressive { title: "..".to_owned() }));
        for unknown in [
            "t",
            "t/",
            "t/film",
            "t/.mp4",
            "t/film/",
            "t/film/x.m3u8",
            "t/film/-1.m3u8",
            "t/film/007.m3u8",
            "t/film/+7.m3u8",
            "t/film/65536.m3u8",
            "t/film/-iframes.m3u8",
            "t/film/07-iframes.m3u8",
            "t/film/01.mp4",
            "t/film/x.mp4",
            "t/film/ondemand-ts.mpd",
            "t/film/0/iframe-.m4s",
            "t/film/0/iframe-iframe-1.m4s",
            "t/film/0/iframe--1.m4s",
            "t/film/text/",
            "t/film/text/02.vtt",
            "t/film/text/2.srt",
            "t/film/text/2.m4s",
            "t/film/text/02.ttml",
            "t/film/text/-imsc.m3u8",
            "t/film/text/2/17.ttml",
            "t/film/text/2/17.x.vtt",
            "t/film/text/x/init.mp4",
            "t/film/thumbnails",
            "t/film/thumbnails/03.jpg",
            "t/film/thumbnails/3.png",
            "t/film/text/2/x.vtt",
            "t/film/0/2/17.vtt",
            "t/film/07-ts.m3u8",
            "t/.ts",
            "origin/.ts",
            "t/film/file-8000000.ts",
            "t/film/0/01.ts",
            "t/film/0/iframe-1.ts",
            "t/film/0/4294967296.m4s",
            "t/film/0/1.m4s/x",
            "x",
            "titles/",
            "/",
            "etc/passwd",
        ] {
            assert_eq!(route(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn addresses_for_caches_have_a_version_below_the_manifests() {
        let film = || "news/film".to_owned();
        let version = "1-2-3-4-5~1";
        let route = |path: &str| route(&path.replace("film", "news/film").replace("a-1", version));
        let origin = |version: Option<&str>, resource| {
            let version = version.map(str::to_owned);
            Some(Route::Origin { title: film(), version, resource: Box::new(resource) })
        };
        let master = Route::Master { title: film(), text: TextForm::WebVtt };
        assert_eq!(route("origin/film/master.m3u8"), origin(None, master));
        let segment = Route::Segment { title: film(), track: 0, number: 17 };
        assert_eq!(route("origin/film/a-1/0/17.m4s"), origin(Some(version), segment));
        let form = TextForm::WebVtt;
        let text = Route::TextSegment { title: film(), text: 2, number: 17, form };
        assert_eq!(route("origin/film/a-1/text/2/17.vtt"), origin(Some(version), text));
        let of_track = Route::TrackFile { title: film(), track: 0 };
        assert_eq!(route("origin/film/a-1/0.mp4"), origin(Some(version), of_track));
        let manifest = Route::OnDemandManifest { title: film(), text: TextForm::WebVtt };
        assert_eq!(route("origin/film/ondemand.mpd"), origin(None, manifest));
        let file = || Route::Progressive { title: film() };
        assert_eq!(route("origin/film.mp4"), origin(None, file()));
        assert_eq!(route("origin/film/a-1/file.mp4"), origin(Some(version), file()));
        let stream = |rate| Route::TransportFile { title: film(), rate };
        assert_eq!(route("origin/film.ts"), origin(None, stream(None)));
        let at_rate = stream(Some(BitRate(8_000_000)));
        assert_eq!(route("origin/film/a-1/file-8000000.ts"), origin(Some(version), at_rate));
        for unknown in [
            "origin",
            "origin/film",
            "origin/film/0.m3u8",
            "origin/film/a-1",
            "origin/film/old/0.m3u8",
            "origin/film/session",
            "origin/film/a-1/key/a-b",
            "origin/film/a-1/session",
            "origin/film/a-1/0/1.m4s/x",
        ] {
            assert_eq!(route(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn addresses_for_caches_have_the_folders_of_titles_or_escapes() {
        for title in ["news/0", "news/file", "news/text", "a/key", "1-2-3-4-5~1/x"] {
            for name in [&[title][..], &title.split('/').collect::<Vec<_>>()] {
                let path = [&["origin"], name, &["master.m3u8"]].concat();
                let path = path.into_iter().map(str::to_owned).collect::<Vec<_>>();
                let found = Route::of(&path);
                let is_it =
                    |it: &Route| matches!(it, Route::Origin { title: it, .. } if it == title);
                assert!(found.as_ref().is_some_and(is_it), "{path:?}: {found:?}");
            }
        }
        assert_eq!(escape_path("A/B ä"), "A/B%20%C3%A4");
    }

    #[test]
    fn any_title_name_can_be_escaped() {
        assert_eq!(escape("A/B ä?#%.mp4"), "A%2FB%20%C3%A4%3F%23%25.mp4");
    }
}
