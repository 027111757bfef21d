//! The pieces of a title and their times, parsed from HLS playlists.

use super::url::Url;
use super::{ClientError, RequestError};
use m3u8_rs::{AlternativeMediaType, MasterPlaylist, MediaPlaylist, Playlist, VariantStream};
use player::{Rendition, TrackTimeline};
use std::ops::Range;
use std::time::Duration;
use units::BitRate;

/// A request for an address or a range of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FetchRequest {
    pub(crate) url: Url,
    pub(crate) range: Option<Range<u64>>,
}

impl FetchRequest {
    /// The request for all of an address.
    pub(crate) fn whole(url: Url) -> Self {
        Self { url, range: None }
    }
}

/// The pieces of one track.
#[derive(Clone, Debug)]
pub(crate) struct TrackSource {
    /// The base of the pieces' references, and the address of a piece without a reference.
    pub(crate) base: Url,
    /// The headers in order.
    pub(crate) inits: Vec<Init>,
    pub(crate) pieces: Vec<Piece>,
    pub(crate) timeline: TrackTimeline,
}

/// A header for the pieces from `from` on: fetched once, before the first of them.
#[derive(Clone, Debug)]
pub(crate) struct Init {
    pub(crate) before: usize,
    pub(crate) piece: Piece,
}

/// One piece, stored compactly: a film has thousands, and a run has hundreds of films.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) reference: Option<Box<str>>,
    pub(crate) range: Option<Range<u64>>,
}

impl TrackSource {
    /// The request for `piece`.
    pub(crate) fn request(&self, piece: &Piece) -> Result<FetchRequest, ClientError> {
        let url = match &piece.reference {
            Some(reference) => self.base.join(reference)?,
            None => self.base.clone(),
        };
        Ok(FetchRequest { url, range: piece.range.clone() })
    }

    /// The header of a segment: its number and its byte range.
    pub(crate) fn init(&self, piece: usize) -> Option<(usize, &Piece)> {
        let number = self.inits.partition_point(|init| init.before <= piece).checked_sub(1)?;
        Some((number, &self.inits[number].piece))
    }
}

/// The content of an address.
#[derive(Clone, Debug)]
pub(crate) enum Listing {
    /// A multivariant playlist.
    Offers(Offers),
    /// A media playlist.
    Track(TrackSource),
}

/// The parts of a multivariant playlist that are relevant for a player of its first variant.
#[derive(Clone, Debug)]
pub(crate) struct Offers {
    /// The chosen variant and its alternatives, in ascending order of their rates.
    pub(crate) variants: Vec<Variant>,
    /// The index of the variant that the playlist names first.
    pub(crate) named: usize,
    /// The media playlist of the default audio, if the variants do not contain it.
    pub(crate) audio: Option<Url>,
}

/// A rendition with its media playlist.
#[derive(Clone, Debug)]
pub(crate) struct Variant {
    pub(crate) url: Url,
    pub(crate) rendition: Rendition,
}

/// Whether the bytes are the beginning of a playlist.
pub(crate) fn looks_like_a_playlist(bytes: &[u8]) -> bool {
    bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes).starts_with(b"#EXTM3U")
}

/// Parses a playlist that was fetched from `url`.
pub(crate) fn read_playlist(url: &Url, bytes: &[u8]) -> Result<Listing, ClientError> {
    let error = |reason| url.failed(RequestError::NotAPlaylist(reason));
    if !looks_like_a_playlist(bytes) {
        return Err(error("it does not begin with #EXTM3U"));
    }
    match m3u8_rs::parse_playlist_res(bytes) {
        Ok(Playlist::MasterPlaylist(master)) => {
            offers(url, &master)?.map(Listing::Offers).ok_or_else(|| error("it names no variant"))
        }
        Ok(Playlist::MediaPlaylist(media)) => track(url, &media).map(Listing::Track).map_err(error),
        Err(_) => Err(error("a tag cannot be read")),
    }
}

fn offers(url: &Url, master: &MasterPlaylist) -> Result<Option<Offers>, ClientError> {
    let mut variants = master.variants.iter().filter(|variant| !variant.is_i_frame);
    let Some(first) = variants.next() else { return Ok(None) };
    // A change to another codec or another kind of sound would interrupt playback.
    let kind = |variant: &VariantStream| {
        (variant.audio.clone(), variant.codecs.as_deref().map(codec_families))
    };
    let mut alike: Vec<_> = variants.filter(|variant| kind(variant) == kind(first)).collect();
    alike.insert(0, first);
    // A stable sort: of several variants with one rate the one named first is used.
    alike.sort_by_key(|variant| variant.bandwidth);
    alike.dedup_by_key(|variant| variant.bandwidth);
    let named = alike.iter().position(|variant| variant.bandwidth == first.bandwidth);
    let variant = |variant: &&VariantStream| {
        let peak = BitRate(variant.bandwidth);
        let mean = variant.average_bandwidth.map_or(peak, BitRate);
        let rendition = Rendition { peak, mean, listed: false };
        Ok(Variant { url: url.join(&variant.uri)?, rendition })
    };
    let variants = alike.iter().map(variant).collect::<Result<Vec<_>, ClientError>>()?;
    let mut audio: Vec<_> = master
        .alternatives
        .iter()
        .filter(|media| media.media_type == AlternativeMediaType::Audio)
        .filter(|media| Some(&media.group_id) == first.audio.as_ref())
        .collect();
    // The sort is stable, so that without a default the first one named is used.
    audio.sort_by_key(|media| !media.default);
    // Without its own address the audio is part of the variant.
    let reference = audio.first().and_then(|media| media.uri.as_ref());
    let address = reference.map(|reference| url.join(reference)).transpose()?;
    let named = named.expect("the first variant is among those like itself");
    let audio = address.filter(|address| *address != variants[named].url);
    Ok(Some(Offers { variants, named, audio }))
}

/// Codecs without their profile and level: `avc1.64001f,mp4a.40.2` gives `avc1,mp4a`.
pub(super) fn codec_families(codecs: &str) -> String {
    let family = |codec: &str| codec.trim().split('.').next().unwrap_or_default().to_owned();
    codecs.split(',').map(family).collect::<Vec<_>>().join(",")
}

fn track(url: &Url, media: &MediaPlaylist) -> Result<TrackSource, &'static str> {
    if !media.end_list {
        return Err("it has no end; live programmes cannot be played as yet");
    }
    if media.segments.is_empty() {
        return Err("it has no segments");
    }
    let mut pieces = Vec::with_capacity(media.segments.len());
    let mut durations = Vec::with_capacity(media.segments.len());
    let mut inits: Vec<Init> = Vec::new();
    // A byte range without an offset begins at the end of the last one.
    let mut next = 0;
    for (number, segment) in media.segments.iter().enumerate() {
        // A header holds until the next one.
        if let Some(map) = &segment.map {
            let piece = Piece {
                reference: Some(map.uri.as_str().into()),
                range: map.byte_range.as_ref().map(|range| byte_range(range, &mut 0)),
            };
            if inits.last().is_none_or(|last| last.piece != piece) {
                inits.push(Init { before: number, piece });
            }
        }
        let duration = Duration::try_from_secs_f32(segment.duration);
        durations.push(duration.map_err(|_| "a segment's duration is no time")?);
        let range = segment.byte_range.as_ref().map(|range| byte_range(range, &mut next));
        pieces.push(Piece { reference: Some(segment.uri.as_str().into()), range });
    }
    let timeline = TrackTimeline::from_durations(durations);
    if timeline.duration().is_zero() {
        return Err("its segments have no duration");
    }
    Ok(TrackSource { base: url.clone(), inits, pieces, timeline })
}

fn byte_range(range: &m3u8_rs::ByteRange, next: &mut u64) -> Range<u64> {
    let start = range.offset.unwrap_or(*next);
    *next = start.saturating_add(range.length);
    start..*next
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Listing, String> {
        let url = Url::parse("http://h/t/film/master.m3u8").unwrap();
        read_playlist(&url, text.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn the_first_variant_and_its_default_audio_are_played() {
        let text = "#EXTM3U\n#EXT-X-VERSION:7\n\
            #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"x\",DEFAULT=NO,URI=\"2.m3u8?s=T\"\n\
            #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"y\",DEFAULT=YES,URI=\"1.m3u8?s=T\"\n\
            #EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID=\"a\",NAME=\"z\",URI=\"3.m3u8\"\n\
            #EXT-X-STREAM-INF:BANDWIDTH=5000000,CODECS=\"avc1.64001f,mp4a.40.2\",AUDIO=\"a\"\n\
            0.m3u8?s=T\n\
            #EXT-X-STREAM-INF:BANDWIDTH=1000000,AUDIO=\"a\"\n9.m3u8?s=T\n";
        let Listing::Offers(offers) = read(text).unwrap() else { panic!("multivariant") };
        let first = &offers.variants[offers.named];
        assert_eq!(first.url.to_string(), "http://h/t/film/0.m3u8?s=T");
        assert_eq!(offers.audio.unwrap().to_string(), "http://h/t/film/1.m3u8?s=T");
    }

    #[test]
    fn variants_like_the_first_are_its_renditions() {
        let variant = |rates: &str, codecs: &str, name: &str| {
            format!("#EXT-X-STREAM-INF:{rates},CODECS=\"{codecs}\"\n{name}.m3u8\n")
        };
        let text = [
            "#EXTM3U\n",
            &variant("BANDWIDTH=3000,AVERAGE-BANDWIDTH=2500", "avc1.640020,mp4a.40.2", "md"),
            &variant("BANDWIDTH=9000", "hvc1.1.6.L120,mp4a.40.2", "hevc"),
            &variant("BANDWIDTH=6000", "avc1.640028, mp4a.40.2", "hd"),
            &variant("BANDWIDTH=6000", "avc1.640028,mp4a.40.2", "elsewhere"),
            &variant("BANDWIDTH=100", "mp4a.40.2", "sound"),
            &variant("BANDWIDTH=1000", "avc1.64001f,mp4a.40.5", "sd"),
        ];
        let Listing::Offers(offers) = read(&text.concat()).unwrap() else { panic!("multivariant") };
        let shown = offers.variants.iter().map(|variant| {
            let Rendition { peak, mean, .. } = variant.rendition;
            (variant.url.target().rsplit('/').next().unwrap(), peak.0, mean.0)
        });
        let wanted = [("sd.m3u8", 1000, 1000), ("md.m3u8", 3000, 2500), ("hd.m3u8", 6000, 6000)];
        assert_eq!(shown.collect::<Vec<_>>(), wanted);
        assert_eq!((offers.named, offers.audio), (1, None));
    }

    #[test]
    fn segments_become_pieces_with_their_times() {
        let text = "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:4\n\
            #EXT-X-MAP:URI=\"0/init.mp4?s=T\"\n\
            #EXTINF:4.0,\n0/0.m4s?s=T\n#EXTINF:2.5,\n0/1.m4s?s=T\n#EXT-X-ENDLIST\n";
        let Listing::Track(track) = read(text).unwrap() else { panic!("media") };
        assert_eq!(track.timeline.duration(), Duration::from_millis(6500));
        let ask = |piece| track.request(piece).unwrap().url.to_string();
        assert_eq!(ask(track.init(1).unwrap().1), "http://h/t/film/0/init.mp4?s=T");
        assert_eq!(ask(&track.pieces[1]), "http://h/t/film/0/1.m4s?s=T");
    }

    #[test]
    fn byte_ranges_begin_at_the_end_of_the_last() {
        let text = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n\
            #EXT-X-MAP:URI=\"a.mp4\",BYTERANGE=\"800@0\"\n\
            #EXTINF:4,\n#EXT-X-BYTERANGE:1000@800\na.mp4\n\
            #EXTINF:4,\n#EXT-X-BYTERANGE:500\na.mp4\n#EXT-X-ENDLIST\n";
        let Listing::Track(track) = read(text).unwrap() else { panic!("media") };
        let ranges: Vec<_> = track.pieces.iter().map(|piece| piece.range.clone()).collect();
        assert_eq!(ranges, [Some(800..1800), Some(1800..2300)]);
        assert_eq!(track.init(0).unwrap().1.range, Some(0..800));
    }

    #[test]
    fn headers_change_at_the_marked_segments() {
        let text = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-MAP:URI=\"a.mp4\"\n\
            #EXTINF:4,\n0.m4s\n#EXTINF:4,\n1.m4s\n#EXT-X-DISCONTINUITY\n\
            #EXT-X-MAP:URI=\"b.mp4\"\n#EXTINF:4,\n2.m4s\n#EXT-X-ENDLIST\n";
        let Listing::Track(track) = read(text).unwrap() else { panic!("media") };
        let init = |piece| {
            let (number, init) = track.init(piece).unwrap();
            (number, init.reference.as_deref().unwrap())
        };
        assert_eq!([init(0), init(1), init(2)], [(0, "a.mp4"), (0, "a.mp4"), (1, "b.mp4")]);
    }

    #[test]
    fn an_unplayable_playlist_is_refused_with_the_reason() {
        let cases = [
            ("<html>", "does not begin with #EXTM3U"),
            ("#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\na.ts\n", "has no end"),
            ("#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-ENDLIST\n", "has no segments"),
            (
                "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:-4,\na.ts\n#EXT-X-ENDLIST\n",
                "no duration",
            ),
        ];
        for (text, wanted) in cases {
            let error = read(text).unwrap_err();
            assert!(error.contains(wanted), "{text:?}: {error}");
        }
    }
}
