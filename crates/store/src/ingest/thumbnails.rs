//! The thumbnails of a file: FFmpeg decodes its pictures and makes them small, in a process of its
//! own, and encodes the small ones as JPEG in another.
//!
//! ```text
//!   file ──▶ ffmpeg, key frames alone ──fps, scale──▶ a small picture for each interval
//!                                                        │ kept: 21 MB for 1,000 of them
//!            ffmpeg, 25 in one image ◀───────────────────┘
//!               └──JPEG──▶ at the best quality with which all images have their size, 2 MiB
//! ```
//!
//! Decoding is what takes time and meets the strangers' bytes, so that it is done once, when the
//! film has been copied and its key frames are known: where they are further apart than two
//! intervals, all pictures are decoded. A thumbnail shows the last picture before the middle of
//! its interval. What is wrong with thumbnails never refuses a film, which then has none.

use super::plan::{RemuxPlan, SelectedStream};
use super::process::{Ended, Process, last_words};
use super::{IngestJob, probe};
use crate::StoreError;
use media::{DolbyVision, LduIndex, Thumbnails, TrackDescription};
use std::ffi::OsString;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use units::MediaTime;

/// A value, or the reason in words why a title has no thumbnails.
type OrReason<T> = Result<T, String>;

/// The pictures of one file, and what is made of them.
struct PictureSource<'a> {
    /// The input arguments for FFmpeg.
    input: Vec<OsString>,
    stream: &'a SelectedStream,
    /// Width and height of a thumbnail.
    size: (u16, u16),
    /// Seconds from one thumbnail to the next.
    interval: u32,
    count: u32,
    /// The most processor time of FFmpeg.
    cpu: Duration,
}

/// Makes thumbnails, one for each `interval` or for a multiple of it: of the smallest rendition.
pub(super) fn make(
    job: &mut IngestJob<'_>,
    plan: &RemuxPlan,
    tracks: &[(TrackDescription, LduIndex)],
    interval: Duration,
) -> Result<OrReason<Thumbnails>, StoreError> {
    let videos = plan.streams.iter().zip(tracks).filter(|(stream, _)| stream.video);
    let pixels = |track: &TrackDescription| u64::from(track.width) * u64::from(track.height);
    let Some((stream, (track, ldus))) = videos.min_by_key(|(_, (track, _))| pixels(track)) else {
        return Ok(Err("it has no pictures".to_owned()));
    };
    if track.dolby_vision().is_some_and(DolbyVision::has_own_colours) {
        return Ok(Err("FFmpeg does not show the colours of its Dolby Vision".to_owned()));
    }
    let Some(size) = track.resolution().map(thumbnail_size) else {
        return Ok(Err("the size of its pictures is not known".to_owned()));
    };
    let length = |(track, ldus): &(TrackDescription, LduIndex)| time(track, ldus.duration_ticks());
    let length = tracks.iter().map(length).max().unwrap_or_default();
    let interval = possible_interval(interval, length);
    let other = stream.file.checked_sub(1);
    let source = PictureSource {
        input: other.map_or_else(|| job.input(), |other| probe::input(&job.others[other])),
        stream,
        size,
        interval,
        count: intervals(length, interval),
        cpu: super::remux::cpu_time(job) + length,
    };
    let is_dense = longest_gap(track, ldus) <= 2 * Duration::from_secs(interval.into());
    let mut pictures = if is_dense { decode(job, &source, true)? } else { Ok(Vec::new()) };
    // Some codecs have entry points that are no key frames to their decoder.
    if !pictures.as_ref().is_ok_and(|pictures| !pictures.is_empty()) {
        pictures = decode(job, &source, false)?;
    }
    match pictures {
        Ok(pictures) if pictures.is_empty() => Ok(Err("FFmpeg finds no picture".to_owned())),
        Ok(pictures) => encode(job, &source, pictures),
        Err(why) => Ok(Err(why)),
    }
}

/// The size of thumbnails of pictures that are shown in this size: their longer side has
/// [`LONGER_SIDE`] pixels, and both have an even number.
fn thumbnail_size((width, height): (u32, u32)) -> (u16, u16) {
    let longer = width.max(height).max(1);
    let side = |length: u32| {
        let pairs = (u64::from(length) * u64::from(LONGER_SIDE / 2) + u64::from(longer) / 2)
            / u64::from(longer);
        2 * u16::try_from(pairs).unwrap_or(LONGER_SIDE / 2).max(1)
    };
    (side(width), side(height))
}

/// The shortest multiple of an interval, in seconds, at which a title has no more thumbnails than
/// it may.
fn possible_interval(wanted: Duration, length: Duration) -> u32 {
    let wanted = u32::try_from(wanted.as_secs()).unwrap_or(u32::MAX).max(1);
    wanted.saturating_mul(intervals(length, wanted).div_ceil(Thumbnails::MAX_COUNT))
}

/// The number of intervals that a title has, at least one.
fn intervals(length: Duration, interval: u32) -> u32 {
    let count = length.as_millis().div_ceil(u128::from(interval) * 1000);
    u32::try_from(count).unwrap_or(u32::MAX).max(1)
}

/// The longest time from one key frame to the next, or to the end.
fn longest_gap(track: &TrackDescription, ldus: &LduIndex) -> Duration {
    let keys = ldus.iter().filter(|ldu| ldu.sync).map(|ldu| ldu.decode_time);
    let times: Vec<u64> = std::iter::once(0).chain(keys).chain([ldus.duration_ticks()]).collect();
    let gaps = times.windows(2).map(|pair| pair[1] - pair[0]);
    time(track, gaps.max().unwrap_or(0))
}

fn time(track: &TrackDescription, ticks: u64) -> Duration {
    let ticks = i64::try_from(ticks).unwrap_or(i64::MAX);
    MediaTime::from_ticks(ticks, track.timescale).since_start()
}

/// Decodes the pictures of a file, of which `key_frames` alone: small ones, one for each interval,
/// as bytes one after the other. None if FFmpeg finds none.
fn decode(
    job: &mut IngestJob<'_>,
    source: &PictureSource<'_>,
    key_frames: bool,
) -> Result<OrReason<Vec<u8>>, StoreError> {
    let PictureSource { stream, size: (width, height), interval, count, .. } = source;
    let mut words: Vec<OsString> = QUIETLY.iter().map(OsString::from).collect();
    if key_frames {
        words.extend(["-skip_frame", "nokey", "-discard", "nokey"].map(OsString::from));
    }
    words.extend(source.input.iter().cloned());
    // Of the pictures up to the middle of an interval the last one; those of the last half are
    // seen for the next. JPEG has the matrix of BT.601 and all values of a byte.
    let filter = format!(
        "fps=fps=1/{interval}:start_time=-{interval}/2:round=down:eof_action=pass,setpts=N,\
         scale={width}:{height}:out_color_matrix=bt601:out_range=full,format=yuvj420p"
    );
    let options = [("-map", format!("0:{}", stream.index)), ("-vf", filter)];
    words.extend(options.into_iter().flat_map(|(name, value)| [name.into(), value.into()]));
    words.extend(["-frames:v".into(), count.to_string().into()]);
    words.extend(["-f", "rawvideo", "pipe:1"].map(OsString::from));
    let process = Process::start("ffmpeg", &words, source.cpu)?;
    let most = u64::from(*count) * source.picture_bytes() as u64;
    let ended = run(job, process, &[], most)?;
    let said = last_words(&ended.complaints);
    Ok(match (ended.output, ended.status) {
        (Ok(mut bytes), Ok(status)) if status.success() => {
            bytes.truncate(bytes.len() / source.picture_bytes() * source.picture_bytes());
            // The last one stands for what remains: FFmpeg ends with the pictures, and key frames
            // end before.
            while !bytes.is_empty() && (bytes.len() as u64) < most {
                bytes.extend_from_within(bytes.len() - source.picture_bytes()..);
            }
            Ok(bytes)
        }
        _ if said.is_empty() => Err("FFmpeg cannot decode its pictures".to_owned()),
        _ => Err(format!("FFmpeg cannot decode its pictures ({said})")),
    })
}

/// Encodes small pictures at the best quality with which a title may have them. Of pictures that
/// have too many bytes at any quality each second one is left out.
fn encode(
    job: &mut IngestJob<'_>,
    source: &PictureSource<'_>,
    mut pictures: Vec<u8>,
) -> Result<OrReason<Thumbnails>, StoreError> {
    let mut interval = source.interval;
    loop {
        for quality in QUALITIES {
            let images = match jpeg(job, source, &pictures, quality)? {
                Ok(images) => images,
                Err(why) => return Ok(Err(why)),
            };
            let count = pictures.len() / source.picture_bytes();
            let count = u32::try_from(count).unwrap_or(u32::MAX);
            if let Some(made) = Thumbnails::new(interval, source.size, count, images) {
                return Ok(Ok(made));
            }
        }
        if pictures.len() <= source.picture_bytes() {
            return Ok(Err("FFmpeg makes other images of them".to_owned()));
        }
        interval = interval.saturating_mul(2);
        pictures = pictures.chunks(source.picture_bytes()).step_by(2).flatten().copied().collect();
    }
}

/// The images of small pictures, with FFmpeg's number for their quality: a small one is good.
fn jpeg(
    job: &mut IngestJob<'_>,
    source: &PictureSource<'_>,
    pictures: &[u8],
    quality: u32,
) -> Result<OrReason<Vec<Arc<[u8]>>>, StoreError> {
    let (width, height) = source.size;
    let mut words: Vec<OsString> = QUIETLY.iter().map(OsString::from).collect();
    let text = format!(
        "-protocol_whitelist pipe -f rawvideo -pix_fmt yuvj420p -video_size {width}x{height} \
         -i pipe:0 -vf tile={}x{} -c:v mjpeg -q:v {quality} -bitexact -f mpjpeg pipe:1",
        Thumbnails::COLUMNS,
        Thumbnails::ROWS
    );
    words.extend(text.split_whitespace().map(OsString::from));
    let process = Process::start_reading(Stdio::piped(), "ffmpeg", &words, ENCODING_TIME)?;
    let ended = run(job, process, pictures, MAX_OUTPUT)?;
    let images = match (&ended.output, ended.status) {
        (Ok(bytes), Ok(status)) if status.success() => parts(bytes),
        _ => None,
    };
    Ok(images.ok_or_else(|| match last_words(&ended.complaints) {
        said if said.is_empty() => "FFmpeg cannot encode them as JPEG".to_owned(),
        said => format!("FFmpeg cannot encode them as JPEG ({said})"),
    }))
}

/// The images in FFmpeg's multipart output: each has a head with its length.
fn parts(mut bytes: &[u8]) -> Option<Vec<Arc<[u8]>>> {
    let mut images = Vec::new();
    let find = |bytes: &[u8], text: &str| {
        let at = bytes.windows(text.len()).position(|window| window == text.as_bytes());
        at.map(|at| at + text.len())
    };
    while let Some(at) = find(bytes, LENGTH) {
        let end = at + find(&bytes[at..], END_OF_HEAD)?;
        let digits = str::from_utf8(&bytes[at..end - END_OF_HEAD.len()]).ok()?;
        let (image, rest) = bytes[end..].split_at_checked(digits.trim().parse().ok()?)?;
        images.push(image.into());
        bytes = rest;
    }
    Some(images)
}

/// Runs a program to its end; an error if the ingest is cancelled.
fn run(
    job: &mut IngestJob<'_>,
    process: Process,
    input: &[u8],
    most: u64,
) -> Result<Ended, StoreError> {
    let size = job.size;
    let ended = process.finish(input, most, || job.tell(STAGE, size).is_ok());
    job.tell(STAGE, size)?;
    Ok(ended)
}

impl PictureSource<'_> {
    /// The bytes of a small picture: a byte for each pixel, and two for each four of them.
    fn picture_bytes(&self) -> usize {
        usize::from(self.size.0) * usize::from(self.size.1) * 3 / 2
    }
}

/// The stage of the ingest, as its progress tells it.
pub(super) const STAGE: &str = "thumbnails";

/// The pixels of the longer side of a thumbnail: about as many as a player shows above its bar.
const LONGER_SIDE: u16 = 160;

/// FFmpeg's numbers for the quality of JPEG that are tried, best first: at the last one blocks are
/// plain to see.
const QUALITIES: [u32; 5] = [4, 6, 9, 13, 20];

const QUIETLY: &[&str] = &["-nostdin", "-hide_banner", "-v", "error"];

/// The heads of FFmpeg's multipart output.
const LENGTH: &str = "Content-length: ";
const END_OF_HEAD: &str = "\r\n\r\n";

/// The most output of an encoder: many times what a title may have.
const MAX_OUTPUT: u64 = 64 << 20;

/// The most processor time of an encoder: of 1,000 small pictures it takes less than one second.
const ENCODING_TIME: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;
    use media::TrackKind;
    use units::Timescale;

    #[test]
    fn thumbnails_have_the_shape_of_their_pictures() {
        let cases = [
            ((1920, 1080), (160, 90)),
            ((1920, 800), (160, 66)),
            ((1080, 1920), (90, 160)),
            ((720, 720), (160, 160)),
            ((64, 36), (160, 90)),
            ((4000, 1), (160, 2)),
            ((u32::MAX, u32::MAX), (160, 160)),
        ];
        for (shown, size) in cases {
            assert_eq!(thumbnail_size(shown), size, "{shown:?}");
        }
    }

    #[test]
    fn a_long_title_has_no_more_thumbnails_than_it_may() {
        let cases = [
            (10, 0.0, (10, 1)),
            (10, 9.999, (10, 1)),
            (10, 10.001, (10, 2)),
            (10, 7200.0, (10, 720)),
            (10, 10_000.0, (10, 1000)),
            (10, 10_001.0, (20, 501)),
            (1, 7200.0, (8, 900)),
            (10, 86_400.0, (90, 960)),
        ];
        for (wanted, seconds, result) in cases {
            let length = Duration::from_secs_f64(seconds);
            let interval = possible_interval(Duration::from_secs(wanted), length);
            assert_eq!((interval, intervals(length, interval)), result, "{wanted}, {seconds}");
        }
    }

    #[test]
    fn the_longest_gap_is_between_key_frames_or_before_the_end() {
        let track = TrackDescription::plain(TrackKind::Video, Timescale(10));
        let gap = |keys: &[bool]| {
            let mut ldus = LduIndex::default();
            keys.iter().for_each(|key| ldus.push(1, 5, 0, *key, false));
            longest_gap(&track, &ldus).as_millis()
        };
        assert_eq!(gap(&[true, true, false, true]), 1000);
        assert_eq!(gap(&[true, false, true, false, false]), 1500);
        assert_eq!(gap(&[false, false, false]), 1500);
        assert_eq!(gap(&[]), 0);
    }

    #[test]
    fn images_are_found_by_the_lengths_in_their_heads() {
        let head = |length: &str| {
            format!("--ffmpeg\r\nContent-type: image/jpeg\r\nContent-length: {length}\r\n\r\n")
        };
        let found = |bytes: &str| {
            let text = |image: &Arc<[u8]>| String::from_utf8(image.to_vec()).unwrap();
            parts(bytes.as_bytes()).map(|all| all.iter().map(text).collect::<Vec<_>>().join("|"))
        };
        let two = format!("{}ab\r\n{}c\r\n--ffmpeg\r\n", head("2"), head("1"));
        assert_eq!(found(&two).as_deref(), Some("ab|c"));
        assert_eq!(found("").as_deref(), Some(""));
        assert_eq!(found(&format!("{}ab", head("3"))), None);
        assert_eq!(found(&format!("{}ab", head("two"))), None);
    }
}
