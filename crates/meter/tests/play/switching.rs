//! Players that change between renditions: their requests, and the counts.
//!
//! Segments are far larger than their playlists declare, so that the throughput suffices for the
//! best rendition also on a slow machine; the choice with less throughput is tested in virtual time
//! in `player`.

use super::test_server::{Reply, TestServer};
use super::{ViewerOutcome, options};
use meter::HoldRule;
use meter::operations::LogSink;
use meter::viewers::{Counted, count};
use player::AbrRule;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tenuto_client::{PlayOptions, PlayReport, ViewerSample};

/// The bytes of a segment.
const BYTES: usize = 2_000_000;

/// Plays until this number of pieces has arrived, which is long before they are shown.
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

/// A multivariant playlist of these variants: their rates and names.
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

/// A server with `low` in five pieces and `high` in `high`, and a multivariant playlist for each
/// admission request.
fn ladder(high: usize, offer: fn(usize) -> &'static [(u64, &'static str)]) -> TestServer {
    TestServer::open(move |target, admission| {
        let name = target.rsplit('/').next().unwrap();
        Some(match (name, admission) {
            (_, Some(admission)) => master(offer(admission)),
            ("low.m3u8", _) => list("low", 5),
            ("high.m3u8", _) => list("high", high),
            ("init.mp4", _) => Reply::segment(30),
            _ => Reply::segment(BYTES),
        })
    })
}

fn hls_js(server: &TestServer, path: &str, viewers: u32) -> PlayOptions {
    PlayOptions { switching: AbrRule::HlsJs, ..options(server, path, viewers) }
}

/// The rate and the number of received segments of each rendition.
fn renditions(report: &PlayReport) -> Vec<(u64, u64)> {
    report.renditions.iter().map(|one| (one.bits_per_s, one.pieces)).collect()
}

const BOTH: &[(u64, &str)] = &[(600_000, "low"), (2_000_000, "high")];

#[test]
fn a_player_measures_its_throughput_and_changes_up() {
    let server = ladder(5, |_| BOTH);
    let counted = counted(&hls_js(&server, "/l/master.m3u8", 1), 5);
    let wanted = "master.m3u8 low.m3u8 low/init.mp4 low/0.m4s high.m3u8 high/init.mp4 high/1.m4s \
                  high/2.m4s high/3.m4s high/4.m4s";
    let wanted: Vec<String> = wanted.split(' ').map(|name| format!("/l/{name}")).collect();
    assert_eq!(server.asked(), wanted);
    let totals = &counted.report.totals;
    assert_eq!(renditions(&counted.report), [(600_000, 1), (2_000_000, 4)]);
    assert_eq!((totals.switches_up, totals.switches_down, totals.below_best), (1, 0, 0));
    assert_eq!(totals.mean_rendition_bits_per_s, Some(1_720_000.0));
    assert_eq!(totals.share_of_best, Some(0.86));
    assert!(HoldRule::Strict.holds(&counted.outcome), "{:?}", counted.outcome);
}

#[test]
fn a_player_without_changes_stays_with_the_first_named() {
    let server = ladder(5, |_| BOTH);
    let counted = counted(&options(&server, "/l/master.m3u8", 1), 5);
    assert_eq!(renditions(&counted.report), [(600_000, 5)]);
    assert_eq!(counted.report.totals.share_of_best, Some(1.0), "it wants no more");
    assert!(server.asked().iter().all(|target| !target.contains("high")), "{:?}", server.asked());
}

#[test]
fn a_viewer_who_is_offered_less_than_others_is_not_held() {
    // Like a server that lists its best rendition first.
    const BEST_FIRST: &[(u64, &str)] = &[(2_000_000, "high"), (600_000, "low")];
    for switching in [AbrRule::Never, AbrRule::HlsJs] {
        let server = ladder(5, |admission| &BEST_FIRST[admission.min(1)..]);
        let options = PlayOptions { switching, ..options(&server, "/l/master.m3u8", 2) };
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
fn renditions_with_different_boundaries_are_reported() {
    let server = ladder(4, |_| BOTH);
    let counted = counted(&hls_js(&server, "/l/master.m3u8", 1), 5);
    let viewer = &counted.report.viewers[0];
    let told = viewer.error.as_ref().unwrap();
    assert_eq!(viewer.outcome, ViewerOutcome::Failed);
    assert!(
        told.contains("high.m3u8: the segments of this rendition have other boundaries"),
        "{told}"
    );
}

/// A header of 700 bytes, an index of two pieces of four seconds, and the pieces.
fn indexed() -> Vec<u8> {
    let size = u32::try_from(BYTES).unwrap();
    let sidx = u32::from_be_bytes(*b"sidx");
    let words = [68, sidx, 0, 1, 1000, 0, 0, 2, size, 4000, 0, size, 4000, 0, 0, 0, 0];
    let index = words.iter().flat_map(|word: &u32| word.to_be_bytes()).collect();
    [vec![7; 700], index, vec![7; 2 * BYTES]].concat()
}

#[test]
fn players_change_between_the_representations_of_a_manifest() {
    let server = TestServer::open(|target, _| {
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
    let counted = counted(&hls_js(&server, "/film.mpd", 1), 2);
    // Each requests the index, the header and a piece.
    let wanted = ["film.mpd", "low.bin", "low.bin", "low.bin", "high.bin", "high.bin", "high.bin"];
    assert_eq!(server.asked(), wanted.map(|name| format!("/{name}")));
    assert_eq!(renditions(&counted.report), [(600_000, 1), (5_100_000, 1)]);
    assert_eq!(counted.report.totals.below_best, 0);
}
