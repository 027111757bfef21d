//! The DASH manifest (ISO/IEC 23009-1; type `static`, and `dynamic` of a title that is still being
//! recorded), written directly because it has few kinds of elements.
//!
//! ```text
//! MPD ─ Period ─ AdaptationSet   video of one codec and one colour space ─ Representation ...
//!              ─ AdaptationSet   an audio track                          ─ Representation
//!                                  └ SegmentTemplate ─ SegmentTimeline: N/0.m4s, N/1.m4s, ...
//!              ─ AdaptationSet   the I-frames of the smallest of each set of video, for winding
//!                                  └ SegmentTemplate ─ ...: N/iframe-0.m4s, N/iframe-1.m4s, ...
//!              ─ AdaptationSet   a text track: text/N.vtt, or as IMSC
//!                                  └ SegmentTemplate ─ ...: text/N/0.m4s, text/N/1.m4s, ...
//!              ─ AdaptationSet   the images with thumbnails
//!                                  └ SegmentTemplate: thumbnails/0.jpg, thumbnails/1.jpg, ...
//! ```
//! For on-demand players ([`ManifestProfile::OnDemand`]) each track, and each text track, is one
//! file: N.mp4 with an index of its segments, and N-iframes.mp4 ([`super::on_demand`]).
//!
//! The media segments are those of HLS. Times are in the ticks of each track, so that none is
//! rounded. Addresses are relative, each with the caller's folder before it and the caller's query
//! behind it. The folder is no BaseURL of its own: FFmpeg ignores one before that of a file.

use super::growing::Growth;
use super::iframes::IFrames;
use super::segments::{LduRun, Segments};
use super::thumbnails::{LAYOUT, image_seconds};
use super::timeline::{REORDERED, Timeline, nearest, ticks};
use super::{
    ContentSteering, Links, Packaging, TextForm, encryption, imsc, playlist, text as texts,
    track_boxes,
};
use crate::codec::{Colours, SampleEntry};
use crate::{
    SoundPurposes, TextDescription, Thumbnails, TrackDescription, TrackIndex, TrackKind,
    dolby_vision,
};
use std::fmt::Write;
use std::ops::Range;
use std::time::Duration;
use units::MediaTime;
use units::show::iso_seconds;

/// How a manifest addresses segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ManifestProfile {
    /// Each by its number.
    Live,
    /// As ranges of one file, which has an index of them.
    OnDemand,
}

impl ManifestProfile {
    /// The attributes that say whether segments are aligned, and what each begins with.
    fn attributes(self) -> [&'static str; 2] {
        match self {
            Self::Live => ["segmentAlignment", "startWithSAP"],
            Self::OnDemand => ["subsegmentAlignment", "subsegmentStartsWithSAP"],
        }
    }
}

/// The manifest for the given video tracks with all audio tracks; without video tracks, for the
/// given audio tracks, or for all.
pub(super) fn mpd(
    packaging: &Packaging,
    wanted: &[u16],
    links: Links<'_>,
    profile: ManifestProfile,
) -> String {
    let Links { text: form, location, clock, steering, .. } = links;
    let sets = sets(packaging, wanted);
    let all: Vec<u16> = sets.iter().flatten().copied().collect();
    let has_form = |track: u16| match profile {
        ManifestProfile::Live => true,
        ManifestProfile::OnDemand => packaging.iframe_index_range(track).is_some(),
    };
    let winding = |set: &Vec<u16>| packaging.winding(set).filter(|(track, _)| has_form(*track));
    let winding_sets: Vec<(usize, (u16, &IFrames))> =
        (0..).zip(&sets).filter_map(|(main, set)| Some((main, winding(set)?))).collect();
    let has_text = packaging.texts().next().is_some();
    let images = packaging.thumbnails().map(|it| Duration::from_secs(image_seconds(it)));
    let has_other_files = has_text && form == TextForm::WebVtt || images.is_some();
    let text_in_segments = has_text && (form, profile) == (TextForm::Imsc, ManifestProfile::Live);
    let longest = longest_segment(packaging, &all, &winding_sets, text_in_segments);
    let longest = longest.max(images.unwrap_or_default());
    // Of the segments: a title's own duration has no pictures that an edit list hides.
    let end = all.iter().map(|&track| packaging.segments(track).end()).max();
    let buffers = all.iter().map(|&track| packaging.rates(track).buffer);
    let buffers = buffers.chain(winding_sets.iter().map(|(_, (_, it))| it.rates.buffer));
    let texts = packaging.text_rates(form).iter().map(|rates| rates.buffer);
    let buffer = buffers.chain(texts).max().unwrap_or(0);
    let (profiles, longest_name) = match profile {
        ManifestProfile::OnDemand => (ON_DEMAND, "maxSubsegmentDuration"),
        ManifestProfile::Live if is_cmaf(packaging, &all) && !has_other_files => {
            (LIVE_AND_CMAF, "maxSegmentDuration")
        }
        ManifestProfile::Live => (LIVE, "maxSegmentDuration"),
    };
    let end = end.unwrap_or_default().since_start();
    let (kind, times, longest) = match packaging.growth {
        Growth::Growing { began } => {
            // The longest that is expected, too: the value holds for segments to come.
            let usual = Duration::from_secs(packaging.target_duration);
            ("dynamic", growing_times(began, end, packaging.target), longest.max(usual))
        }
        Growth::Complete | Growth::Grown { .. } => {
            ("static", format!("mediaPresentationDuration=\"{}\"", time(end)), longest)
        }
    };
    let has_supplemental =
        all.iter().any(|track| supplemental(packaging.description(*track)).is_some());
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    line(
        &mut text,
        format_args!(
            "<MPD xmlns=\"urn:mpeg:dash:schema:mpd:2011\"{}{} type=\"{kind}\" profiles=\"{profiles}\" \
             {times} {longest_name}=\"{}\" minBufferTime=\"{}\">",
            if packaging.encryption().is_some() { CENC } else { "" },
            if has_supplemental { SCTE } else { "" },
            time(longest),
            time(Duration::from_micros(buffer)),
        ),
    );
    for (name, folder) in steering.map_or(&[][..], |steering| steering.pathways) {
        line(&mut text, format_args!("<BaseURL serviceLocation=\"{name}\">{folder}</BaseURL>"));
    }
    if kind == "dynamic" && !location.is_empty() {
        line(&mut text, format_args!("<Location>{location}</Location>"));
    }
    line(&mut text, format_args!("<Period id=\"0\" start=\"PT0S\">"));
    for (id, set) in sets.iter().enumerate() {
        adaptation_set(&mut text, packaging, id, set, links, profile);
    }
    let mut id = sets.len();
    for (main, (track, iframes)) in winding_sets {
        trick_mode_set(&mut text, packaging, [id, main], (track, iframes), links, profile);
        id += 1;
    }
    for (number, track) in packaging.texts() {
        text_set(&mut text, packaging, id, (number, track), links, profile);
        id += 1;
    }
    if let Some(thumbnails) = packaging.thumbnails() {
        image_set(&mut text, id, thumbnails, buffer, links);
    }
    line(&mut text, format_args!("</Period>"));
    if kind == "dynamic" && !clock.is_empty() {
        timing(&mut text, clock);
    }
    if let Some(steering) = steering {
        steering_server(&mut text, steering);
    }
    text.push_str("</MPD>\n");
    text
}

/// Writes where players read the time (ISO/IEC 23009-1, 5.8.4.11), the most exact way first: the
/// body of a response has milliseconds, and its `Date` whole seconds. The address is relative to
/// the manifest or its base addresses (DASH-IF IOP 4.3).
fn timing(text: &mut String, clock: &str) {
    for way in ["http-xsdate", "http-head"] {
        property(text, "UTCTiming", &format!("urn:mpeg:dash:utc:{way}:2014"), clock);
    }
}

/// Writes the steering server (ETSI TS 103 998), at the place that the schema of ISO/IEC 23009-1
/// has for it. There is no default location: players begin with the first base address without one,
/// and Shaka would know no other before the steering server has answered.
fn steering_server(text: &mut String, steering: ContentSteering<'_>) {
    let ContentSteering { server_uri, pathways } = steering;
    let names: Vec<&str> = pathways.iter().map(|(name, _)| &**name).collect();
    let names = names.join(",");
    line(text, format_args!("<ContentSteering>{server_uri}{names}</ContentSteering>"));
}

/// The times that a manifest states of a title that is being recorded since `began`, in Unix
/// seconds, and has segments until `end`.
fn growing_times(began: u64, end: Duration, target: Duration) -> String {
    // The manifest was not published before its last segment was recorded.
    let published = began.saturating_add(end.as_secs());
    format!(
        "availabilityStartTime=\"{}\" publishTime=\"{}\" minimumUpdatePeriod=\"{}\"",
        iso_seconds(began),
        iso_seconds(published),
        time(target)
    )
}

/// The longest time of a segment, or of an I-frame, of these tracks, and of text where it is in
/// segments.
fn longest_segment(
    packaging: &Packaging,
    tracks: &[u16],
    winding_sets: &[(usize, (u16, &IFrames))],
    text_in_segments: bool,
) -> Duration {
    let longest =
        |boundaries: &[u64]| boundaries.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
    let time = |track: u16, length: u64| {
        MediaTime::from_ticks(ticks(length), packaging.description(track).timescale)
    };
    let played = tracks.iter().map(|&it| time(it, longest(packaging.boundaries(it))));
    let wound =
        winding_sets.iter().map(|(_, (it, iframes))| time(*it, longest(&iframes.boundaries)));
    let shown = played.chain(wound).max().unwrap_or_default().since_start();
    let text = if text_in_segments { longest(&packaging.text_boundaries()) } else { 0 };
    shown.max(Duration::from_millis(text))
}

/// The tracks of each adaptation set: video tracks by codec and colours, best first; then each
/// audio track, the default one first.
fn sets(packaging: &Packaging, wanted: &[u16]) -> Vec<Vec<u16>> {
    let (heard, shown): (Vec<u16>, Vec<u16>) = wanted
        .iter()
        .filter(|&&track| packaging.track(track).is_some())
        .partition(|&&track| packaging.description(track).kind == TrackKind::Audio);
    let mut sets = packaging.video_sets(&shown);
    let all = packaging.audio_tracks();
    let mut audios = if sets.is_empty() && !heard.is_empty() { heard } else { all };
    audios.sort_by_key(|&audio| Some(audio) != packaging.default_audio());
    sets.extend(audios.into_iter().map(|audio| vec![audio]));
    sets
}

/// Whether these tracks are tracks by CMAF (ISO/IEC 23000-19), which has neither QuickTime's sample
/// entries nor segments that depend on the one before.
pub(super) fn is_cmaf(packaging: &Packaging, tracks: &[u16]) -> bool {
    !track_boxes::is_quicktime(tracks.iter().map(|&track| packaging.description(track)))
        && tracks.iter().all(|&track| packaging.is_independent(track))
}

fn adaptation_set(
    text: &mut String,
    packaging: &Packaging,
    id: usize,
    set: &[u16],
    links: Links<'_>,
    profile: ManifestProfile,
) {
    let first = packaging.description(set[0]);
    let sound = first.kind == TrackKind::Audio;
    let kind = if sound { "audio" } else { "video" };
    let mut attributes = format!("id=\"{id}\" contentType=\"{kind}\" mimeType=\"{kind}/mp4\"");
    if let Some(tag) = playlist::language_tag(first) {
        let _ = write!(attributes, " lang=\"{tag}\"");
    }
    let [alignment, access] = profile.attributes();
    if are_aligned(packaging, set) {
        let _ = write!(attributes, " {alignment}=\"true\"");
    }
    // A segment that begins with a key frame, and with a picture that is shown before it, has
    // stream access point type 3; other dependent segments may have none.
    if set.iter().all(|&track| packaging.is_independent(track)) {
        let _ = write!(attributes, " {access}=\"1\"");
    }
    if !sound {
        attributes.push_str(&largest_size(packaging, set.iter().copied()));
    }
    line(text, format_args!("<AdaptationSet {attributes}>"));
    if sound {
        described_audio(text, packaging, set[0]);
    } else {
        protection(text, packaging, TrackKind::Video);
    }
    if !sound && let Some(colours) = SampleEntry(&first.sample_entry).colours() {
        described_colours(text, colours);
    }
    for &track in set {
        representation(text, packaging, track, links, profile);
    }
    line(text, format_args!("</AdaptationSet>"));
}

/// Writes the I-frames of a video track of the set `main` as a set of their own, `id`, for trick
/// modes (DASH-IF IOP 4.3, 3.2.9): players that do not know the property must leave it alone.
fn trick_mode_set(
    text: &mut String,
    packaging: &Packaging,
    [id, main]: [usize; 2],
    (number, iframes): (u16, &IFrames),
    links: Links<'_>,
    profile: ManifestProfile,
) {
    let Links { folder, query, .. } = links;
    let track = packaging.description(number);
    let size = largest_size(packaging, std::iter::once(number));
    let [alignment, access] = profile.attributes();
    line(
        text,
        format_args!(
            "<AdaptationSet id=\"{id}\" contentType=\"video\" mimeType=\"video/mp4\" \
             {alignment}=\"true\" {access}=\"1\"{size}>"
        ),
    );
    let scheme = "http://dashif.org/guidelines/trickmode";
    protection(text, packaging, TrackKind::Video);
    property(text, "EssentialProperty", scheme, main);
    if let Some(colours) = SampleEntry(&track.sample_entry).colours() {
        described_colours(text, colours);
    }
    let mut attributes = format!(
        "id=\"{number}-iframes\" codecs=\"{}\" bandwidth=\"{}\"",
        escape(playlist::codec(track)),
        iframes.rates.peak
    );
    attributes.extend(supplemental(track));
    if let Some((width, height)) = track.resolution() {
        let _ = write!(attributes, " width=\"{width}\" height=\"{height}\"");
    }
    if let Some(rate) = packaging.track(number).and_then(|track| track.frame_rate) {
        let most = iframes.max_playout_rate(rate, track.timescale.0);
        let _ = write!(attributes, " maxPlayoutRate=\"{most}\"");
    }
    line(text, format_args!("<Representation {attributes} codingDependency=\"false\">"));
    match profile {
        ManifestProfile::Live => {
            let names = [format!("{number}/{INIT}"), format!("{number}/iframe-$Number$.m4s")];
            segment_template(text, track.timescale.0, &names, &iframes.boundaries, links);
        }
        ManifestProfile::OnDemand => {
            let index = packaging.iframe_index_range(number).unwrap_or_default();
            let address = format!("{folder}{number}-iframes.mp4{query}");
            segment_base(text, track.timescale.0, &address, &index);
        }
    }
    line(text, format_args!("</Representation>"));
    line(text, format_args!("</AdaptationSet>"));
}

/// Writes how the tracks of a set of this kind are encrypted, if they are.
fn protection(text: &mut String, packaging: &Packaging, kind: TrackKind) {
    if let Some(encryption) = packaging.encryption() {
        encryption::write_dash_protection(text, encryption, kind);
    }
}

/// Writes a text track as a set: of one file of WebVTT or IMSC (DASH-IF IOP 4.3, 6.4.4), or of
/// segments of IMSC (6.4.5).
fn text_set(
    text: &mut String,
    packaging: &Packaging,
    id: usize,
    (number, track): (u16, &TextDescription),
    links: Links<'_>,
    profile: ManifestProfile,
) {
    let Links { folder, query, text: form, .. } = links;
    let (codec, in_segments) =
        (imsc::CODEC, (form, profile) == (TextForm::Imsc, ManifestProfile::Live));
    let mut attributes = format!("id=\"{id}\" contentType=\"text\"");
    match form {
        TextForm::WebVtt => attributes.push_str(" mimeType=\"text/vtt\""),
        TextForm::Imsc if !in_segments => attributes.push_str(" mimeType=\"application/ttml+xml\""),
        TextForm::Imsc => {
            let _ = write!(
                attributes,
                " mimeType=\"application/mp4\" codecs=\"{codec}\" segmentAlignment=\"true\" \
                 startWithSAP=\"1\""
            );
        }
    }
    if let Some(tag) = playlist::quotable_tag(&track.language) {
        let _ = write!(attributes, " lang=\"{tag}\"");
    }
    line(text, format_args!("<AdaptationSet {attributes}>"));
    described_text(text, track);
    let rates = &packaging.text_rates(form)[usize::from(number)];
    // A whole file comes before all media.
    let bandwidth = if in_segments { rates.peak } else { rates.average };
    let bandwidth = bandwidth.max(1);
    line(text, format_args!("<Representation id=\"text-{number}\" bandwidth=\"{bandwidth}\">"));
    if in_segments {
        let names = [format!("text/{number}/init.mp4"), format!("text/{number}/$Number$.m4s")];
        let boundaries = packaging.text_boundaries();
        segment_template(text, texts::TEXT_SCALE.0, &names, &boundaries, links);
    } else {
        let extension = if form == TextForm::Imsc { "ttml" } else { "vtt" };
        line(text, format_args!("<BaseURL>{folder}text/{number}.{extension}{query}</BaseURL>"));
    }
    line(text, format_args!("</Representation>"));
    line(text, format_args!("</AdaptationSet>"));
}

/// Writes the name, the purpose and the roles of a text track.
fn described_text(text: &mut String, track: &TextDescription) {
    let roles = "urn:mpeg:dash:role:2011";
    line(text, format_args!("<Label>{}</Label>", escape(&playlist::text_label(track))));
    if track.hearing_impaired {
        // The purpose by TV-Anytime: for the hard of hearing.
        property(text, "Accessibility", "urn:tva:metadata:cs:AudioPurposeCS:2007", 2);
    }
    let role = match (track.forced, track.hearing_impaired) {
        (true, _) => "forced-subtitle",
        (false, true) => "caption",
        (false, false) => "subtitle",
    };
    property(text, "Role", roles, role);
    if track.default && !track.forced {
        property(text, "Role", roles, "main");
    }
}

/// Writes the images with thumbnails as a set (DASH-IF IOP 4.3, 6.2.6). `buffer`: the time in
/// microseconds for which a player waits before it plays.
fn image_set(text: &mut String, id: usize, thumbnails: &Thumbnails, buffer: u64, links: Links<'_>) {
    let Links { folder, query, .. } = links;
    let (width, height) = thumbnails.size();
    // An image that is received at this rate is there after that time.
    let largest = thumbnails.images().iter().map(|image| image.len() as u64).max().unwrap_or(0);
    let bandwidth = (largest * 8 * 1_000_000).div_ceil(buffer.max(1));
    let attributes = format!("id=\"{id}\" contentType=\"image\" mimeType=\"image/jpeg\"");
    line(text, format_args!("<AdaptationSet {attributes}>"));
    line(
        text,
        format_args!(
            "<SegmentTemplate timescale=\"1\" duration=\"{}\" startNumber=\"0\" \
             media=\"{folder}thumbnails/$Number$.jpg{query}\"/>",
            image_seconds(thumbnails)
        ),
    );
    line(
        text,
        format_args!(
            "<Representation id=\"thumbnails\" bandwidth=\"{bandwidth}\" width=\"{}\" \
             height=\"{}\">",
            width * Thumbnails::COLUMNS,
            height * Thumbnails::ROWS
        ),
    );
    let scheme = "http://dashif.org/guidelines/thumbnail_tile";
    property(text, "EssentialProperty", scheme, LAYOUT);
    line(text, format_args!("</Representation>"));
    line(text, format_args!("</AdaptationSet>"));
}

/// Whether these tracks have the same boundaries. They may have different ticks.
fn are_aligned(packaging: &Packaging, set: &[u16]) -> bool {
    let times = |&track: &u16| -> Vec<MediaTime> {
        let scale = packaging.description(track).timescale;
        let boundaries = packaging.boundaries(track).iter();
        boundaries.map(|tick| MediaTime::from_ticks(ticks(*tick), scale)).collect()
    };
    let starts: Vec<Vec<MediaTime>> = set.iter().map(times).collect();
    // While they grow, one may have more segments than another.
    let growing = matches!(packaging.growth, Growth::Growing { .. });
    starts.windows(2).all(|pair| {
        let has_as_many = growing || pair[0].len() == pair[1].len();
        has_as_many && pair[0].iter().zip(&pair[1]).all(|(a, b)| a == b)
    })
}

/// The largest width and height of video tracks, as attributes.
fn largest_size(packaging: &Packaging, videos: impl Iterator<Item = u16>) -> String {
    let sizes: Vec<(u32, u32)> =
        videos.filter_map(|video| packaging.description(video).resolution()).collect();
    let (width, height) =
        (sizes.iter().map(|size| size.0).max(), sizes.iter().map(|size| size.1).max());
    width.zip(height).map_or_else(String::new, |(width, height)| {
        format!(" maxWidth=\"{width}\" maxHeight=\"{height}\"")
    })
}

/// Writes the channels, the name and the role of an audio track.
fn described_audio(text: &mut String, packaging: &Packaging, audio: u16) {
    let track = packaging.description(audio);
    if let Some(layout) = usual_layout(track.channels) {
        let scheme = "urn:mpeg:mpegB:cicp:ChannelConfiguration";
        property(text, "AudioChannelConfiguration", scheme, layout);
    }
    protection(text, packaging, TrackKind::Audio);
    let title: String = track.title.trim().chars().filter(|c| !c.is_control()).collect();
    if !title.is_empty() {
        line(text, format_args!("<Label>{}</Label>", escape(&title)));
    }
    let SoundPurposes { visual_impaired, hearing_impaired, comment, dub } = track.purposes;
    // The purposes by TV-Anytime: for the visually impaired, for the hard of hearing.
    for (_, value) in [(visual_impaired, 1), (hearing_impaired, 2)].iter().filter(|it| it.0) {
        property(text, "Accessibility", "urn:tva:metadata:cs:AudioPurposeCS:2007", value);
    }
    let roles = "urn:mpeg:dash:role:2011";
    let main = Some(audio) == packaging.default_audio();
    let named = [(comment, "commentary"), (dub, "dub"), (main, "main")];
    for (_, role) in named.iter().filter(|it| it.0) {
        property(text, "Role", roles, role);
    }
    if !(comment || dub || main) {
        property(text, "Role", roles, "alternate");
    }
}

/// `ChannelConfiguration` by ISO/IEC 23091-3 of the usual layout with this many channels: mono,
/// stereo, 3.0, 4.0, 5.0, 5.1, 7.1.
fn usual_layout(channels: u16) -> Option<u16> {
    match channels {
        1..=6 => Some(channels),
        8 => Some(12),
        _ => None,
    }
}

/// Writes the colours that are known, by ISO/IEC 23091-2. A player that cannot show PQ or HLG must
/// not select it, so there they are essential.
fn described_colours(text: &mut String, colours: Colours) {
    let name = if matches!(colours.transfer, PQ | HLG) {
        "EssentialProperty"
    } else {
        "SupplementalProperty"
    };
    for (scheme, value) in [
        ("urn:mpeg:mpegB:cicp:ColourPrimaries", colours.primaries),
        ("urn:mpeg:mpegB:cicp:TransferCharacteristics", colours.transfer),
        ("urn:mpeg:mpegB:cicp:MatrixCoefficients", colours.matrix),
    ] {
        if value != UNSPECIFIED {
            property(text, name, scheme, value);
        }
    }
}

fn representation(
    text: &mut String,
    packaging: &Packaging,
    number: u16,
    links: Links<'_>,
    profile: ManifestProfile,
) {
    let Links { folder, query, .. } = links;
    let track = packaging.description(number);
    let codec = escape(playlist::codec(track));
    let bandwidth = packaging.rates(number).peak;
    let mut attributes = format!("id=\"{number}\" codecs=\"{codec}\" bandwidth=\"{bandwidth}\"");
    if track.kind == TrackKind::Video {
        attributes.extend(supplemental(track));
        if let Some((width, height)) = track.resolution() {
            let _ = write!(attributes, " width=\"{width}\" height=\"{height}\"");
        }
        if let Some(rate) = packaging.track(number).and_then(|track| track.frame_rate) {
            let _ = write!(attributes, " frameRate=\"{}\"", frame_rate(rate));
        }
    } else if track.sample_rate > 0 {
        let _ = write!(attributes, " audioSamplingRate=\"{}\"", track.sample_rate);
    }
    line(text, format_args!("<Representation {attributes}>"));
    match profile {
        ManifestProfile::OnDemand => {
            let index = packaging.index_range(number).unwrap_or_default();
            segment_base(text, track.timescale.0, &format!("{folder}{number}.mp4{query}"), &index);
        }
        ManifestProfile::Live => {
            let names = ["$RepresentationID$/".to_owned() + INIT, SEGMENT.to_owned()];
            segment_template(text, track.timescale.0, &names, packaging.boundaries(number), links);
        }
    }
    line(text, format_args!("</Representation>"));
}

/// The attributes that name the codec that adds to the base layer of the pictures, and the brand of
/// the base layer (ANSI/SCTE 214-1; ETSI TS 103 285, and DASH-IF IOP for Dolby Vision).
fn supplemental(track: &TrackDescription) -> Option<String> {
    let (codec, brand) = dolby_vision::supplemental_codec(SampleEntry(&track.sample_entry))?;
    Some(format!(
        " scte214:supplementalCodecs=\"{codec}\" scte214:supplementalProfiles=\"{brand}\""
    ))
}

/// Writes the address of a track's file, and where its initialization segment and its index are.
fn segment_base(text: &mut String, timescale: u32, address: &str, index: &Range<u64>) {
    line(text, format_args!("<BaseURL>{address}</BaseURL>"));
    line(
        text,
        format_args!(
            "<SegmentBase timescale=\"{timescale}\" indexRange=\"{}-{}\">\n\
             <Initialization range=\"0-{}\"/>\n</SegmentBase>",
            index.start,
            index.end.saturating_sub(1),
            index.start.saturating_sub(1)
        ),
    );
}

/// Writes the addresses and the times of a representation's segments. `names`: of the
/// initialization segment and of the media segments.
fn segment_template(
    text: &mut String,
    timescale: u32,
    names: &[String; 2],
    boundaries: &[u64],
    links: Links<'_>,
) {
    let ([initialization, media], Links { folder, query, .. }) = (names, links);
    line(
        text,
        format_args!(
            "<SegmentTemplate timescale=\"{timescale}\" startNumber=\"0\" \
             initialization=\"{folder}{initialization}{query}\" media=\"{folder}{media}{query}\">"
        ),
    );
    timeline(text, boundaries);
    line(text, format_args!("</SegmentTemplate>"));
}

/// Writes the segments between these boundaries in ticks, runs of equal length as one element.
fn timeline(text: &mut String, boundaries: &[u64]) {
    line(text, format_args!("<SegmentTimeline>"));
    let lengths: Vec<u64> = boundaries.windows(2).map(|pair| pair[1] - pair[0]).collect();
    for (number, run) in lengths.chunk_by(|a, b| a == b).enumerate() {
        // Later runs begin where the one before ends.
        let start = boundaries.first().filter(|_| number == 0);
        let start = start.map_or_else(String::new, |start| format!(" t=\"{start}\""));
        let repeated = run.len() - 1;
        let repeated = if repeated > 0 { format!(" r=\"{repeated}\"") } else { String::new() };
        line(text, format_args!("<S{start} d=\"{}\"{repeated}/>", run[0]));
    }
    line(text, format_args!("</SegmentTimeline>"));
}

/// The earliest presentation time of each segment of a track, in its ticks on the title's timeline,
/// then the end of the last segment. Strictly rising. Of a title that is, or was, played while it
/// is recorded, a segment begins where the one before ends.
pub(super) fn boundaries(
    track: &TrackIndex,
    line: &Timeline,
    segments: &Segments,
    growth: Growth,
) -> Vec<u64> {
    let mut boundaries = Vec::with_capacity(segments.count() + 1);
    if growth != Growth::Complete {
        continue_boundaries(&mut boundaries, track, line, segments);
        return boundaries;
    }
    for number in 0..segments.count() {
        push_boundary(&mut boundaries, earliest(track, line, segments, number));
    }
    push_boundary(&mut boundaries, nearest(segments.end(), line.scale));
    boundaries
}

/// Appends the boundaries of further segments of a growing title. The end of a manifest's last
/// segment must not change when the next one is known, so each begins where the one before ends.
pub(super) fn continue_boundaries(
    boundaries: &mut Vec<u64>,
    track: &TrackIndex,
    line: &Timeline,
    segments: &Segments,
) {
    for number in boundaries.len().saturating_sub(1)..segments.count() {
        if number == 0 {
            push_boundary(boundaries, earliest(track, line, segments, number));
        }
        push_boundary(boundaries, nearest(segments.time(number).end, line.scale));
    }
}

fn push_boundary(boundaries: &mut Vec<u64>, at: i64) {
    // What begins before zero is cut off there by the edit list.
    let at = u64::try_from(at).unwrap_or(0);
    let least = boundaries.last().map_or(0, |last| last + 1);
    boundaries.push(at.max(least));
}

/// The time at which the first picture of a segment is shown: pictures that are decoded later may
/// be shown earlier.
fn earliest(track: &TrackIndex, line: &Timeline, segments: &Segments, number: usize) -> i64 {
    let shown = |ldu: crate::Ldu| {
        let delay = match track.description.kind {
            TrackKind::Video => i64::from(ldu.composition_offset),
            _ => 0,
        };
        line.place(ticks(ldu.decode_time).saturating_add(delay))
    };
    let Some(run) = segments.parts(number).and_then(<[LduRun]>::first) else { return 0 };
    let first = run.ldus.clone().take(REORDERED).map(|ldu| shown(track.ldus.get(ldu))).min();
    first.unwrap_or(0).saturating_sub(run.earlier)
}

/// A rate in pictures per 1000 s as a number or ratio: `25`, `30000/1001`, `2997/125`.
fn frame_rate(rate: u64) -> String {
    if rate.is_multiple_of(1000) {
        return (rate / 1000).to_string();
    }
    // The rates of NTSC are those below a whole number by a thousandth part.
    let whole = (rate * 1001 + 500_000) / 1_000_000;
    if (whole * 1_000_000 + 500) / 1001 == rate {
        return format!("{}/1001", whole * 1000);
    }
    let divisor = greatest_common_divisor(rate, 1000);
    format!("{}/{}", rate / divisor, 1000 / divisor)
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

fn property(text: &mut String, name: &str, scheme: &str, value: impl std::fmt::Display) {
    line(text, format_args!("<{name} schemeIdUri=\"{scheme}\" value=\"{value}\"/>"));
}

/// A time as `xs:duration`: `PT6.0232S`.
fn time(time: Duration) -> String {
    let text = format!("{}.{:09}", time.as_secs(), time.subsec_nanos());
    format!("PT{}S", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Text as content of an element or attribute.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

fn line(text: &mut String, what: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{what}");
}

/// The namespace of what descriptors of protection state.
const CENC: &str = " xmlns:cenc=\"urn:mpeg:cenc:2013\"";
/// The namespace of the codecs that add to others.
const SCTE: &str = " xmlns:scte214=\"urn:scte:dash:scte214-extensions\"";
const LIVE: &str = "urn:mpeg:dash:profile:isoff-live:2011";
const ON_DEMAND: &str = "urn:mpeg:dash:profile:isoff-on-demand:2011";
const LIVE_AND_CMAF: &str = "urn:mpeg:dash:profile:isoff-live:2011,urn:mpeg:dash:profile:cmaf:2019";
/// The file name of a track's initialization segment for DASH.
const INIT: &str = "init-dash.mp4";
/// The name of a track's segments for DASH.
const SEGMENT: &str = "$RepresentationID$/$Number$.m4s";
/// Values of ISO/IEC 23091-2.
const PQ: u16 = 16;
const HLG: u16 = 18;
const UNSPECIFIED: u16 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_times_and_names_are_written_as_the_schema_demands() {
        let rates = [25_000, 29_970, 23_976, 59_940, 119_880, 500, 12_500, 14_985, 47_952, 10_123];
        let written = rates.map(frame_rate);
        let wanted = [
            "25",
            "30000/1001",
            "24000/1001",
            "60000/1001",
            "120000/1001",
            "1/2",
            "25/2",
            "15000/1001",
            "48000/1001",
            "10123/1000",
        ];
        assert_eq!(written, wanted);
        assert_eq!(time(Duration::from_nanos(6_023_200_000)), "PT6.0232S");
        assert_eq!(time(Duration::from_secs(7200)), "PT7200S");
        assert_eq!(time(Duration::ZERO), "PT0S");
        assert_eq!(escape("<a & \"b\">"), "&lt;a &amp; &quot;b&quot;&gt;");
    }

    #[test]
    fn runs_of_equal_segments_are_one_element() {
        let mut text = String::new();
        timeline(&mut text, &[5, 15, 25, 32, 42]);
        let wanted = "<S t=\"5\" d=\"10\" r=\"1\"/>\n<S d=\"7\"/>\n<S d=\"10\"/>\n";
        assert_eq!(text, format!("<SegmentTimeline>\n{wanted}</SegmentTimeline>\n"));
    }
}
