//! Files that are unusual are played as they are; files that are bad are refused by name.

use crate::framemd5::{Frames, assert_same, decode, decode_each, sorted};
use crate::program::TestDir;
use crate::stage::{assert_unchanged, ffmpeg, holdings};
use serde_json::{Value, json};

const PICTURES: &str = "-f lavfi -i testsrc2=s=160x90:r=25:d=3";
const SOUND: &str = "-f lavfi -i sine=440:d=3:r=48000";
const X264: &str = "-c:v libx264 -preset ultrafast -bf 2 -b_strategy 0 -g 12 -pix_fmt yuv420p";

#[test]
fn unusual_films_play_as_in_their_files() {
    let dir = TestDir::with_store();
    let both = format!("{PICTURES} {SOUND} {X264} -c:a aac");
    ffmpeg(&dir, &both, "plain.mp4");
    dir.write("words.srt", "1\n00:00:00,000 --> 00:00:01,000\nWords\n");
    let table: &[(&str, &str, &str)] = &[
        ("video-only.mp4", &format!("{PICTURES} {X264}"), ""),
        ("audio-only.m4a", &format!("{SOUND} -c:a aac"), ""),
        ("rotated.mp4", "-i plain.mp4 -c copy -metadata:s:v rotate=90", ""),
        ("variable-rate.mkv", &format!("{PICTURES} -vf {SOME} -fps_mode vfr {X264}"), ""),
        ("edited.mp4", "-ss 0.7 -i plain.mp4 -c copy", ""),
        (
            "late-sound.mp4",
            "-i plain.mp4 -itsoffset 0.6 -i plain.mp4 -map 0:v -map 1:a -c copy",
            "",
        ),
        (
            "late-pictures.mp4",
            "-itsoffset 0.6 -i plain.mp4 -i plain.mp4 -map 0:v -map 1:a -c copy",
            "",
        ),
        ("subtitled.mkv", "-i plain.mp4 -i words.srt -map 0 -map 1 -c copy -c:s srt", ""),
    ];
    for (name, arguments, left_out) in table {
        ffmpeg(&dir, arguments, name);
        let report = dir.json(&format!("ingest a.store {name} --title {name}"));
        let told = report["files"][0]["left_out"].as_array().unwrap();
        assert_eq!(told.first().unwrap_or(&json!("")), &json!(left_out), "{name}");
    }
    let server = dir.serve("");
    for (name, ..) in table {
        let source = dir.path(name).display().to_string();
        dir.ok(&format!("export a.store {name} out-{name}.mp4"));
        let export = dir.path(&format!("out-{name}.mp4")).display().to_string();
        let mp4 = format!("{}/t/{name}.mp4", server.origin);
        let hls = format!("{}/t/{name}/master.m3u8", server.origin);
        let [source, export, mp4, hls] = decode_each([&source, &export, &mp4, &hls]).map(sorted);
        for (way, mut played) in [("export", export), ("mp4", mp4), ("hls", hls)] {
            let mut source = source.clone();
            if (*name, way) == ("edited.mp4", "hls") {
                let own =
                    "-i edited.mp4 -c copy -f hls -hls_segment_type fmp4 -hls_playlist_type vod";
                let own = ffmpeg(&dir, own, "own.m3u8").display().to_string();
                let own = sorted(decode(&own));
                assert_same(
                    "edited.mp4, pictures, beside FFmpeg's HLS",
                    &own[..1],
                    &played[..1],
                    2,
                );
                from_the_edit_on(&mut source, &mut played);
            }
            assert_same(&format!("{name} by {way}"), &source, &played, 2);
        }
    }
    assert_eq!(server.stop(), Some(0));
}

/// FFmpeg heeds no edit list in fragments, its own neither: it shows what only decoding needs,
/// before the rest. The first frame of sound is cut short by the edit.
fn from_the_edit_on(source: &mut [Frames], played: &mut [Frames]) {
    for (source, played) in source.iter_mut().zip(played) {
        while played.frames.len() > source.frames.len() {
            played.behead();
        }
        source.behead();
        played.behead();
    }
}

/// Pictures at uneven times.
const SOME: &str = "select='not(mod(n\\,3))+not(mod(n\\,7))'";

#[test]
fn bad_films_are_refused_by_name_and_the_good_one_among_them_is_taken_in() {
    let dir = TestDir::with_store();
    let both = format!("{PICTURES} {SOUND} {X264} -c:a aac");
    let whole = ffmpeg(&dir, &format!("{both} -movflags +faststart"), "good.mp4");
    let whole = std::fs::read(whole).unwrap();
    dir.write("truncated.mp4", &whole[..whole.len() / 2]);
    let mpeg = format!("{PICTURES} {SOUND} -c:v mpeg2video -c:a pcm_s16le");
    for (name, arguments) in [
        ("truncated.mkv", both.as_str()),
        ("truncated.flac", &format!("{SOUND} -c:a flac")),
        ("truncated.mxf", &mpeg),
    ] {
        let whole = std::fs::read(ffmpeg(&dir, arguments, name)).unwrap();
        dir.write(name, &whole[..whole.len() / 2]);
    }
    dir.write("empty.mp4", "");
    dir.write("noise.mp4", vec![0xa5; 100_000]);
    let mut huge = b"\0\0\0\x18ftypisom\0\0\x02\0isomiso2\x7f\xff\xff\xffmoov".to_vec();
    huge.extend([0; 5000]);
    dir.write("huge-header.mp4", huge);
    dir.write("words.srt", "1\n00:00:00,000 --> 00:00:01,000\nWords\n");
    ffmpeg(&dir, "-i words.srt -c:s srt", "words.mkv");
    ffmpeg(&dir, &format!("-i good.mp4 {ENCRYPT}"), "locked.mp4");
    ffmpeg(&dir, "-i good.mp4 -map 0:v -c copy", "bare.h264");
    ffmpeg(&dir, &format!("{PICTURES} -frames:v 3 -c:v rawvideo -pix_fmt yuv420p"), "raw.avi");
    let table = [
        ("empty.mp4", "it is empty", ""),
        ("truncated.mp4", "it is damaged or cut short", "--allow-damaged"),
        ("truncated.mkv", "it is damaged or cut short", "--allow-damaged"),
        ("truncated.flac", "it ends after 1.", "--allow-damaged"),
        ("truncated.mxf", "it ends after 1.", "--allow-damaged"),
        ("noise.mp4", "FFmpeg cannot read it", "--as file"),
        ("huge-header.mp4", "neither pictures nor sound in it", "--as file"),
        ("words.mkv", "but subtitle stream 0 (subrip)", "--as file"),
        ("locked.mp4", "it is encrypted", "decrypt it first"),
        ("bare.h264", "not in the order in which they are shown, and have no times", "mkvmerge"),
        ("raw.avi", "uncompressed in the pixel format yuv420p", "convert it first"),
        (".", "it is not a regular file", "name one that is"),
    ];
    let before = holdings(&dir);
    for serving in [false, true] {
        let server = serving.then(|| dir.serve(""));
        for (name, reason, hint) in table {
            let run = dir.run(&format!("ingest a.store {name}"));
            let (error, advice) = run.err.split_once("\nhint: ").unwrap_or((&run.err, ""));
            assert_eq!((run.code, &*run.out), (Some(1), ""), "{name}: {}", run.err);
            let told = error.starts_with("error: ") && error.contains(reason);
            assert!(told && advice.contains(hint), "{name}, served: {serving}: {}", run.err);
        }
        assert_unchanged(&dir, &before, &format!("served: {serving}"));
        drop(server);
    }
    let names = table.map(|(name, ..)| name).join(" ");
    let run = dir.run(&format!("ingest a.store {names} good.mp4"));
    assert_eq!((run.code, run.err.matches("error: ").count()), (Some(1), table.len()));
    assert_eq!(dir.ok("ls a.store"), "good\n", "one bad file does not stop the others");
}

const ENCRYPT: &str = "-c copy -encryption_scheme cenc-aes-ctr \
     -encryption_key 76a6c65c5ea762046bd749a2e632ccbb -encryption_kid a7e61c373e219033c21091fa607bf3b8";

#[test]
fn corrupt_films_are_taken_in_and_play_or_are_refused_with_the_reason() {
    let dir = TestDir::with_store();
    let h264 = format!("{PICTURES} {SOUND} {X264} -c:a aac");
    let mpeg = format!("{PICTURES} {SOUND} -c:v mpeg2video -g 12 -bf 2 -c:a pcm_s16le");
    let sources = ["mp4", "mkv", "ts", "mxf"].map(|kind| {
        let arguments = if kind == "mxf" { &mpeg } else { &h264 };
        (kind, std::fs::read(ffmpeg(&dir, arguments, &format!("whole.{kind}"))).unwrap())
    });
    let before = holdings(&dir);
    let (mut taken, mut refused) = (0, 0);
    for seed in 0..CORRUPT {
        let mut random = fastrand::Rng::with_seed(seed);
        let (kind, whole) = &sources[random.usize(..sources.len())];
        let mut bytes = whole.clone();
        // Headers are where it hurts: at the front, in MP4 at the end.
        let near = [0..1500, bytes.len() - 3000..bytes.len(), 0..bytes.len()];
        for _ in 0..random.choice([1, 5, 50]).unwrap() {
            let place = random.choice(&near).unwrap().clone();
            let at = random.usize(place);
            let any = random.u8(..);
            bytes[at] = random.choice([0, 0xff, any, bytes[at] ^ 1 << (any % 8)]).unwrap();
        }
        dir.write(&format!("bad.{kind}"), bytes);
        let run = dir.run(&format!("ingest a.store bad.{kind} --json"));
        let report: Value = serde_json::from_str(&run.out).unwrap_or_default();
        let file = &report["files"][0];
        let context = format!("seed {seed}, {kind}: {}{}", run.out, run.err);
        if run.code == Some(0) {
            taken += 1;
            dir.ok("export a.store bad out.mov --destroy");
            dir.ok("rm a.store bad");
        } else {
            refused += 1;
            assert_eq!(
                (run.code, &file["error"]["code"]),
                (Some(1), &json!("refused")),
                "{context}"
            );
            let message = file["error"]["message"].as_str().unwrap();
            assert!(message.contains(&format!("bad.{kind} is not taken in: ")), "{context}");
            assert!(file["error"]["hint"].is_string(), "what to do about it: {context}");
        }
        assert_eq!(holdings(&dir), before, "{context}");
    }
    assert!(taken >= 5 && refused >= 5, "{taken} taken in, {refused} refused: no test of either");
    assert_unchanged(&dir, &before, "after all of them");
}

/// Some seconds' worth.
const CORRUPT: u64 = 30;
