//! Viewers with a small scripted server: the counts and the messages.
//!
//! No test asserts how long something took; a scripted delay is many times longer than any delay of
//! the machine.

mod bandwidth;
mod dash;
mod failover;
mod rtsp;
mod secure;
#[path = "../secured/mod.rs"]
mod secured;
mod speeds;
mod switching;
mod test_server;

use meter::operations::Record;
use meter::viewers::count;
use player::PlayerOptions;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tenuto_client::{Arrivals, ClientError, Form, PlayOptions, PlayReport, ViewerOutcome};
use test_server::{Reply, TestServer, media_mp4};
use units::Hinted;

fn options(server: &TestServer, path: &str, viewers: u32) -> PlayOptions {
    // The film is shorter than the usual start buffer, and this machine may be busy.
    let player = PlayerOptions {
        start: Duration::ZERO,
        dead_band: Duration::from_millis(300),
        ..PlayOptions::default().player
    };
    PlayOptions { urls: vec![server.url(path)], viewers, player, ..PlayOptions::default() }
}

fn play(options: &PlayOptions) -> Result<PlayReport, ClientError> {
    tenuto_client::play(options, &AtomicBool::new(false), &mut |_| {})
}

/// The outcomes and final states of the viewers, in order of arrival.
fn verdicts(report: &PlayReport) -> Vec<(ViewerOutcome, &str)> {
    report.viewers.iter().map(|viewer| (viewer.outcome, viewer.stage.as_str())).collect()
}

/// A directory for the files of one test.
fn place(name: &str) -> PathBuf {
    let place = std::env::temp_dir().join(format!("tenuto-play-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&place).unwrap();
    place
}

#[test]
fn a_title_is_played_and_counted_completely() {
    let server = TestServer::open(|_, _| None);
    let place = place("hls");
    let report = play(&PlayOptions {
        save: Some(place.join("film.mp4")),
        ..options(&server, "/t/film/master.m3u8", 3)
    })
    .unwrap();
    assert_eq!(verdicts(&report), [(ViewerOutcome::Admitted, "finished"); 3]);
    // Two headers, and five segments each of video and audio.
    let bytes = 2 * 30 + 5 * (1000 + 100);
    let counted: Vec<_> = report.viewers.iter().map(|v| (v.pieces, v.bytes, v.stalls)).collect();
    assert_eq!(counted, [(10, bytes, 0); 3]);
    assert_eq!((report.totals.admitted, report.totals.finished, report.complete), (3, 3, true));
    assert_eq!(report.startup_ms.count, 3);
    assert_eq!(report.viewers[0].drift.pieces, 5);
    // The saved files consist of headers and segments in order.
    assert_eq!(report.saved, [place.join("film.video.mp4"), place.join("film.audio.mp4")]);
    let saved = report.saved.iter().map(|path| std::fs::read(path).unwrap());
    assert_eq!(saved.map(|file| file.len()).collect::<Vec<_>>(), [30 + 5000, 30 + 500]);
    // Each viewer's requests carry the token of its admission.
    let asked = server.asked();
    for viewer in 0..3 {
        assert!(asked.contains(&format!("/t/film/0/4.m4s?s={viewer}")), "{asked:?}");
    }
    std::fs::remove_dir_all(place).unwrap();
}

#[test]
fn the_report_survives_json() {
    let server =
        TestServer::open(|_, admission| (admission == Some(1)).then(|| Reply::refusal("disk", 3)));
    let report = play(&options(&server, "/t/film/master.m3u8", 2)).unwrap();
    let text = serde_json::to_string(&report).unwrap();
    let mut again: PlayReport = serde_json::from_str(&text).unwrap();
    // Sums of floating-point numbers may lose their last digit.
    again.totals.stalled_s = report.totals.stalled_s;
    assert_eq!(serde_json::to_string(&again).unwrap(), text);
    assert!(text.contains(r#""outcome":"refused""#) && text.contains(r#""resource":"disk""#));
}

#[test]
fn a_refusal_is_reported_with_its_reason() {
    let server = TestServer::open(|_, admission| {
        (admission >= Some(2)).then(|| Reply::refusal("memory", 7))
    });
    let report = play(&options(&server, "/t/film/master.m3u8", 4)).unwrap();
    assert_eq!((report.totals.admitted, report.totals.refused), (2, 2));
    assert_eq!(report.totals.refused_by.get("memory"), Some(&2));
    let refused = report.viewers.iter().find(|v| v.outcome == ViewerOutcome::Refused).unwrap();
    let refusal = refused.refusal.as_ref().unwrap();
    assert_eq!(refusal.retry_after_s, Some(7));
    assert_eq!(refusal.reason, "no room");
    assert_eq!((refused.attempts, refused.stage.as_str()), (1, "none"));
}

#[test]
fn a_refused_viewer_retries_after_the_given_time() {
    let server =
        TestServer::open(|_, admission| (admission == Some(0)).then(|| Reply::refusal("disk", 0)));
    let report =
        play(&PlayOptions { retry: true, ..options(&server, "/t/film/master.m3u8", 1) }).unwrap();
    assert_eq!(verdicts(&report), [(ViewerOutcome::Admitted, "finished")]);
    let viewer = &report.viewers[0];
    assert_eq!((viewer.attempts, viewer.refusal.is_some()), (2, true));
}

#[test]
fn a_viewer_that_is_refused_for_ever_does_not_retry() {
    let server = TestServer::open(|_, admission| admission.map(|_| Reply::refusal_for_ever()));
    let report =
        play(&PlayOptions { retry: true, ..options(&server, "/t/film/master.m3u8", 1) }).unwrap();
    let viewer = &report.viewers[0];
    assert_eq!((viewer.outcome, viewer.attempts), (ViewerOutcome::Refused, 1));
    let refusal = viewer.refusal.as_ref().unwrap();
    assert_eq!((refusal.cause.as_deref(), refusal.retry_after_s), (Some("title"), None));
    assert_eq!(refusal.reason, "too fast for this disk");
}

#[test]
fn a_late_segment_is_one_stall_and_drift() {
    let server = TestServer::open(|target, _| {
        // Play-out reaches this segment after 0.6 s.
        target.starts_with("/t/film/0/3.m4s").then(|| Reply::segment(1000).after_ms(2500))
    });
    let report = play(&options(&server, "/t/film/master.m3u8", 1)).unwrap();
    let viewer = &report.viewers[0];
    assert_eq!((viewer.stalls, viewer.stage.as_str()), (1, "finished"));
    assert!(viewer.stalled_ms > 500.0 && viewer.least_margin_ms.unwrap() < -500.0, "{viewer:?}");
    // The two pieces after the stall are late by it, and consecutive.
    let drift = &viewer.drift;
    assert!(drift.adf_ms >= 2.0 * viewer.stalled_ms - 0.01, "{drift:?}");
    assert!(drift.cdf_ms >= 2.0 * viewer.stalled_ms - 0.01, "{drift:?}");
    assert_eq!(report.samples.last().unwrap().stalls, 1);
}

/// Due pieces, late pieces, rounds with a late piece, and late pieces by the log alone.
fn counted(server: &TestServer, path: &str, viewers: u32) -> (u64, u64, u64, u64) {
    let mut log: Vec<Record> = Vec::new();
    let options = options(server, path, viewers);
    let counted = count(&options, &AtomicBool::new(false), &mut log, &mut |_| {}).unwrap();
    let outcome = counted.outcome;
    assert_eq!(outcome.streams.len(), counted.report.viewers.len());
    assert_eq!(outcome.reads.operations, log.len() as u64);
    let bytes: u64 = log.iter().map(|record| u64::from(record.bytes)).sum();
    assert_eq!(outcome.bytes().0, bytes);
    let by_second: u64 = outcome.seconds.iter().map(|second| second.late).sum();
    assert_eq!(by_second, outcome.late);
    let late = log.iter().filter(|record| record.is_late()).count() as u64;
    (outcome.frames, outcome.late, outcome.late_rounds, late)
}

#[test]
fn viewers_are_counted_as_streams() {
    let fine = TestServer::open(|_, _| None);
    assert_eq!(counted(&fine, "/t/film/master.m3u8", 3), (15, 0, 0, 0));

    let slow = TestServer::open(|target, _| {
        target.starts_with("/t/film/0/3.m4s").then(|| Reply::segment(1000).after_ms(2500))
    });
    assert_eq!(counted(&slow, "/t/film/master.m3u8", 1), (5, 1, 1, 1));

    let full =
        TestServer::open(|_, admission| (admission == Some(1)).then(|| Reply::refusal("disk", 1)));
    let (_, late, rounds, by_log) = counted(&full, "/t/film/master.m3u8", 2);
    assert_eq!((late, rounds, by_log), (1, 1, 0), "a refused viewer saw nothing");
}

#[test]
fn a_segment_with_a_503_is_requested_again() {
    let busy = AtomicBool::new(true);
    let server = TestServer::open(move |target, _| {
        let this = target.starts_with("/t/film/0/1.m4s") && busy.swap(false, Ordering::Relaxed);
        this.then(|| Reply::refusal("disk", 0))
    });
    let report = play(&options(&server, "/t/film/master.m3u8", 1)).unwrap();
    assert_eq!(verdicts(&report), [(ViewerOutcome::Admitted, "finished")]);
    assert_eq!((report.viewers[0].put_off, report.viewers[0].pieces), (1, 10));
}

#[test]
fn a_viewer_that_always_gets_503_gives_up() {
    let server = TestServer::open(|target, _| {
        target.starts_with("/t/film/0/1.m4s").then(|| Reply::refusal("disk", 0))
    });
    let report = play(&options(&server, "/t/film/master.m3u8", 1)).unwrap();
    let viewer = &report.viewers[0];
    assert_eq!((viewer.outcome, viewer.stage.as_str()), (ViewerOutcome::Failed, "stalled"));
    assert!(viewer.error.as_ref().unwrap().contains("answered 503"), "{:?}", viewer.error);
}

#[test]
fn a_progressive_file_arrives_whole_through_ranges_and_redirects() {
    let server = TestServer::open(|_, _| None);
    let place = place("progressive");
    let report = play(&PlayOptions {
        save: Some(place.join("film.mp4")),
        ..options(&server, "/t/film.mp4", 2)
    })
    .unwrap();
    assert_eq!(verdicts(&report), [(ViewerOutcome::Admitted, "finished"); 2]);
    assert_eq!(report.viewers[0].bytes, media_mp4().len() as u64);
    assert_eq!(report.saved, [place.join("film.mp4")]);
    assert!(std::fs::read(&report.saved[0]).unwrap() == media_mp4(), "not the same bytes");
    let asked = server.asked();
    assert_eq!(asked.iter().filter(|target| *target == "/t/film.mp4").count(), 2, "{asked:?}");
    std::fs::remove_dir_all(place).unwrap();
}

#[test]
fn a_servers_root_stands_for_all_its_titles() {
    let server = TestServer::open(|_, _| None);
    let report = play(&options(&server, "", 4)).unwrap();
    assert_eq!((report.parameters.titles, report.totals.finished), (2, 4));
    let urls: Vec<&str> = report.viewers.iter().map(|viewer| viewer.url.as_str()).collect();
    let title = |name| server.url(&format!("/t/{name}/master.m3u8"));
    assert_eq!(urls, [title("film"), title("a%20b"), title("film"), title("a%20b")]);
    let mp4 = PlayOptions { form: Form::Progressive, ..options(&server, "/titles", 1) };
    assert_eq!(play(&mp4).unwrap().viewers[0].url, server.url("/t/film.mp4"));
    let report = play(&options(&server, "/?token=a.b", 2)).unwrap();
    let urls: Vec<&str> = report.viewers.iter().map(|viewer| viewer.url.as_str()).collect();
    let title = |name| server.url(&format!("/t/{name}/master.m3u8?token=a.b"));
    assert_eq!(urls, [title("film"), title("a%20b")]);
    assert!(server.asked().contains(&"/titles?token=a.b".to_owned()));
}

#[test]
fn the_titles_of_a_server_are_those_of_all_pages_of_its_list() {
    // Three pages, of which the second has nothing to play; or pages without an end.
    let pages = |target: &str| match target {
        "/titles" => Some(r#"{"titles":[{"name":"a"}],"next":"a & b"}"#),
        "/titles?after=a%20%26%20b" => {
            Some(r#"{"titles":[{"name":"c","kind":"file"}],"next":"c"}"#)
        }
        "/titles?after=c" => Some(r#"{"titles":[{"name":"d"}],"next":null}"#),
        "/titles?limit=1" => Some(r#"{"titles":[{"name":"a"}],"next":"a"}"#),
        _ if target.starts_with("/titles?folder=x") => Some(r#"{"titles":[],"next":"x"}"#),
        _ => None,
    };
    let server = TestServer::open(move |target, _| Some(Reply::new(200, "", pages(target)?)));
    let report = play(&options(&server, "/", 2)).unwrap();
    let urls: Vec<&str> = report.viewers.iter().map(|viewer| viewer.url.as_str()).collect();
    assert_eq!(urls, ["a", "d"].map(|name| server.url(&format!("/t/{name}/master.m3u8"))));
    let one = play(&options(&server, "/titles?limit=1", 1)).unwrap();
    assert_eq!(one.parameters.titles, 1, "a limit stands for a page");
    let endless = play(&options(&server, "/titles?folder=x", 1)).unwrap_err().to_string();
    assert!(endless.contains("on more than 250 pages"), "{endless}");
}

#[test]
fn the_query_of_a_servers_root_opens_the_list_and_its_titles() {
    let server = TestServer::open(|target, _| {
        let open = target.contains("token=a.b") || target.contains("?s=");
        let denied = || Reply::new(401, "", r#"{"error":"token-missing","message":"no token"}"#);
        (!open).then(denied)
    });
    for path in ["?token=a.b", "/?token=a.b", "/titles?token=a.b"] {
        let report = play(&options(&server, path, 2)).unwrap();
        assert_eq!(report.totals.finished, 2, "{path}");
        let url = server.url("/t/a%20b/master.m3u8?token=a.b");
        assert_eq!(report.viewers[1].url, url, "{path}");
    }
    let refused = play(&options(&server, "/", 1)).unwrap_err().to_string();
    assert!(refused.contains("401: no token"), "{refused}");
}

#[test]
fn connections_closed_by_the_server_are_opened_again() {
    for closing in [Reply::saying_close as fn(Reply) -> Reply, Reply::just_close] {
        let server = TestServer::open(move |target, _| {
            target.ends_with(".m4s?s=0").then(|| closing(Reply::segment(1000)))
        });
        let report = play(&options(&server, "/t/film/master.m3u8", 1)).unwrap();
        assert_eq!(verdicts(&report), [(ViewerOutcome::Admitted, "finished")], "{report:#?}");
        assert_eq!(report.viewers[0].pieces, 10);
    }
}

#[test]
fn an_error_of_one_viewer_is_reported_for_that_one() {
    let server = TestServer::open(|target, _| {
        (target == "/t/film/0/2.m4s?s=0").then(|| Reply::segment(1000).cut_after(400))
    });
    let report = play(&options(&server, "/t/film/master.m3u8", 2)).unwrap();
    assert_eq!((report.totals.failed, report.totals.finished), (1, 1));
    let failed = report.viewers.iter().find(|v| v.outcome == ViewerOutcome::Failed).unwrap();
    let error = failed.error.as_ref().unwrap();
    assert!(error.contains("/t/film/0/2.m4s") && error.contains("connection was lost"), "{error}");
}

#[test]
fn a_silent_server_causes_an_error() {
    let server = TestServer::open(|target, _| {
        target.starts_with("/t/film/0.m3u8").then(|| Reply::segment(1).after_ms(60_000))
    });
    let patience = Duration::from_millis(300);
    let error = play(&PlayOptions { patience, ..options(&server, "/t/film/master.m3u8", 1) });
    let said = error.unwrap_err().one_line();
    assert!(
        said.contains("the server sent nothing for") && said.contains("test the network"),
        "{said}"
    );
}

#[test]
fn an_interrupted_run_is_reported_as_incomplete() {
    let server = TestServer::open(|_, _| None);
    let stop = AtomicBool::new(false);
    let arrivals = Arrivals::Every(Duration::from_secs(3600));
    let options = PlayOptions { arrivals, ..options(&server, "/t/film/master.m3u8", 2) };
    let mut told = 0;
    let report = tenuto_client::play(&options, &stop, &mut |sample| {
        told += 1;
        // The first viewer has played to the end; the second would arrive in an hour.
        stop.store(sample.gone == 1, Ordering::Relaxed);
    })
    .unwrap();
    assert_eq!((report.complete, report.totals.arrived, report.totals.finished), (false, 1, 1));
    assert_eq!(report.samples.len(), told);
}

#[test]
fn all_viewers_leave_at_the_end_of_the_duration() {
    let server = TestServer::open(|target, _| {
        target.starts_with("/t/film/0/1.m4s").then(|| Reply::segment(1000).after_ms(60_000))
    });
    let duration = Some(Duration::from_millis(1500));
    let report = play(&PlayOptions { duration, ..options(&server, "/t/film/master.m3u8", 1) });
    let report = report.unwrap();
    assert_eq!(verdicts(&report), [(ViewerOutcome::Admitted, "stalled")]);
    assert_eq!((report.complete, report.totals.stalls), (true, 1));
}

#[test]
fn a_run_that_cannot_play_reports_the_remedy() {
    let server = TestServer::open(|_, _| None);
    let text = |url: String| {
        let urls = vec![url];
        let error = play(&PlayOptions { urls, ..PlayOptions::default() }).unwrap_err();
        format!("{error}\n{}", error.hint().as_deref().unwrap_or_default())
    };
    let nobody = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}/t/x/master.m3u8", listener.local_addr().unwrap())
    };
    let cases = [
        (nobody, "start `tenuto serve` there"),
        (server.url("/t/nothing/master.m3u8"), "not found (404)\n`tenuto ls STORE`"),
        (server.url("/page.m3u8"), "does not begin with #EXTM3U"),
        (server.url("/page"), "not an MP4 file that can be played"),
        (server.url("/broken.m3u8"), "the server answered 500: on fire"),
        (server.url("/around"), "the server answered 302"),
        ("ftp://x/".into(), "is not an address of the form"),
    ];
    for (url, wanted) in cases {
        let error = text(url.clone());
        assert!(error.contains(wanted), "{url}: {error}");
    }
    let none =
        PlayOptions { urls: vec![server.url("/t/x.m3u8")], viewers: 0, ..Default::default() };
    assert_eq!(play(&none).unwrap_err().hint().unwrap(), "give --viewers 1 or more");
    let nowhere = play(&PlayOptions::default()).unwrap_err();
    assert_eq!(nowhere.to_string(), "no address was given");
    let save = Some(PathBuf::from("/no/such/folder/film.mp4"));
    let error = play(&PlayOptions { save, ..options(&server, "/t/film.mp4", 1) });
    assert_eq!(error.unwrap_err().hint().unwrap(), "choose another place with --save");
}
