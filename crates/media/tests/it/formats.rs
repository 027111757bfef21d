//! A stream whose pictures or sound change their form: what is before the change is read, and
//! nothing behind it is taken for the same form.

use crate::footage::{Folder, ffmpeg, read};
use media::{FragmentReader, FragmentSink, TrackDescription};
use std::convert::Infallible;
use std::path::Path;

/// Counts the bytes of each track.
#[derive(Default)]
struct Arrived(Vec<u64>);

impl FragmentSink for Arrived {
    type Error = Infallible;

    fn tracks(&mut self, tracks: &[TrackDescription]) -> Result<(), Infallible> {
        self.0 = vec![0; tracks.len()];
        Ok(())
    }

    fn payload(&mut self, track: usize, bytes: &[u8]) -> Result<(), Infallible> {
        self.0[track] += bytes.len() as u64;
        Ok(())
    }
}

/// What a recording has of these bytes that come in pieces: the pictures in front of the first
/// error, and the error.
fn recorded(stream: &[u8], piece: usize) -> (usize, String) {
    let mut reader = FragmentReader::new().ending_at_new_format();
    let mut arrived = Arrived::default();
    let pushed = stream.chunks(piece).try_for_each(|bytes| reader.push(bytes, &mut arrived));
    let pictures = reader.part(0, 0, arrived.0[0]).ldus.len();
    (pictures, pushed.err().map_or(String::new(), |error| error.to_string()))
}

/// Twelve pictures in this form, as a transport stream.
fn twelve(folder: &Folder, how: &str) -> Vec<u8> {
    let (size, how) = how.split_once(' ').expect("a size");
    let path = folder.file("twelve.ts");
    let words = format!(
        "-f lavfi -i testsrc2=s={size}:r=25:d=0.48 -f lavfi -i sine=d=0.48 {how} -bf 0 -g 12 -c:a \
         aac -f mpegts FILE"
    );
    ffmpeg(&words, &[&path]);
    std::fs::read(path).expect("it was made")
}

#[test]
fn pictures_of_another_form_end_a_recording() {
    let folder = Folder::new("formats");
    let avc = "-c:v libx264 -preset ultrafast -pix_fmt";
    let hevc = "-c:v libx265 -preset ultrafast -x265-params log-level=none -pix_fmt";
    // Two forms one after the other, and the error.
    let table = [
        (
            format!("160x90 {avc} yuv420p"),
            format!("320x180 {avc} yuv420p"),
            "pictures of 160x90 (4:2:0, 8 bit, profile 66) to pictures of 320x180 (4:2:0, 8 bit, \
             profile 66)",
        ),
        (
            format!("160x90 {avc} yuv422p"),
            format!("160x90 {avc} yuv420p"),
            "pictures of 160x90 (4:2:2, 8 bit, profile 122) to pictures of 160x90 (4:2:0, 8 bit, \
             profile 66)",
        ),
        (
            format!("160x90 {hevc} yuv420p"),
            format!("160x98 {hevc} yuv420p10le"),
            "pictures of 160x90 (4:2:0, 8 bit, profile 1) to pictures of 160x98 (4:2:0, 10 bit, \
             profile 2)",
        ),
        (format!("160x90 {avc} yuv420p -qp 20"), format!("160x90 {avc} yuv420p -qp 30"), ""),
        (format!("160x90 {hevc} yuv420p"), format!("160x90 {hevc} yuv420p"), ""),
    ];
    for (first, second, change) in &table {
        let both = [twelve(&folder, first), twelve(&folder, second)].concat();
        let path = folder.file("both.ts");
        std::fs::write(&path, both).expect("there is room");
        let stream = remuxed(&path, OF_AAC);
        let wanted = match *change {
            "" => (24, String::new()),
            change => (12, format!("the input changes from {change}")),
        };
        for piece in [stream.len(), 997] {
            let what = format!("{first}, then {second}, in pieces of {piece}");
            assert_eq!(recorded(&stream, piece), wanted, "{what}");
        }
    }
}

/// Three seconds of sound in this form, as a transport stream.
fn sound(folder: &Folder, how: &str) -> Vec<u8> {
    let path = folder.file("sound.ts");
    ffmpeg(&format!("-f lavfi -i sine=d=3:r=48000 {how} -f mpegts FILE"), &[&path]);
    std::fs::read(path).expect("it was made")
}

#[test]
fn sound_of_another_form_ends_a_recording() {
    let folder = Folder::new("sounds");
    let (stereo, mono) = ("-ac 2 -c:a", "-ac 1 -c:a");
    // Two forms one after the other, the samples of a packet, and the error.
    let table = [
        (
            format!("{stereo} aac"),
            format!("{mono} aac"),
            1024,
            "sound whose first channels are a pair to sound whose first channel is single",
        ),
        (
            format!("{mono} mp2"),
            format!("{stereo} mp2"),
            1152,
            "sound of 1 channel of 48000 Hz to sound of 2 channels of 48000 Hz",
        ),
        (
            format!("{stereo} ac3"),
            "-ac 6 -c:a ac3".to_owned(),
            1536,
            "sound of 2/0 channels of 48000 Hz to sound of 3/2 channels of 48000 Hz",
        ),
        (
            "-ac 6 -c:a eac3".to_owned(),
            format!("{stereo} eac3"),
            1536,
            "sound of 3/2 channels of 48000 Hz to sound of 2/0 channels of 48000 Hz",
        ),
        (format!("{mono} aac"), format!("{mono} aac -b:a 48k"), 1024, ""),
        (format!("{stereo} ac3"), format!("{stereo} ac3 -b:a 96k"), 1536, ""),
    ];
    for (first, second, packet, change) in &table {
        let both = [sound(&folder, first), sound(&folder, second)].concat();
        let path = folder.file("both.ts");
        std::fs::write(&path, both).expect("there is room");
        let stream = remuxed(&path, if first.contains(" aac") { OF_AAC } else { "" });
        let what = format!("{first}, then {second}");
        let (packets, error) = recorded(&stream, 997);
        let wanted = match *change {
            "" => String::new(),
            change => format!("the input changes from {change}"),
        };
        assert_eq!(error, wanted, "{what}");
        // What an encoder adds at the ends is up to it.
        let seconds = packets * packet / 48_000;
        assert_eq!(seconds, if change.is_empty() { 6 } else { 3 }, "{what}: {packets} packets");
    }
}

#[test]
fn the_channels_of_mpeg_audio_are_those_of_its_frames() {
    let folder = Folder::new("channels");
    for codec in ["libmp3lame", "mp2"] {
        for channels in [1, 2] {
            let how = format!("-ac {channels} -c:a {codec}");
            let path = folder.file("one.ts");
            std::fs::write(&path, sound(&folder, &how)).expect("there is room");
            let title = read(&remuxed(&path, ""), 997);
            assert_eq!(title.index.tracks[0].description.channels, channels, "{how}");
        }
    }
}

/// The fragments of a recording. `extra`: the filter that AAC needs.
fn remuxed(source: &Path, extra: &str) -> Vec<u8> {
    let words = format!(
        "-v quiet -i FILE -c copy {extra} -f mp4 -frag_duration 200000 -movflags \
         empty_moov+delay_moov+default_base_moof pipe:1"
    );
    ffmpeg(&words, &[source])
}

const OF_AAC: &str = "-bsf:a aac_adtstoasc";
