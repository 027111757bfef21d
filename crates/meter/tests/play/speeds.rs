//! Viewers who change the speed: the title is opened again from where they are, in place of their
//! session, or goes on as before where that is refused.

use super::test_server::{Reply, TestServer};
use super::{ViewerOutcome, options, play, verdicts};
use std::time::Duration;
use tenuto_client::{PlayOptions, PlayReport};

/// A viewer who does this, with a server that answers the requests for admission from the second on
/// as `answer` says; the targets of these requests, each without its time in the title.
fn watch(
    behaviour: &str,
    path: &str,
    answer: impl Fn(usize) -> Option<Reply> + Send + Sync + 'static,
) -> (PlayReport, Vec<String>) {
    let server = TestServer::open(move |_, number| number.filter(|n| *n > 0).and_then(&answer));
    // A film of a second: a viewer buffers little of it, so that it fetches after each change.
    let mut options = options(&server, path, 1);
    options.player.buffer = Duration::from_millis(1);
    let report = play(&PlayOptions { behaviour: behaviour.parse().unwrap(), ..options }).unwrap();
    let is_admission = |target: &&String| target.contains("/master.m3u8");
    let timeless = |target: &String| {
        let mut pairs = target.split(['?', '&']);
        let path = pairs.next().unwrap().to_owned();
        pairs.fold(path, |all, pair| match pair.split_once('=') {
            Some((name @ ("start" | "stop"), _)) => format!("{all} {name}"),
            _ => format!("{all} {pair}"),
        })
    };
    (report, server.asked().iter().filter(is_admission).map(timeless).collect())
}

#[test]
fn the_title_is_opened_again_from_where_the_viewer_is() {
    let path = "/t/film/master.m3u8?token=a";
    // The actions, the requests for admission after the first.
    let rows: [(&str, &[&str]); 3] = [
        ("300ms speed 0.5", &["start speed=0.5 s=0"]),
        ("100ms speed 2; 300ms speed -1.5", &["start speed=2 s=0", "stop speed=-1.5 s=1"]),
        ("100ms speed -2; 200ms pause; 300ms speed 1", &["stop speed=-2 s=0", "start speed=1 s=1"]),
    ];
    for (behaviour, wanted) in rows {
        // A viewer who has paused does not come to the end.
        let stop = format!("{behaviour}; 60s stop");
        let paused = behaviour.contains("pause");
        let behaviour = if paused { format!("{behaviour}; 400ms resume") } else { stop };
        let (report, asked) = watch(&behaviour, path, |_| None);
        assert_eq!(verdicts(&report), [(ViewerOutcome::Admitted, "finished")], "{behaviour}");
        let full: Vec<_> =
            wanted.iter().map(|query| format!("/t/film/master.m3u8 token=a {query}")).collect();
        assert_eq!(asked[1..], full, "{behaviour}");
        assert_eq!(report.viewers[0].refused_speeds, 0);
    }
}

#[test]
fn a_refused_speed_leaves_the_viewer_as_it_was_and_an_error_ends_it() {
    let refused = |_: usize| Some(Reply::refusal("disk", 9));
    let (report, asked) = watch("300ms speed 4", "/t/film/master.m3u8", refused);
    assert_eq!(verdicts(&report), [(ViewerOutcome::Admitted, "finished")], "{asked:?}");
    assert_eq!((report.viewers[0].refused_speeds, report.totals.refused_speeds), (1, 1));
    assert_eq!((report.totals.refused, report.viewers[0].pieces >= 10), (0, true));

    // A file, which is not played backwards.
    let forwards = |_: usize| {
        Some(Reply::new(
            400,
            "",
            r#"{"error":"forwards-only","message":"it has pictures forwards"}"#,
        ))
    };
    let (report, asked) = watch("300ms speed -2", "/t/film/master.m3u8", forwards);
    assert_eq!(verdicts(&report), [(ViewerOutcome::Admitted, "finished")], "{asked:?}");
    assert_eq!(report.viewers[0].refused_speeds, 1);

    let bad = |_: usize| Some(Reply::new(400, "", r#"{"message":"no such speed"}"#));
    let (report, _) = watch("300ms speed 4", "/t/film/master.m3u8", bad);
    assert_eq!(verdicts(&report)[0].0, ViewerOutcome::Failed);
    let error = report.viewers[0].error.as_ref().unwrap();
    assert!(error.contains("no such speed"), "{error}");
}

#[test]
fn a_server_without_sessions_has_one_speed() {
    let server = TestServer::open(|target, _| {
        let playlist = "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\na.ts\n#EXTINF:1,\nb.ts\n\
                        #EXT-X-ENDLIST\n";
        match target {
            "/a.m3u8" => Some(Reply::new(200, "", playlist)),
            _ => Some(Reply::segment(100)),
        }
    });
    let behaviour = "500ms speed 2".parse().unwrap();
    let report = play(&PlayOptions { behaviour, ..options(&server, "/a.m3u8", 1) }).unwrap();
    let viewer = &report.viewers[0];
    assert_eq!(viewer.outcome, ViewerOutcome::Failed);
    assert!(viewer.error.as_ref().unwrap().contains("only a Tenuto server"), "{:?}", viewer.error);
}
