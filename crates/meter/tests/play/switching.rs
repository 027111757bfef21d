//! Players who change between renditions: what they ask for, and what is counted of it.
//!
//! Pieces are far larger than their playlists say, so that the way is wide enough for the best of
//! them on a slow machine, too; which rendition is taken where it is not is tried in virtual time,
//! in `player`.

use super::stage::{Reply, Stage};
use super::{ViewerOutcome, options};
use meter::capacity::HoldRule;
use meter::log::LogSink;
use meter::viewer::{Counted, PlayOptions, PlayReport, ViewerSample, count};
use player::AbrRule;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The bytes of a segment.
const BYTES: usize = 2_000_000;

/// Plays until so many pieces are here, which is long before they have been shown.
fn counted(options: &PlayOptions, pieces: usize) -> Counted {
    let stop = AtomicBool::new(false);
    let mut enough = |sample: &ViewerSample| {
        let all = sample.bytes >= (pieces * BYTES) as u64 || sample.failed > 0;
        stop.store(all, Ordering::Relaxed);
    };
    let duration = Some(Duration::from_secs(60));
    let options = PlayOptions { duration, ..options.clone() };
    count(&options, &stop, &mut LogSink::none(), &mut enough).unwrap()
}

/// A master playlist of these variants: what they take, and what they are called.
fn master(variants: &[(u64, &str)]) -> Reply {
    let line =
        |(bits, name): &(u64, &str)| format!("#EXT-X-STREAM-INF:BANDWIDTH={bits}\n{name}.m3u8\n");
    let lines: String = variants.iter().map(line).collect();
    Reply::file(format!("#EXTM3U\n{lines}").into_bytes())
}

/// A playlist of `pieces` segments of four seconds, with a header.
fn list(name: &str, pieces: usize) -> Reply {
    let piece = |number| format!("#EXTINF:4,\n{name}/{number}.m4s\n");
    let all: String = (0..pieces).map(piece).collect();
    let text = format!(
        "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-MAP:URI=\"{name}/init.mp4\"\n{all}#EXT-X-ENDLIST\n"
    );
    Reply::file(text.into_bytes())
}

/// `low` with five pieces and `high` with as many as told, and a master playlist for each who
/// knocks.
fn ladder(high: usize, offer: fn(usize) -> &'static [(u64, &'static str)]) -> Stage {
    Stage::open(move |target, knock| {
        let name = target.rsplit('/').next().unwrap();
        Some(match (name, knock) {
            (_, Some(knock)) => master(offer(knock)),
            ("low.m3u8", _) => list("low", 5),
            ("high.m3u8", _) => list("high", high),
            ("init.mp4", _) => Reply::segment(30),
            _ => Reply::segment(BYTES),
        })
    })
}

fn hls_js(stage: &Stage, path: &str, viewers: u32) -> PlayOptions {
    PlayOptions { switching: AbrRule::HlsJs, ..options(stage, path, viewers) }
}

/// The rate and the number of received segments of each rendition.
fn renditions(report: &PlayReport) -> Vec<(u64, u64)> {
    report.renditions.iter().map(|one| (one.bits_per_s, one.pieces)).collect()
}

const BOTH: &[(u64, &str)] = &[(600_000, "low"), (2_000_000, "high")];

#[test]
fn a_player_finds_its_way_wide_and_goes_up() {
    let stage = ladder(5, |_| BOTH);
    let counted = counted(&hls_js(&stage, "/l/master.m3u8", 1), 5);
    let wanted = "master.m3u8 low.m3u8 low/init.mp4 low/0.m4s high.m3u8 high/init.mp4 high/1.m4s \
                  high/2.m4s high/3.m4s high/4.m4s";
    let wanted: Vec<String> = wanted.split(' ').map(|name| format!("/l/{name}")).collect();
    assert_eq!(stage.asked(), wanted);
    let totals = &counted.report.totals;
    assert_eq!(renditions(&counted.report), [(600_000, 1), (2_000_000, 4)]);
    assert_eq!((totals.switches_up, totals.switches_down, totals.below_best), (1, 0, 0));
    assert_eq!(totals.mean_rendition_bits_per_s, Some(1_720_000.0));
    assert_eq!(totals.share_of_best, Some(0.86));
    assert!(HoldRule::Strict.holds(&counted.outcome), "{:?}", counted.outcome);
}

#[test]
fn who_never_changes_stays_with_what_is_named_first() {
    let stage = ladder(5, |_| BOTH);
    let counted = counted(&options(&stage, "/l/master.m3u8", 1), 5);
    assert_eq!(renditions(&counted.report), [(600_000, 5)]);
    assert_eq!(counted.report.totals.share_of_best, Some(1.0), "it wants no more");
    assert!(stage.asked().iter().all(|target| !target.contains("high")), "{:?}", stage.asked());
}

#[test]
fn who_is_offered_less_than_others_is_not_held() {
    // As a server does that lists its best first.
    const BEST_FIRST: &[(u64, &str)] = &[(2_000_000, "high"), (600_000, "low")];
    for switching in [AbrRule::Never, AbrRule::HlsJs] {
        let stage = ladder(5, |knock| &BEST_FIRST[knock.min(1)..]);
        let options = PlayOptions { switching, ..options(&stage, "/l/master.m3u8", 2) };
        let counted = counted(&options, 10);
        let below: Vec<u64> =
            counted.report.viewers.iter().map(|viewer| viewer.below_best).collect();
        assert_eq!(below.iter().sum::<u64>(), 5, "all of one of them, {switching:?}: {below:?}");
        assert_eq!((counted.outcome.below_best, counted.outcome.late_rounds), (5, 5));
        assert_eq!(counted.outcome.late_by_storage(), 0);
        for rule in [HoldRule::Strict, HoldRule::OneLateRoundOf100] {
            assert!(!rule.holds(&counted.outcome), "{rule:?}");
        }
    }
}

#[test]
fn renditions_that_are_cut_elsewhere_are_told() {
    let stage = ladder(4, |_| BOTH);
    let counted = counted(&hls_js(&stage, "/l/master.m3u8", 1), 5);
    let viewer = &counted.report.viewers[0];
    let told = viewer.error.as_ref().unwrap();
    assert_eq!(viewer.outcome, ViewerOutcome::Failed);
    assert!(told.contains("high.m3u8: this rendition is cut into other pieces"), "{told}");
}

/// A header of 700 bytes, an index of two pieces of four seconds, and these.
fn indexed() -> Vec<u8> {
    let size = u32::try_from(BYTES).unwrap();
    let sidx = u32::from_be_bytes(*b"sidx");
    let words = [68, sidx, 0, 1, 1000, 0, 0, 2, size, 4000, 0, size, 4000, 0, 0, 0, 0];
    let index = words.iter().flat_map(|word: &u32| word.to_be_bytes()).collect();
    [vec![7; 700], index, vec![7; 2 * BYTES]].concat()
}

#[test]
fn representations_of_a_manifest_are_changed_between() {
    let stage = Stage::open(|target, _| {
        let representation = |name: &str, bits: u64| {
            format!(
                "<Representation id=\"{name}\" bandwidth=\"{bits}\"><BaseURL>{name}</BaseURL>\
                 <SegmentBase indexRange=\"700-767\"><Initialization range=\"0-699\"/></SegmentBase>\
                 </Representation>"
            )
        };
        let text = format!(
            "<MPD mediaPresentationDuration=\"PT8S\"><Period><AdaptationSet mimeType=\"video/mp4\">{}{}\
             </AdaptationSet></Period></MPD>",
            representation("high.bin", 5_100_000),
            representation("low.bin", 600_000)
        );
        let manifest = target.ends_with(".mpd");
        Some(Reply::file(if manifest { text.into_bytes() } else { indexed() }))
    });
    let counted = counted(&hls_js(&stage, "/film.mpd", 1), 2);
    // Of each the index, the header and a piece.
    let wanted = ["film.mpd", "low.bin", "low.bin", "low.bin", "high.bin", "high.bin", "high.bin"];
    assert_eq!(stage.asked(), wanted.map(|name| format!("/{name}")));
    assert_eq!(renditions(&counted.report), [(600_000, 1), (5_100_000, 1)]);
    assert_eq!(counted.report.totals.below_best, 0);
}
