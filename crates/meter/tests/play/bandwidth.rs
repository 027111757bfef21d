//! Viewers with a slow access: they read at its rate, and stall where that is too little.

use super::test_server::{Reply, TestServer};
use super::{ViewerOutcome, options, play, verdicts};
use std::time::Duration;
use tenuto_client::{PlayOptions, PlayReport};
use units::BitRate;

/// A second of media of 400 kb/s in five segments, over an access of this rate.
fn watch(bandwidth: Option<BitRate>) -> PlayReport {
    let server = TestServer::open(|target, _| {
        let pieces: String = (0..5).map(|n| format!("#EXTINF:0.2,\n{n}.ts\n")).collect();
        let playlist = format!("#EXTM3U\n#EXT-X-TARGETDURATION:1\n{pieces}#EXT-X-ENDLIST\n");
        match target {
            "/a.m3u8" => Some(Reply::new(200, "", playlist)),
            _ => Some(Reply::segment(10_000)),
        }
    });
    let mut options = options(&server, "/a.m3u8", 1);
    options.player.start = Duration::from_millis(200);
    options.player.dead_band = Duration::from_millis(50);
    play(&PlayOptions { bandwidth, ..options }).unwrap()
}

#[test]
fn a_viewer_reads_at_the_rate_of_its_access() {
    let fast = watch(None);
    assert_eq!(verdicts(&fast), [(ViewerOutcome::Admitted, "finished")]);
    assert_eq!((fast.totals.bytes, fast.parameters.bandwidth_bits_per_s), (50_000, None));

    let slow = watch(Some(BitRate(200_000)));
    assert_eq!(verdicts(&slow), [(ViewerOutcome::Admitted, "finished")]);
    assert_eq!((slow.totals.bytes, slow.parameters.bandwidth_bits_per_s), (50_000, Some(200_000)));
    // Two seconds for 50 kB, less what the bucket holds at the start; a second of media.
    assert!(slow.seconds > 1.8, "{}", slow.seconds);
    assert!(slow.totals.stalls > 0 && slow.totals.stalled_s > 0.3, "{:?}", slow.totals);
}
