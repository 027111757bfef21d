//! `VIDEO-RANGE`: players choose by it whether a screen can show a title, whatever the container
//! says of its colours beside the codec itself.

use crate::files::ADMITS_ALL;
use crate::program::TestDir;

/// A film: how FFmpeg makes it, and `VIDEO-RANGE`; empty: it is not stated.
const FILMS: &[(&str, &str, &str)] = &[
    ("pq-colr.mp4", "X265:transfer=smpte2084 -color_trc smpte2084 COLR", "PQ"),
    ("pq.mkv", "X265:transfer=smpte2084", "PQ"),
    ("pq.ts", "X265:transfer=smpte2084", "PQ"),
    ("pq-hev1-no-colr.mp4", "X265:transfer=smpte2084 -tag:v hev1", "PQ"),
    // The colours are in the codec's own header only.
    ("pq-no-colr.mp4", "X265:transfer=smpte2084", "PQ"),
    ("hlg.mkv", "X265:transfer=arib-std-b67", "HLG"),
    ("hlg-colr.mp4", "X265:transfer=arib-std-b67 -color_trc arib-std-b67 COLR", "HLG"),
    ("hlg-no-colr.mp4", "X265:transfer=arib-std-b67", "HLG"),
    // As broadcast: a transfer that old receivers know, and the preferred one in a message.
    ("hlg-preferred.ts", "X265:transfer=bt2020-10:atc-sei=18", "HLG"),
    ("sdr-colr.mp4", "X265:transfer=bt709 -color_trc bt709 COLR", "SDR"),
    ("sdr-no-colr.mp4", "X265:transfer=bt709", "SDR"),
    ("unknown-no-colr.mp4", "X265:bframes=0", ""),
    ("pq-av1.mkv", "-c:v libsvtav1 -preset 12 -color_trc smpte2084 COLR", "PQ"),
    (
        "hlg-vp9.webm",
        "-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -color_trc arib-std-b67",
        "HLG",
    ),
];

const SOURCE: &str = "-f lavfi -i testsrc2=s=160x96:r=25:d=0.4 -pix_fmt yuv420p10le";
const X265: &str = "-c:v libx265 -preset ultrafast -x265-params log-level=none:colorprim=bt2020:colormatrix=bt2020nc";

/// With these FFmpeg writes a `colr` box, too.
const COLR: &str = "-color_primaries bt2020 -colorspace bt2020nc";

#[test]
fn the_range_of_colours_is_stated_with_and_without_a_container_that_knows_it() {
    let dir = TestDir::with_store_of(96);
    for (name, how, _) in FILMS {
        let words = format!("{SOURCE} {}", how.replace("X265", X265).replace("COLR", COLR));
        let path = dir.encode(name, &words.split(' ').collect::<Vec<_>>());
        let bytes = std::fs::read(&path).expect("just made");
        let has_colr = bytes.windows(4).any(|it| it == b"colr");
        assert_eq!(has_colr, name.ends_with("-colr.mp4") && !name.contains("-no-"), "{name}");
        dir.ingest(&path, name);
    }
    let server = dir.serve(ADMITS_ALL);
    let stated = |name: &str| {
        let master = server.get(&format!("/t/{name}/master.m3u8"));
        let master = String::from_utf8(master).expect("a playlist is UTF-8");
        let value = master.split_once("VIDEO-RANGE=").map_or("", |(_, rest)| rest);
        value.split([',', '\n']).next().unwrap_or_default().to_owned()
    };
    let found: Vec<_> = FILMS.iter().map(|(name, ..)| (*name, stated(name))).collect();
    let wanted: Vec<_> =
        FILMS.iter().map(|(name, _, range)| (*name, (*range).to_owned())).collect();
    assert_eq!(found, wanted);
}
