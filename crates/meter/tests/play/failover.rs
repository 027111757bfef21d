//! Viewers whose server is lost in the middle go on at another, by HLS content steering or by the
//! base addresses of DASH, and so do those whom steering leads away. A server that is lost closes
//! its connections, in the middle of a segment or without an answer.

use super::test_server::{Reply, TestServer};
use super::{ViewerOutcome, options, play, verdicts};
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use tenuto_client::PlayReport;

/// What a server does with requests for media.
#[derive(Clone, Copy, Debug)]
enum Does {
    Serves,
    /// From the third segment of the picture on, closes connections in the middle of segments.
    IsLost,
    /// From the third segment of the picture on, gives this status.
    Answers(u16),
    /// Has no room for the first requests.
    IsFull(usize),
    Closes,
    /// Serves, the third segments once the viewer has the steering manifest, which puts the other
    /// servers in front.
    LeadsAway,
    /// Has none of the media.
    Lacks,
}

fn answer(does: Does, target: &str, requests: &AtomicUsize, lost: &AtomicUsize) -> Option<Reply> {
    let at_two = target.contains("/0/2.m4s");
    let is_lost = lost.fetch_add(usize::from(at_two), Ordering::SeqCst) > 0 || at_two;
    match does {
        Does::IsLost if is_lost => Some(Reply::segment(1000).cut_after(400)),
        Does::Answers(status) if is_lost => Some(Reply::new(status, "", "ended")),
        Does::IsFull(times) if requests.fetch_add(1, Ordering::SeqCst) < times => {
            Some(Reply::refusal("disk", 0))
        }
        Does::Closes => Some(Reply::segment(9).cut_after(0)),
        Does::Lacks => Some(Reply::new(404, "", "none")),
        _ => None,
    }
}

fn server(
    does: Does,
    document: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
) -> TestServer {
    let (requests, lost) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let has_list = Arc::new(OnceLock::new());
    TestServer::open(move |target, admission| match document(target) {
        Some(text) if target.starts_with("/steer") => {
            Some(Reply::new(200, "", text).telling(&has_list))
        }
        Some(text) => Some(Reply::new(200, "", text)),
        None if matches!(does, Does::LeadsAway) && target.contains("/2.m4s") => {
            has_list.wait();
            None
        }
        None if admission.is_some() || target.starts_with("/steer") => {
            Some(Reply::new(500, "", "no director"))
        }
        None => answer(does, target, &requests, &lost),
    })
}

/// Plays from the first of these servers by HLS; the steering manifest names the others, the
/// preferred one first, if it `steers`.
fn steered(servers: &[Does], steers: bool) -> (PlayReport, Vec<TestServer>) {
    let others: Vec<_> = servers[1..].iter().map(|does| server(*does, |_| None)).collect();
    let clones = others.iter().enumerate().map(|(number, other)| {
        let host = other.url("").replace("http://", "");
        json!({ "BASE-ID": "n", "ID": format!("n{number}"), "URI-REPLACEMENT": { "HOST": host } })
    });
    let clones: Vec<_> = clones.collect();
    let mut ids: Vec<_> = clones.iter().map(|clone| clone["ID"].clone()).collect();
    let leads = matches!(servers[0], Does::LeadsAway);
    ids.insert(if leads { ids.len() } else { 0 }, json!("n"));
    let list = json!({ "VERSION": 1, "TTL": 30, "PATHWAY-PRIORITY": ids,
                       "PATHWAY-CLONES": clones });
    let first = server(servers[0], move |target| {
        let master = "#EXTM3U\n#EXT-X-CONTENT-STEERING:SERVER-URI=\"/steer?x=1\",PATHWAY-ID=\"n\"\n\
            #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"a\",DEFAULT=YES,URI=\"1.m3u8?s=7\"\n\
            #EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO=\"a\"\n0.m3u8?s=7\n";
        match target {
            "/t/film/master.m3u8" => Some(master.to_owned()),
            "/steer?x=1&_HLS_pathway=n" if steers => Some(list.to_string()),
            _ => None,
        }
    });
    finish(first, others, "/t/film/master.m3u8")
}

/// As `steered`, with the base addresses of DASH, and with content steering where that leads away.
fn based(servers: &[Does]) -> (PlayReport, Vec<TestServer>) {
    let others: Vec<_> = servers[1..].iter().map(|does| server(*does, |_| None)).collect();
    let bases = others.iter().enumerate().map(|(number, other)| {
        format!("<BaseURL serviceLocation=\"n{number}\">{}</BaseURL>", other.url("/t/film/"))
    });
    let bases: String = bases.collect();
    let leads = matches!(servers[0], Does::LeadsAway);
    let mut ids: Vec<String> = (0..others.len()).map(|number| format!("n{number}")).collect();
    ids.push("n".to_owned());
    let list = json!({ "VERSION": 1, "TTL": 30, "PATHWAY-PRIORITY": ids });
    let steering = if leads { "<ContentSteering>/steer?x=1</ContentSteering>" } else { "" };
    let own: &'static OnceLock<String> = Box::leak(Box::default());
    let first = server(servers[0], move |target| {
        if target == "/steer?x=1&_DASH_pathway=n" && leads {
            return Some(list.to_string());
        }
        (target == "/t/film/a.mpd").then(|| {
            let set = |kind: &str, track: u8| {
                format!(
                    "<AdaptationSet contentType=\"{kind}\"><SegmentTemplate timescale=\"10\" \
                     duration=\"2\" startNumber=\"0\" initialization=\"{track}/init.mp4?s=7\" \
                     media=\"{track}/$Number$.m4s?s=7\"/><Representation id=\"{track}\" \
                     bandwidth=\"1000\"/></AdaptationSet>"
                )
            };
            let own = own.wait();
            format!(
                "<MPD type=\"static\" mediaPresentationDuration=\"PT1S\">\
                 <BaseURL serviceLocation=\"n\">{own}</BaseURL>\
                 {bases}<Period>{}{}</Period>{steering}</MPD>",
                set("video", 0),
                set("audio", 1)
            )
        })
    });
    own.set(first.url("/t/film/")).unwrap();
    finish(first, others, "/t/film/a.mpd")
}

fn finish(first: TestServer, others: Vec<TestServer>, path: &str) -> (PlayReport, Vec<TestServer>) {
    let report = play(&options(&first, path, 1)).unwrap();
    (report, std::iter::once(first).chain(others).collect())
}

#[test]
fn a_viewer_goes_on_where_there_is_room() {
    use Does::{Answers, Closes, IsFull, IsLost, Serves};
    // The servers, the preferred one first; the one that ends with the viewer; waits for room.
    let rows: [(&[Does], usize, u32); 8] = [
        (&[Serves, Serves], 0, 0),
        (&[IsLost, Serves], 1, 0),
        (&[Answers(410), Serves, Closes], 1, 0),
        (&[Answers(404), Serves], 1, 0),
        (&[Answers(500), Closes, Serves], 2, 0),
        (&[IsLost, IsFull(9), Serves], 2, 1),
        (&[IsLost, IsFull(1)], 1, 1),
        (&[IsLost, Closes, IsFull(2)], 2, 2),
    ];
    for (servers, ends, waits) in rows {
        let by_steering = steered(servers, true);
        // Each pathway has media playlists of its own.
        assert!(by_steering.1[ends].asked().contains(&"/t/film/0.m3u8?s=7".to_owned()));
        for (report, at) in [by_steering, based(servers)] {
            let viewer = &report.viewers[0];
            let shown = || (servers, at.iter().map(TestServer::asked).collect::<Vec<_>>());
            let verdict = (ViewerOutcome::Admitted, "finished");
            assert_eq!(verdicts(&report), [verdict], "{:?} {:?}", viewer.error, shown());
            // Five segments of each track, each counted once.
            assert_eq!(viewer.pieces, 10, "{:?}", shown());
            assert_eq!(viewer.failovers, u32::from(ends > 0), "{:?}", shown());
            let counted = (report.totals.failovers, report.totals.viewers_with_failovers);
            assert_eq!(counted, (u64::from(ends > 0), u32::from(ends > 0)));
            assert!(viewer.put_off >= waits, "{} {:?}", viewer.put_off, shown());
            assert!(at[ends].asked().contains(&"/t/film/0/4.m4s?s=7".to_owned()), "{:?}", shown());
        }
    }
}

#[test]
fn a_viewer_who_is_led_elsewhere_goes_there_and_comes_back_if_not_taken() {
    use Does::{Closes, IsFull, Lacks, LeadsAway, Serves};
    // The server that leads to the others, and they; the one that ends with the viewer.
    let rows: [(&[Does], usize); 5] = [
        (&[LeadsAway, Serves], 1),
        (&[LeadsAway, IsFull(99)], 0),
        (&[LeadsAway, Lacks], 0),
        (&[LeadsAway, Closes], 0),
        (&[LeadsAway, IsFull(99), Serves], 0),
    ];
    for (servers, ends) in rows {
        for (report, at) in [steered(servers, true), based(servers)] {
            let viewer = &report.viewers[0];
            let shown = || (servers, at.iter().map(TestServer::asked).collect::<Vec<_>>());
            let verdict = (ViewerOutcome::Admitted, "finished");
            assert_eq!(verdicts(&report), [verdict], "{:?} {:?}", viewer.error, shown());
            let went = (viewer.pieces, viewer.failovers);
            assert_eq!(went, (10, u32::from(ends > 0)), "{:?}", shown());
            assert!(!at[1].asked().is_empty(), "{:?}", shown());
            assert!(at[ends].asked().contains(&"/t/film/0/4.m4s?s=7".to_owned()), "{:?}", shown());
        }
    }
}

#[test]
fn a_viewer_without_another_place_fails_as_before() {
    let rows: [(&[Does], bool, &str); 3] = [
        (&[Does::IsLost, Does::Closes], true, "the connection was lost"),
        (&[Does::IsLost, Does::Serves], false, "the connection was lost"),
        (&[Does::Answers(404), Does::Lacks], true, "not found (404)"),
    ];
    for (servers, steers, error) in rows {
        let (report, _) = steered(servers, steers);
        let viewer = &report.viewers[0];
        assert_eq!((viewer.outcome, viewer.failovers), (ViewerOutcome::Failed, 0));
        assert!(viewer.error.as_ref().unwrap().contains(error), "{:?}", viewer.error);
    }
}
