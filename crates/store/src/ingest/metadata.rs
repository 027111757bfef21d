//! Descriptions of a file that a title has no place for, named so that nothing is lost unnoticed.

use super::probe::{ProbeOutput, ProbedProgram, tag};
use media::{LduIndex, TextTrack, TrackDescription};

/// What is left out of the file's chapters, tags, track titles, alpha and time code, in words.
/// `tracks` and `texts` have the titles that are kept.
pub(super) fn left_out(
    found: &ProbeOutput,
    tracks: &[(TrackDescription, LduIndex)],
    texts: &[TextTrack],
) -> Vec<String> {
    let mut left_out = Vec::new();
    match found.chapters.len() {
        0 => {}
        1 => left_out.push("1 chapter".to_owned()),
        count => left_out.push(format!("{count} chapters")),
    }
    // Ogg has the tags of a file in its streams. The title of a stream is a track title, and the
    // words beside a cover picture go with it.
    let shown = found.streams.iter().filter(|stream| stream.disposition.attached_pic == 0);
    let of_streams: Vec<_> = shown.map(|stream| &stream.tags).collect();
    let in_streams =
        |name: &str| name != "title" && of_streams.iter().any(|it| tag(it, name).is_some());
    let named = |name: &&str| tag(&found.format.tags, name).is_some() || in_streams(name);
    let mut tags: Vec<&str> = TAGS.iter().copied().filter(named).collect();
    // FFmpeg gives each programme of a transport stream this name if it knows none.
    let service = |it: &ProbedProgram| tag(&it.tags, SERVICE).is_some_and(|it| it != "Service01");
    tags.extend(Some(SERVICE).filter(|_| found.programs.iter().any(service)));
    match tags[..] {
        [] => {}
        [tag] => left_out.push(format!("the tag {tag}")),
        _ => left_out.push(format!("the tags {}", tags.join(", "))),
    }
    let titles = found.streams.iter().filter_map(|stream| tag(&stream.tags, "title"));
    let in_texts = |title: &str| texts.iter().any(|text| text.description.title == title);
    let kept =
        |title: &&str| tracks.iter().any(|(track, _)| track.title == **title) || in_texts(title);
    let titles: Vec<&str> = titles.filter(|title| !kept(title)).collect();
    if !titles.is_empty() {
        left_out.push(format!("track titles ({})", titles.join(", ")));
    }
    // The alpha of VP8 and VP9 is beside the pictures, in Matroska alone.
    if found.streams.iter().any(|stream| tag(&stream.tags, "alpha_mode") == Some("1")) {
        left_out.push("the transparency of the video".to_owned());
    }
    let all = found.streams.iter().map(|stream| &stream.tags);
    let mut tags = std::iter::once(&found.format.tags).chain(all);
    // A time code from zero on tells no more than the times of the pictures.
    let known = |it: &&str| it.contains(|c: char| ('1'..='9').contains(&c));
    if let Some(timecode) = tags.find_map(|tags| tag(tags, "timecode").filter(known)) {
        left_out.push(format!("time code {timecode}"));
    }
    left_out
}

/// The tags that describe the content, by FFmpeg's names; the probe asks for the same.
const TAGS: &[&str] = &[
    "title",
    "artist",
    "album",
    "album_artist",
    "composer",
    "performer",
    "comment",
    "description",
    "synopsis",
    "lyrics",
    "date",
    "genre",
    "copyright",
    "publisher",
    "encoded_by",
    "track",
    "disc",
    "show",
    "season_number",
    "episode_id",
    "episode_sort",
    "network",
    "location",
    "time_reference",
];
const SERVICE: &str = "service_name";
