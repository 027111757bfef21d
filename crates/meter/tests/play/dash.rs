//! DASH manifests made by FFmpeg, and one written by hand for a file with an index, played from
//! real files: all media arrives once, and the saved file has all its pictures.

use super::test_server::{Reply, TestServer};
use super::{ViewerOutcome, options, place, play, verdicts};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use tenuto_client::{PlayOptions, View};
use units::Hinted;

/// The number of pictures: two seconds in five pieces, played in half a second.
const PICTURES: &str = "50";

fn run(program: &str, dir: &Path, arguments: &str) -> String {
    let output = Command::new(program)
        .args(arguments.split(' '))
        .current_dir(dir)
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}; `make deps` installs it"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

const FILM: &str = "-v error -f lavfi -i testsrc=s=160x120:r=25:d=2 -f lavfi -i sine=d=2 \
                    -c:v mpeg4 -g 10 -c:a aac -shortest";

/// Plays `film.mpd` of a directory; returns the requests, and the bytes received.
fn played(dir: &Path) -> (Vec<String>, u64) {
    let served = dir.to_owned();
    let server = TestServer::open(move |target, _| {
        let name = target.split('?').next().unwrap().trim_start_matches('/');
        std::fs::read(served.join(name)).ok().map(Reply::file)
    });
    let report = play(&PlayOptions {
        save: Some(dir.join("saved.mp4")),
        view: View { speed: Some(4.0), ..View::default() },
        ..options(&server, "/film.mpd", 1)
    })
    .unwrap();
    assert_eq!(verdicts(&report), [(ViewerOutcome::Admitted, "finished")], "{report:#?}");
    let saved = report.saved[0].file_name().unwrap().to_str().unwrap();
    let count = "-v error -count_frames -select_streams v -of csv=p=0 \
                 -show_entries stream=nb_read_frames";
    assert_eq!(run("ffprobe", dir, &format!("{count} {saved}")).trim(), PICTURES);
    (server.asked(), report.viewers[0].bytes)
}

/// The number of requested files, without the manifest, and their bytes.
fn asked_for(dir: &Path, asked: &[String]) -> (usize, u64) {
    let names = asked[1..].iter().map(|target| target.split('?').next().unwrap());
    let names: BTreeSet<&str> = names.map(|target| target.trim_start_matches('/')).collect();
    let sizes = names.iter().map(|name| dir.join(name).metadata().unwrap().len());
    (names.len(), sizes.sum())
}

fn made(name: &str, how: &str) -> PathBuf {
    let dir = place(name);
    run("ffmpeg", &dir, &format!("{FILM} -seg_duration 0.4 {how} -f dash film.mpd"));
    dir
}

#[test]
fn segments_by_time_and_by_number_are_played() {
    for (name, how) in [("time", "-use_timeline 1"), ("number", "-use_timeline 0")] {
        let dir = made(name, how);
        let (asked, came) = played(&dir);
        let (files, media) = asked_for(&dir, &asked);
        assert_eq!(came, media, "{name}: {asked:?}");
        // Two headers, and five pieces each of video and audio. The audio may be a little longer
        // than the manifest declares.
        assert!((12..=13).contains(&files) && asked.len() == files + 1, "{name}: {asked:?}");
        std::fs::remove_dir_all(dir).unwrap();
    }
}

#[test]
fn a_list_of_ranges_is_played() {
    let dir = made("list", "-single_file 1");
    let (asked, came) = played(&dir);
    assert_eq!((2, came), asked_for(&dir, &asked), "{asked:?}");
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_file_with_an_index_is_played() {
    let dir = place("sidx");
    let cut = "-movflags +dash+global_sidx -an film-video.mp4";
    run("ffmpeg", &dir, &format!("{FILM} {cut}"));
    let film = std::fs::read(dir.join("film-video.mp4")).unwrap();
    let at = film.windows(4).position(|four| four == b"sidx").unwrap() - 4;
    let size = u32::from_be_bytes(film[at..at + 4].try_into().unwrap());
    let end = at + usize::try_from(size).unwrap();
    let manifest = format!(
        "<MPD type=\"static\" mediaPresentationDuration=\"PT2S\"><Period>\
         <AdaptationSet mimeType=\"video/mp4\"><Representation id=\"v\" bandwidth=\"1\">\
         <BaseURL>film-video.mp4</BaseURL><SegmentBase indexRange=\"{at}-{}\">\
         <Initialization range=\"0-{}\"/></SegmentBase>\
         </Representation></AdaptationSet></Period></MPD>",
        end - 1,
        at - 1
    );
    std::fs::write(dir.join("film.mpd"), manifest).unwrap();
    let (asked, came) = played(&dir);
    // The index is no media; a random access index (`mfra`) may follow the pieces.
    let behind = film.windows(4).rposition(|four| four == b"mfra").map_or(film.len(), |at| at - 4);
    assert_eq!(came, (behind - (end - at)) as u64, "{asked:?}");
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn an_invalid_manifest_is_reported_with_the_reason() {
    let cases = [
        ("<MPD type=\"dynamic\"/>", "(it is of type dynamic; live"),
        (
            "<MPD><Period xlink:href=\"film.mpd\" xmlns:xlink=\"http://www.w3.org/1999/xlink\"/></MPD>",
            "xlink",
        ),
        ("no manifest", "not a DASH manifest"),
    ];
    for (text, wanted) in cases {
        let server = TestServer::open(move |_, _| Some(Reply::file(text.as_bytes().to_vec())));
        let error = play(&options(&server, "/film.mpd", 1)).unwrap_err().one_line();
        assert!(error.contains(wanted), "{error}");
    }
}
