//! What comes in must play: files of known kinds that no player could play are refused with their
//! kind and what to do, damage is damage whether FFmpeg reports it or not, and what a title leaves
//! out of a file is named.
//!
//! The files are made with FFmpeg, or byte by byte where it has no encoder for them.

mod clips;
mod temp_dir;

use clips::{take, take_with};
use std::path::{Path, PathBuf};
use store::{IngestOptions, Store};
use temp_dir::TempDir;
use units::Hinted;

/// Asserts that a file is refused for a reason with all of `parts`, and leaves nothing.
fn assert_refused(store: &Store, file: &Path, parts: &[&str]) {
    let before = store.info();
    let error = take(store, file).unwrap_err();
    let told = error.one_line();
    assert_eq!(error.code(), "refused", "{told}");
    for part in parts {
        assert!(told.contains(part), "without '{part}': {told}");
    }
    assert_eq!(store.info(), before, "{told}");
}

/// Kinds of files that FFmpeg makes: how, and parts of the reason of the refusal.
const MADE: &[(&str, &str, &[&str])] = &[
    ("vp8.webm", "-c:v libvpx -an", &["is VP8 video", "; convert it first", "-c:v libx264"]),
    ("wma.wma", "-vn -c:a wmav2", &["is Windows Media Audio", "-c:a aac"]),
    ("wmv.wmv", "-c:v wmv2 -c:a wmav2", &["is Windows Media Audio"]),
    ("wavpack.wv", "-vn -c:a wavpack", &["is WavPack audio", "-c:a flac"]),
    ("tta.tta", "-vn -c:a tta", &["is True Audio (TTA)"]),
    ("gif.gif", "-an -r 5", &["it is a GIF picture; convert it first"]),
    ("apng.apng", "-an -r 5", &["it is an animated PNG picture (APNG); convert it first"]),
    ("png.png", "-an -frames:v 1", &["it is a PNG picture; a still picture is no title"]),
    ("jpeg.jpg", "-an -frames:v 1", &["it is a JPEG picture; a still picture is no title"]),
    ("webp.webp", "-an -frames:v 1", &["it is a WebP picture"]),
    (
        "still.avif",
        "-an -frames:v 1 -c:v libaom-av1 -cpu-used 8 -still-picture 1",
        &["it is an AVIF or HEIF picture; a still picture is no title"],
    ),
    (
        "key.mp4",
        "-c:v libx264 -c:a aac -encryption_scheme cenc-aes-ctr \
         -encryption_key 76a6c65c5ea762046bd749a2e632ccbb \
         -encryption_kid a7e61c373e219033c21091fa607bf3b8",
        &["it is encrypted; decrypt it first"],
    ),
    (
        "raw.avi",
        "-an -c:v rawvideo -pix_fmt yuv420p",
        &["uncompressed in the pixel format yuv420p, for which QuickTime has no code; convert"],
    ),
    (
        "raw.mov",
        "-an -c:v rawvideo -pix_fmt yuv420p -strict -2",
        &["uncompressed in the pixel format yuv420p, for which QuickTime has no code; convert"],
    ),
    (
        "unnamed.avi",
        "-an -c:v libx265 -x265-params log-level=none",
        &["marked as uncompressed (bgr24), but one has ", "instead of 43200", "into a container"],
    ),
    ("animated.webp", "-an -r 5 -loop 0", &["it is an animated WebP picture; convert it first"]),
    ("bmp.bmp", "-an -frames:v 1", &["it is a BMP picture; a still picture is no title"]),
    (
        "pictures.mjpeg",
        "-an -c:v mjpeg -pix_fmt yuvj420p",
        &["a sequence of JPEG pictures without times; give it times", "ffmpeg -f mjpeg -framerate"],
    ),
    (
        "bluray.m2ts",
        "-c:v libx264 -bf 0 -ac 2 -c:a pcm_bluray",
        &["is PCM audio in the framing of discs", "-c:a flac"],
    ),
    (
        "reordered.avi",
        "-c:v libx264 -bf 2 -b_strategy 0 -c:a libmp3lame",
        &["not in the order in which they are shown, and have no times; add times", "mkvmerge"],
    ),
    (
        "reordered.asf",
        "-c:v libx264 -bf 2 -b_strategy 0 -c:a libmp3lame",
        &["not in the order in which they are shown, and have no times"],
    ),
    ("vorbis.wav", "-vn -c:a libvorbis", &["is vorbis in a WAVE file", "packet ends; convert"]),
    ("speex.w64", "-vn -c:a libspeex -ar 16000 -ac 1", &["is speex in a WAVE file"]),
    ("mixed.mkv", "-c:v libvpx-vp9 -cpu-used 8 -c:a pcm_s16le", &["only MP4 holds its vp9"]),
];

#[test]
fn known_kinds_are_refused_in_words_that_help() {
    let dir = TempDir::new("kinds");
    let store = dir.store();
    for (name, arguments, parts) in MADE {
        let file = dir.clip(name, arguments);
        assert_refused(&store, &file, parts);
    }
    let written: &[(&str, &[u8], &[&str])] = &[
        ("ape.ape", b"MAC \x96\x0f\0\0", &["it is Monkey's Audio (APE); convert it first"]),
        ("dsf.dsf", b"DSD \x1c\0\0\0\0\0\0\0", &["it is DSD audio (DSF); convert it first"]),
        ("dff.dff", b"FRM8\0\0\0\0\0\0\0\x40DSD FVER", &["it is DSD audio (DSDIFF)"]),
        ("mpc.mpc", b"MPCKSH\x0e", &["it is Musepack audio; convert it first"]),
        ("heif.heic", b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", &["it is a HEIF picture"]),
        ("notes.mid", b"MThd\0\0\0\x06\0\0\0\x01\0\x60", &["it is a MIDI file, which has notes"]),
        ("list.m3u8", b"#EXTM3U\n#EXTINF:2,\nfilm.mp4\n", &["it is a playlist"]),
    ];
    for (name, bytes, parts) in written {
        std::fs::write(dir.file(name), bytes).unwrap();
        assert_refused(&store, &dir.file(name), parts);
    }
    // An MP4 file ends with its index.
    let bytes = std::fs::read(dir.clip("whole.mp4", "-c:v libx264 -an")).unwrap();
    std::fs::write(dir.file("no-index.mp4"), &bytes[..bytes.len() / 2]).unwrap();
    let parts = &["it has no index (the box `moov`): it was cut short", "; repair it first"];
    assert_refused(&store, &dir.file("no-index.mp4"), parts);
    assert_refused(&store, &flac_of_32_bits(&dir), &["FLAC of 32 bits", "FFmpeg", "flac -d"]);
    assert_refused(&store, &xhe_aac(&dir), &["its audio is xHE-AAC", "-c:a aac"]);
    assert_refused(&store, &encrypted_webm(&dir), &["it is encrypted; decrypt it first"]);
    let parts = &["AC-3 audio is of a variant for low sampling rates", "; convert the sound first"];
    assert_refused(&store, &ac3_of_half_rate(&dir), parts);
    let parts = &["it is the initialization segment of a stream", "; join it with them first"];
    assert_refused(&store, &initialization_segment(&dir), parts);
}

/// AC-3 whose frames say that their sampling rate is half of what they are marked with.
fn ac3_of_half_rate(dir: &TempDir) -> PathBuf {
    let file = dir.clip("half.ac3", "-vn -c:a ac3");
    let mut bytes = std::fs::read(&file).unwrap();
    let frames: Vec<usize> =
        (0..bytes.len() - 6).filter(|at| bytes[*at..][..2] == [0x0b, 0x77]).collect();
    for at in frames {
        // The first five bits of the sixth byte are the version: 8, and 9 for half of the rate.
        bytes[at + 5] = 9 << 3 | bytes[at + 5] & 7;
    }
    std::fs::write(&file, bytes).unwrap();
    file
}

/// The headers of an MP4 file in fragments.
fn initialization_segment(dir: &TempDir) -> PathBuf {
    let file = fragmented(dir, "init.mp4");
    let bytes = std::fs::read(&file).unwrap();
    let fragment = bytes.windows(4).position(|bytes| bytes == b"moof").unwrap();
    std::fs::write(&file, &bytes[..fragment - 4]).unwrap();
    file
}

fn fragmented(dir: &TempDir, name: &str) -> PathBuf {
    dir.clip(name, "-c:v libx264 -bf 0 -g 25 -c:a aac -movflags empty_moov+frag_keyframe")
}

/// A FLAC file whose header declares samples of 32 bits.
fn flac_of_32_bits(dir: &TempDir) -> PathBuf {
    let file = dir.clip("thirty-two.flac", "-vn -c:a flac");
    let mut bytes = std::fs::read(&file).unwrap();
    // Behind "fLaC", the block's header and 10 bytes: rate 20 bits, channels 3, bits 5 less one.
    bytes[20] |= 1;
    bytes[21] |= 0xf0;
    std::fs::write(&file, bytes).unwrap();
    file
}

/// An MP4 file whose audio configuration has object type 42.
fn xhe_aac(dir: &TempDir) -> PathBuf {
    let file = dir.clip("xhe.m4a", "-vn -c:a aac");
    let mut bytes = std::fs::read(&file).unwrap();
    let entry = bytes.windows(4).position(|bytes| bytes == b"esds").unwrap();
    // The configuration of FFmpeg's encoder: object type 2, 48 kHz, mono.
    let config = bytes[entry..].windows(2).position(|bytes| bytes == [0x11, 0x88]).unwrap();
    bytes[entry + config..][..2].copy_from_slice(&[0xf9, 0x46]);
    std::fs::write(&file, bytes).unwrap();
    file
}

/// A WebM file with a track whose content is encrypted.
fn encrypted_webm(dir: &TempDir) -> PathBuf {
    let element = |id: &[u8], content: &[u8]| {
        let length = u32::try_from(content.len()).unwrap() | 0x1000_0000;
        [id, &length.to_be_bytes(), content].concat()
    };
    let encryption = [element(&[0x47, 0xe1], &[5]), element(&[0x47, 0xe2], &[7; 16])].concat();
    let encoding = [
        element(&[0x50, 0x31], &[0]),
        element(&[0x50, 0x32], &[1]),
        element(&[0x50, 0x33], &[1]),
        element(&[0x50, 0x35], &encryption),
    ];
    let encodings = element(&[0x6d, 0x80], &element(&[0x62, 0x40], &encoding.concat()));
    let size = [element(&[0xb0], &[0, 160]), element(&[0xba], &[90])].concat();
    let track = [
        element(&[0xd7], &[1]),
        element(&[0x73, 0xc5], &[1]),
        element(&[0x83], &[1]),
        element(&[0x86], b"V_VP9"),
        element(&[0xe0], &size),
        encodings,
    ];
    let tracks = element(&[0x16, 0x54, 0xae, 0x6b], &element(&[0xae], &track.concat()));
    let frame = [&[0x81, 0, 0, 0x80, 1][..], &[0x5a; 200]].concat();
    let cluster = [element(&[0xe7], &[0]), element(&[0xa3], &frame)].concat();
    let segment = [tracks, element(&[0x1f, 0x43, 0xb6, 0x75], &cluster)].concat();
    let header = element(&[0x1a, 0x45, 0xdf, 0xa3], &element(&[0x42, 0x82], b"webm"));
    let file = dir.file("key.webm");
    std::fs::write(&file, [header, element(&[0x18, 0x53, 0x80, 0x67], &segment)].concat()).unwrap();
    file
}

#[test]
fn a_track_that_no_player_reads_is_left_out_if_another_one_remains() {
    let dir = TempDir::new("other-sound");
    let store = dir.store();
    let file =
        dir.clip("both.mkv", "-map 0:v -map 1:a -map 1:a -c:v libx264 -c:a:0 wmav2 -c:a:1 aac");
    let report = take(&store, &file).unwrap();
    assert_eq!(
        report.left_out,
        ["audio stream 1 (wmav2), in a codec that no player reads from MP4"]
    );
    assert_eq!(report.title.tracks.len(), 2);
}

#[test]
fn one_video_track_is_taken_and_the_others_are_named() {
    let dir = TempDir::new("videos");
    let store = dir.store();
    let more = "-f lavfi -i testsrc=size=320x180:rate=25:duration=1";
    // Both are default tracks: the longest is taken.
    let angles = dir.clip(
        "angles.mp4",
        &format!("{more} -map 2:v -map 0:v -map 1:a -c:v libx264 -c:a aac -disposition:v default"),
    );
    let report = take(&store, &angles).unwrap();
    assert_eq!(report.left_out, ["video stream 0 (h264, 320x180, 1.0 s)"]);
    assert_eq!(report.title.tracks.len(), 2);
    assert!(report.title.duration.as_secs_f64() > 1.9, "{:?}", report.title);

    // The default one, although it is shorter.
    let chosen = dir.clip(
        "chosen.mkv",
        &format!(
            "{more} -map 0:v -map 2:v -map 1:a -c:v libx264 -c:a aac -disposition:v:0 0 \
             -disposition:v:1 default"
        ),
    );
    let report = take(&store, &chosen).unwrap();
    assert_eq!(report.left_out.len(), 1, "{:?}", report.left_out);
    assert!(report.left_out[0].starts_with("video stream 0 (h264, 160x90"), "{report:?}");
}

#[test]
fn one_of_several_programmes_is_taken_by_its_number() {
    let dir = TempDir::new("programmes");
    let store = dir.store();
    let file = dir.clip(
        "two.ts",
        "-map 0:v -map 1:a -map 0:v -map 1:a -c:v libx264 -g 12 -c:a aac -c:a:1 mp2 \
         -program title=One:st=0:st=1 -program title=Two:st=2:st=3",
    );
    assert_refused(&store, &file, &["it has 2 programmes: 1 (One), 2 (Two); take one in with"]);
    let options = |program| IngestOptions { program: Some(program), ..IngestOptions::default() };
    let error = take_with(&store, &file, &options(3)).unwrap_err().one_line();
    assert!(error.contains("it has no programme 3; it has: 1 (One), 2 (Two)"), "{error}");
    let report = take_with(&store, &file, &options(2)).unwrap();
    assert_eq!(report.left_out, ["programme 1 (One)", "the tag service_name"]);
    assert_eq!(report.title.tracks.len(), 2);
    let error = take_with(&store, &dir.clip("one.mp4", "-c:v libx264"), &options(1)).unwrap_err();
    assert!(error.to_string().contains("it has no programmes"), "{error}");
}

#[test]
fn what_transport_streams_hide_is_the_reason_of_the_refusal() {
    let dir = TempDir::new("transport");
    let store = dir.store();
    let stereo = dir.clip("stereo.ts", "-c:v libx264 -g 12 -ac 2 -c:a aac");
    let surround = dir.clip("surround.ts", "-c:v libx264 -g 12 -ac 6 -c:a aac -output_ts_offset 2");
    let stereo = std::fs::read(stereo).unwrap();
    let both = [stereo.clone(), std::fs::read(surround).unwrap()].concat();
    std::fs::write(dir.file("changes.ts"), both).unwrap();
    let parts = &[
        "audio stream 1 (aac) changes its form in the middle (48000 Hz stereo and 48000 Hz with 6 \
         channels), which a track of MP4 cannot; convert it first",
        "-c:a aac",
    ];
    assert_refused(&store, &dir.file("changes.ts"), parts);
    // FFmpeg's muxer gives the video the PID 256 and the audio 257.
    for (name, pids) in [("all.ts", &[256, 257][..]), ("sound.ts", &[257]), ("video.ts", &[256])] {
        std::fs::write(dir.file(name), scrambled(&stereo, pids)).unwrap();
        assert_refused(&store, &dir.file(name), &["it is encrypted; decrypt it first"]);
    }
}

#[test]
fn numbered_pictures_are_one_title_or_the_reason_is_told() {
    let dir = TempDir::new("numbered");
    let store = dir.store();
    let source = "-f lavfi -i testsrc2=size=160x90:rate=25:duration=0.2";
    // A per cent sign is also one in a folder's name.
    std::fs::create_dir(dir.file("100%d")).unwrap();
    dir.ffmpeg(&format!("{source} -start_number 998"), "100%%d/a%%_%03d.png");
    let other = dir.ffmpeg("-f lavfi -i testsrc2=size=80x90 -frames:v 1", "other.png");
    let picture = |number: u32| dir.file(&format!("100%d/a%_{number:03}.png"));
    let pattern = dir.file("100%d/a%_%03d.png");
    let options =
        |fps: &str| IngestOptions { fps: Some(fps.parse().unwrap()), ..IngestOptions::default() };
    let report = take_with(&store, &pattern, &options("30000/1001")).unwrap();
    assert_eq!((report.title.name.as_str(), report.notes.len()), ("a%", 0), "{report:?}");
    assert_eq!(report.title.tracks.len(), 1);
    let bytes = (998..=1002).map(|number| std::fs::metadata(picture(number)).unwrap().len());
    assert_eq!(report.title.bytes, bytes.sum::<u64>());
    let seconds = report.title.duration.as_secs_f64();
    assert!((seconds - 5.0 * 1001.0 / 30_000.0).abs() < 0.0005, "{seconds}");

    let refused = |file: &str, fps: Option<&str>, told: &str| {
        let options = fps.map_or_else(IngestOptions::default, options);
        let options = IngestOptions { name: Some("other".to_owned()), ..options };
        let before = store.info();
        let error = take_with(&store, &dir.file(file), &options).unwrap_err();
        assert_eq!((error.code(), store.info()), ("refused", before), "{file}: {error}");
        assert!(error.one_line().contains(told), "{}", error.one_line());
    };
    let whole = "100%d/a%_%03d.png";
    refused(whole, None, "not how many are shown in a second; say it with --fps");
    refused("other.png", Some("25"), "its name has no place for a number");
    refused("100%d/a%_%06d.png", Some("25"), "no file has such a name; there is a%_");
    std::fs::rename(&other, picture(1000)).unwrap();
    let differ = "its pictures differ: a%_998.png has 160x90, a%_1000.png has 80x90";
    refused(whole, Some("25"), differ);
    std::fs::write(picture(1000), "").unwrap();
    refused(whole, Some("25"), "a%_1000.png has no size");
    std::fs::remove_file(picture(1000)).unwrap();
    let missing = "of the pictures 998 to 1002 some are missing: 1000; copy what";
    refused(whole, Some("25"), missing);
}

#[test]
fn numbered_pictures_without_their_end_are_damaged() {
    let dir = TempDir::new("kinds-cut-pictures");
    let store = dir.store();
    let source = "-f lavfi -i testsrc2=size=160x90:rate=25:duration=0.12";
    for (name, words) in [
        ("a.%d.dpx", "-pix_fmt gbrp10be"),
        ("b.%d.exr", "-pix_fmt gbrpf32le -compression none"),
        ("c.%d.exr", "-pix_fmt gbrpf32le -compression zip16"),
        ("d.%d.png", ""),
        ("e.%d.jpg", ""),
        ("f.%d.jp2", "-c:v jpeg2000"),
    ] {
        dir.ffmpeg(&format!("{source} {words}"), name);
        let pattern = dir.file(name);
        let options = |allow_damaged| IngestOptions {
            name: Some(format!("{name} {allow_damaged}")),
            fps: Some("25".parse().unwrap()),
            allow_damaged,
            ..IngestOptions::default()
        };
        let whole = take_with(&store, &pattern, &options(true)).unwrap();
        assert!(whole.notes.is_empty(), "{name}: {whole:?}");
        let second = dir.file(&name.replace("%d", "2"));
        let file = std::fs::OpenOptions::new().write(true).open(&second).unwrap();
        file.set_len(file.metadata().unwrap().len() - 40).unwrap();
        let error = take_with(&store, &pattern, &options(false)).unwrap_err().one_line();
        let told =
            format!("the end of 1 picture is missing, the first is {}", name.replace("%d", "2"));
        assert!(error.contains(&told) && error.contains("--allow-damaged"), "{name}: {error}");
    }
    // A picture of another format under the name of this one.
    std::fs::copy(dir.file("b.1.exr"), dir.file("a.2.dpx")).unwrap();
    let options = IngestOptions { fps: Some("25".parse().unwrap()), ..IngestOptions::default() };
    let error = take_with(&store, &dir.file("a.%d.dpx"), &options).unwrap_err().one_line();
    let told = "a.1.dpx has 160x90 in DPX, a.2.dpx has 160x90 in OpenEXR";
    assert!(error.contains(told), "{error}");
}

/// A transport stream with the payload of these PIDs scrambled.
fn scrambled(stream: &[u8], pids: &[u16]) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(1);
    let mut stream = stream.to_vec();
    for packet in stream.chunks_exact_mut(188) {
        if pids.contains(&u16::from_be_bytes([packet[1] & 0x1f, packet[2]])) {
            packet[3] |= 0x80;
            let field = if packet[3] & 0x20 != 0 { 1 + usize::from(packet[4]) } else { 0 };
            random.fill(&mut packet[4 + field..]);
        }
    }
    stream
}

#[test]
fn a_recording_begins_with_its_first_key_frame() {
    let dir = TempDir::new("late");
    let store = dir.store();
    let codecs =
        [("mpeg2video", "mp2", "ts"), ("mpeg2video", "ac3", "vob"), ("libx264", "aac", "ts")];
    for (video, audio, extension) in codecs {
        let name = format!("{video}.{extension}");
        let whole = dir.clip(&name, &format!("-c:v {video} -bf 2 -g 20 -c:a {audio}"));
        let bytes = std::fs::read(&whole).unwrap();
        let unit = if extension == "ts" { 188 } else { 2048 };
        let cut = dir.file(&format!("late-{name}"));
        std::fs::write(&cut, &bytes[bytes.len() / 3 / unit * unit..]).unwrap();
        let options = IngestOptions { name: Some(name.clone()), ..IngestOptions::default() };
        let report =
            take_with(&store, &cut, &options).unwrap_or_else(|error| panic!("{name}: {error}"));
        let note = "it begins between two key frames: its video begins with the first key frame";
        assert_eq!(report.notes, [note], "{name}");
        assert!(report.title.duration.as_secs_f64() > 0.7, "{name}: {:?}", report.title);
    }
}

#[test]
fn a_track_that_ends_long_before_the_title_is_named() {
    let dir = TempDir::new("uneven");
    let store = dir.store();
    let film = |name: &str, video: u32, audio: u32| {
        let inputs = format!(
            "-f lavfi -i testsrc2=s=64x64:r=5:d={video} -f lavfi -i sine=440:d={audio} -c:v mpeg4"
        );
        take(&store, &dir.ffmpeg(&inputs, name)).unwrap().notes
    };
    let note = |track: &str| {
        format!(
            "{track} ends 6 s before the title: over HLS some players stop there, from MP4 they \
             play on"
        )
    };
    assert_eq!(film("even.mkv", 6, 5), [""; 0]);
    assert_eq!(film("short-sound.mkv", 8, 2), [note("track 1 (audio)")]);
    assert_eq!(film("short-pictures.mkv", 2, 8), [note("track 0 (video)")]);
}

/// Recorders that write fragments do not know the duration when they write the header, and set all
/// of its bits.
#[test]
fn a_header_that_declares_no_duration_declares_none_that_is_too_long() {
    let dir = TempDir::new("undeclared");
    let file = fragmented(&dir, "live.mp4");
    let mut bytes = std::fs::read(&file).unwrap();
    let places: Vec<usize> =
        (0..bytes.len() - 4).filter(|at| bytes[*at..][..4] == *b"mdhd").collect();
    assert_eq!(places.len(), 2, "video and audio");
    for at in places {
        // Behind the type: version and flags, two times, the time scale.
        bytes[at + 20..at + 24].fill(0xff);
    }
    std::fs::write(&file, bytes).unwrap();
    let report = take(&dir.store(), &file).unwrap();
    assert_eq!((report.title.tracks.len(), report.notes), (2, Vec::new()));
}

#[test]
fn files_shorter_than_their_header_declares_are_damaged() {
    let dir = TempDir::new("short");
    let store = dir.store();
    let cut = |name: &str, arguments: &str| {
        let file = dir.clip(name, arguments);
        let bytes = std::fs::read(&file).unwrap();
        std::fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
        file
    };
    let lost = |name: &str, arguments: &str| {
        let file = dir.clip(name, arguments);
        let mut bytes = std::fs::read(&file).unwrap();
        let offsets = bytes.windows(4).position(|bytes| bytes == b"stco").unwrap();
        // The first chunk of the video track, behind version, flags and count.
        bytes[offsets + 12..offsets + 16].copy_from_slice(&[0x7f, 0xff, 0xff, 0xff]);
        std::fs::write(&file, bytes).unwrap();
        file
    };
    let cases = [
        (
            lost("lost.mp4", "-c:v libx264 -bf 0 -g 250 -c:a aac"),
            "its video stream 0 (h264) is empty, the header declares 2.0 s",
        ),
        (cut("cut.wav", "-vn -c:a pcm_s16le"), "bytes more than the file has"),
        (cut("cut.w64", "-vn -c:a pcm_s16le"), "bytes more than the file has"),
        (cut("cut.aiff", "-vn -c:a pcm_s16be"), "ends after 1.0 s, the header declares 2.0 s"),
        (cut("cut.au", "-vn -c:a pcm_s16be"), "ends after 1.0 s, the header declares 2.0 s"),
        (
            cut("cut.ogg", "-vn -ac 2 -c:a libvorbis -page_duration 200000"),
            "its last page is cut short",
        ),
        (cut("cut.opus", "-vn -c:a libopus -page_duration 200000"), "its last page is cut short"),
        (cut("cut.avi", "-c:v mpeg4 -g 12 -c:a libmp3lame"), "the header declares 2.0 s"),
    ];
    let options = IngestOptions { allow_damaged: true, ..IngestOptions::default() };
    for (number, (file, what)) in cases.iter().enumerate() {
        assert_refused(&store, file, &["it is damaged or cut short: ", what, "--allow-damaged"]);
        let name = Some(format!("case {number}"));
        let report = take_with(&store, file, &IngestOptions { name, ..options.clone() }).unwrap();
        assert!(report.notes[0].contains(what), "{:?}", report.notes);
    }
}

#[test]
fn an_ogg_file_of_whole_pages_without_a_marked_end_is_taken_with_a_note() {
    let dir = TempDir::new("unmarked");
    let store = dir.store();
    let whole = dir.clip("whole.opus", "-vn -c:a libopus -page_duration 200000");
    let bytes = std::fs::read(whole).unwrap();
    let last_page = bytes.windows(5).rposition(|bytes| bytes == b"OggS\0").unwrap();
    std::fs::write(dir.file("recorded.opus"), &bytes[..last_page]).unwrap();
    let report = take(&store, &dir.file("recorded.opus")).unwrap();
    let note = "its last page is not marked as the end of a stream, so that nothing shows whether \
                more followed";
    assert_eq!(report.notes, [note]);
    assert!(report.title.duration.as_secs_f64() > 1.5, "{:?}", report.title);
}

#[test]
fn a_bad_tag_is_no_damage() {
    let dir = TempDir::new("tags");
    let store = dir.store();
    let plain =
        std::fs::read(dir.clip("plain.mp3", "-vn -c:a libmp3lame -id3v2_version 0")).unwrap();
    // A comment frame of UTF-16 without a byte order mark, shorter than a comment may be.
    let frame = b"COMM\0\0\0\x03\0\0\x01en".to_vec();
    let tag = [b"ID3\x03\0\0\0\0\0\x0d".to_vec(), frame].concat();
    std::fs::write(dir.file("tagged.mp3"), [tag, plain.clone()].concat()).unwrap();
    let mut bad_count = plain;
    let xing = bad_count.windows(4).position(|it| it == b"Xing" || it == b"Info").unwrap();
    bad_count[xing + 8..xing + 12].copy_from_slice(&[0x7f, 0, 0, 0]);
    std::fs::write(dir.file("count.mp3"), bad_count).unwrap();
    for name in ["tagged.mp3", "count.mp3"] {
        let report =
            take(&store, &dir.file(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!((1.9..2.2).contains(&report.title.duration.as_secs_f64()), "{name}: {report:?}");
    }
}

#[test]
fn chapters_tags_and_time_codes_are_named_when_they_are_left_out() {
    let dir = TempDir::new("named");
    let store = dir.store();
    let chapters = ";FFMETADATA1\ntitle=A film\nartist=Somebody\n\
                    [CHAPTER]\nTIMEBASE=1/1000\nSTART=0\nEND=1000\ntitle=One\n\
                    [CHAPTER]\nTIMEBASE=1/1000\nSTART=1000\nEND=2000\ntitle=Two\n";
    std::fs::write(dir.file("chapters.txt"), chapters).unwrap();
    dir.clip("plain.mkv", "-c:v libx264 -c:a aac");
    let common = "-i plain.mkv -f ffmetadata -i chapters.txt -map 0 -map_metadata 1 -c copy";
    for (name, more, wanted) in [
        ("a.mp4", "", &["2 chapters", "the tags title, artist"][..]),
        // The title of an audio track is kept, as the name of its rendition.
        ("b.mkv", "-metadata:s:a:0 title=Commentary", &["2 chapters", "the tags title, artist"]),
        (
            "c.mov",
            "-timecode 10:00:00:00",
            &["2 chapters", "the tags title, artist", "time code 10:00:00:00"],
        ),
        // Ogg has the tags in its streams, where the title is that of the track.
        ("d.ogg", "-vn -c:a libvorbis", &["the tag artist"]),
        ("o.opus", "-vn -c:a libopus", &["2 chapters", "the tag artist"]),
        ("e.flac", "-vn -c:a flac", &["the tags title, artist"]),
        ("f.mp3", "-vn -c:a libmp3lame", &["2 chapters", "the tags title, artist"]),
        ("g.ts", "-metadata service_name=News", &["the tag service_name"]),
        ("h.ts", "-metadata title=", &[]),
        (
            "i.webm",
            "-an -c:v libvpx-vp9 -pix_fmt yuva420p -deadline realtime -auto-alt-ref 0",
            &["2 chapters", "the tags title, artist", "the transparency of the video"],
        ),
    ] {
        let file = dir.ffmpeg(&format!("{common} {more}"), name);
        assert_eq!(take(&store, &file).unwrap().left_out, wanted, "{name}");
    }
}
