//! Encrypted segments: FFmpeg decrypts them to the frames of the source, ranges are parts of the
//! whole, and what segments state of themselves is checked by the text of ISO/IEC 23001-7.

use crate::footage::{Folder, Title, chained, encrypted, ffmpeg, make, read, remux};
use crate::playback::{Frame, decode, frames, from_earliest};
use media::{ContentKey, Encryption, EncryptionScheme, KeyAccess, Packaging, Slice};
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use testkit::cenc::{Encrypted, check_init, check_segment};

const SCHEMES: [EncryptionScheme; 2] = [EncryptionScheme::Cenc, EncryptionScheme::Cbcs];
const KEY: [u8; 16] = [7; 16];
const KEY_HEX: &str = "07070707070707070707070707070707";

fn how(scheme: EncryptionScheme) -> Encryption {
    let key = ContentKey { id: [0x1d; 16], key: KEY, access: KeyAccess::Server };
    let content = "a title".to_owned();
    Encryption { scheme, video: key.clone(), audio: key, systems: Vec::new(), content }
}

/// A track as one file: its initialization segment, then all its segments.
fn file_of(title: &Title, packaging: &Packaging, track: u16) -> Vec<u8> {
    let mut all = packaging.init_segment(track).unwrap().to_vec();
    for number in 0..packaging.segment_count(track) {
        all.extend(title.bytes(&packaging.segment(track, number).unwrap()));
    }
    all
}

/// Decodes an encrypted file fragment by fragment: FFmpeg takes what the last fragment that it has
/// read states for all, and without `ignidx` it reads all of them first.
fn decrypt(path: &Path) -> Vec<Vec<Frame>> {
    let args = format!(
        "-copyts -fflags +ignidx -decryption_key {KEY_HEX} -i FILE -map 0 -fps_mode passthrough \
         -enc_time_base 1:90000 -f framemd5 -"
    );
    from_earliest(frames(ffmpeg(&args, &[path])))
}

/// Titles of a codec each, by name and encoder options.
const TITLES: [(&str, &str); 4] = [
    ("h264-slices.mp4", "-c:v libx264 -x264-params slices=4:weightp=2:bframes=3 -g 25 -c:a aac"),
    ("h264-fields.mp4", "-s 160x96 -c:v libx264 -flags +ilme+ildct -g 25 -coder vlc -c:a ac3"),
    ("hevc.mp4", "-c:v libx265 -x265-params log-level=error:keyint=25:wpp=1 -c:a libopus"),
    ("sound.mp4", "-vn -c:a aac"),
];

fn titles(folder: &Folder) -> impl Iterator<Item = (&'static str, Title)> {
    TITLES.into_iter().map(|(name, encode)| {
        let source = make(folder, name, encode);
        (name, read(&remux(&source, "mp4", ""), 5000))
    })
}

#[test]
fn ffmpeg_decrypts_every_frame_of_the_source() {
    let folder = Folder::new("encryption");
    for (name, title) in titles(&folder) {
        for track in 0..u16::try_from(title.index.tracks.len()).unwrap() {
            let clear = folder.file("clear.mp4");
            let whole = title.packaging(Duration::from_secs(1));
            std::fs::write(&clear, file_of(&title, &whole, track)).unwrap();
            let wanted = decode(&clear);
            for scheme in SCHEMES {
                let packaging = title.encrypted(Duration::from_secs(1), Some(how(scheme)));
                let path = folder.file("encrypted.mp4");
                std::fs::write(&path, file_of(&title, &packaging, track)).unwrap();
                let what = format!("{name} track {track} {scheme:?}");
                assert!(decrypt(&path) == wanted, "{what}");
                let found = checked(&what, &title, [&packaging, &whole], track);
                check_slices(&what, &folder.file(name), scheme, &found);
                if let Some(iframe) = packaging.iframe(track, 0) {
                    let mut all = packaging.init_segment(track).unwrap().to_vec();
                    all.extend(title.bytes(&iframe));
                    std::fs::write(&path, all).unwrap();
                    assert_eq!(decrypt(&path)[0][0].1, wanted[0][0].1, "{what}: an I-frame");
                }
            }
        }
    }
}

/// FFmpeg plays HLS of transport streams in AES-128, and any range is a part of the whole.
#[test]
fn transport_streams_are_encrypted_as_a_whole() {
    let folder = Folder::new("encryption-transport");
    let (name, title) = titles(&folder).next().unwrap();
    let clear = title.packaging(Duration::from_secs(1));
    let packaging = title.encrypted(Duration::from_secs(1), Some(how(EncryptionScheme::Cbcs)));
    let mut played = Vec::new();
    for (packaging, place) in [(&clear, "clear"), (&packaging, "encrypted")] {
        let base = folder.file(place);
        std::fs::create_dir_all(base.join("0")).unwrap();
        std::fs::create_dir_all(base.join("key")).unwrap();
        std::fs::write(base.join("key/1d1d1d1d-1d1d-1d1d-1d1d-1d1d1d1d1d1d"), KEY).unwrap();
        let playlist = packaging.transport_playlist(0, "").unwrap();
        assert_eq!(playlist.contains("#EXT-X-KEY:METHOD=AES-128,URI=\"key/1d1d"), place != "clear");
        std::fs::write(base.join("0-ts.m3u8"), playlist).unwrap();
        for number in 0..packaging.segment_count(0) {
            let segment = packaging.transport_segment(0, number).unwrap();
            std::fs::write(base.join(format!("0/{number}.ts")), title.bytes(&segment)).unwrap();
        }
        let args = "-allowed_extensions ALL -i FILE -map 0:v -map 0:a -f framemd5 -";
        played.push(frames(ffmpeg(args, &[&base.join("0-ts.m3u8")])));
    }
    assert!(played[0][0].len() == 60 && played[0] == played[1], "{name}");
    let mut random = fastrand::Rng::with_seed(2);
    let body = packaging.transport_segment(0, 1).unwrap();
    let whole = title.bytes(&body);
    assert_eq!(whole.len() % 16, 0);
    for _ in 0..50 {
        let from = random.usize(0..whole.len());
        let to = random.usize(from..=whole.len());
        let part = body.range(from as u64..to as u64);
        let made = part.slices().flat_map(|slice| match slice {
            Slice::Chained { segment, range } => {
                chained(segment, range.clone(), &title.data, [7, 188, 5000][random.usize(0..3)])
            }
            other => panic!("{other:?}"),
        });
        assert!(made.collect::<Vec<u8>>() == whole[from..to], "{from}..{to}");
    }
}

/// Checks a track by the text of the standard, and gives what was found in all its segments.
fn checked(
    what: &str,
    title: &Title,
    [encrypted, clear]: [&Packaging; 2],
    track: u16,
) -> Encrypted {
    let protection = check_init(what, &encrypted.init_segment(track).unwrap());
    assert_eq!((protection.key_id.len(), protection.systems.len()), (16, 1));
    let mut found = Encrypted::default();
    for number in 0..clear.segment_count(track) {
        let [here, there] =
            [encrypted, clear].map(|it| title.bytes(&it.segment(track, number).unwrap()));
        check_segment(what, &protection, &here, &there, &mut found);
    }
    let data = title.data[usize::from(track)].len() as u64;
    assert!(found.protected > data / 2, "{what}: {} of {data} bytes", found.protected);
    found
}

/// Compares where the data of slices begins with what FFmpeg reads of their headers.
fn check_slices(what: &str, source: &Path, scheme: EncryptionScheme, found: &Encrypted) {
    // In `cenc` data of slices is protected from a later byte on, so that blocks are whole.
    if found.headers.is_empty() || scheme == EncryptionScheme::Cenc {
        return;
    }
    let output = Command::new("ffmpeg")
        .args(["-nostdin", "-hide_banner", "-i"])
        .arg(source)
        .args(["-map", "0:v", "-c", "copy", "-bsf:v", "trace_headers", "-f", "null", "-"])
        .output()
        .unwrap();
    let (mut wanted, mut in_slice) = (Vec::new(), false);
    for line in String::from_utf8_lossy(&output.stderr).lines() {
        let Some((_, line)) =
            line.strip_prefix("[trace_headers").and_then(|it| it.split_once("] "))
        else {
            continue;
        };
        let mut words = line.split_whitespace();
        let Some(at) = words.next().and_then(|word| word.parse::<usize>().ok()) else {
            in_slice = line.starts_with("Slice");
            if in_slice {
                wanted.push(0);
            }
            continue;
        };
        let bits = line.rsplit_once(" = ").and_then(|(before, _)| before.split_whitespace().last());
        let bits = bits.filter(|bits| bits.chars().all(|bit| "01".contains(bit)));
        if in_slice {
            *wanted.last_mut().unwrap() = (at + bits.map_or(0, str::len)).div_ceil(8);
        }
    }
    assert_eq!(found.headers.len(), wanted.len(), "{what}: slices");
    let differ = found.headers.iter().zip(&wanted).position(|(a, b)| a.is_some_and(|a| a != *b));
    let pair = differ.map(|at| (at, found.headers[at], wanted[at]));
    assert_eq!(pair, None, "{what}: the length of a header");
    assert!(found.headers.iter().flatten().count() > wanted.len() / 2, "{what}");
}

#[test]
fn ranges_of_encrypted_segments_are_parts_of_the_whole() {
    let folder = Folder::new("encryption-ranges");
    let mut random = fastrand::Rng::with_seed(1);
    for (name, title) in titles(&folder).take(1) {
        for scheme in SCHEMES {
            let packaging = title.encrypted(Duration::from_secs(1), Some(how(scheme)));
            let track = u16::try_from(random.usize(0..title.index.tracks.len())).unwrap();
            let body = packaging.segment(track, 1).unwrap();
            let whole = title.bytes(&body);
            for _ in 0..100 {
                let from = random.usize(0..whole.len());
                let to = random.usize(from..=whole.len());
                let mut part = Vec::new();
                for slice in body.range(from as u64..to as u64).slices() {
                    match slice {
                        Slice::Generated { bytes, range } => part.extend(&bytes[range.clone()]),
                        Slice::Encrypted { block, range } => {
                            let piece = [1, 5, 16, 999][random.usize(0..4)];
                            part.extend(encrypted(block, range.clone(), &title.data, piece));
                        }
                        other => panic!("{other:?}"),
                    }
                }
                assert!(part == whole[from..to], "{name} {scheme:?} {from}..{to}");
            }
        }
    }
}
