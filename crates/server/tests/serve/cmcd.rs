//! Reports of players (CMCD): kept for each session, counted, logged, and never an error. And what
//! the server answers with (CMSD).

use crate::client::{Client, playlist_uris};
use crate::fixture::{TestStore, eventually, media};
use serde_json::{Value, json};

/// The master playlist's path and the session's media playlists, video first.
fn playlists(client: &mut Client, query: &str) -> (String, Vec<String>) {
    let master = client.get(&format!("/t/film/master.m3u8{query}"));
    assert_eq!(master.status, 200, "{query}: {master:?}");
    let mut uris = playlist_uris(master.text(), "/t/film/master.m3u8");
    uris.sort();
    uris.retain(|uri| !uri.contains("-iframes"));
    (master.text().to_owned(), uris)
}

/// The value of a metric.
fn metric(client: &mut Client, name: &str) -> f64 {
    let text = client.get("/metrics").text().to_owned();
    let line = text.lines().find(|line| line.split(' ').next() == Some(name));
    line.and_then(|line| line.split(' ').nth(1)?.parse().ok()).unwrap_or_else(|| panic!("{name}"))
}

#[test]
fn reports_in_query_and_fields_are_kept_counted_and_logged() {
    let fixture = TestStore::with(&[&media().film]);
    let log = fixture.directory.join("access.log");
    let serving = fixture.serve_with(|config| config.access_log = Some(log.clone()));
    let mut client = serving.client();
    let sid = "6e2fb550-c457-11e9-bb97-0800200c9a66";
    // As hls.js and dash.js send it: in the query, beside what the server reads of it.
    let query = format!("?stop=4&CMCD=ot%3Dm%2Csf%3Dh%2Csid%3D%22{sid}%22%2Csu&wait=1");
    let (_, uris) = playlists(&mut client, &query);
    let playlist = client.get(&format!("{}&CMCD=ot%3Dm%2Csid%3D%22{sid}%22", uris[0]));
    assert_eq!(playlist.status, 200);
    let segments = playlist_uris(playlist.text(), &uris[0]);
    let in_query = format!(
        "{}&CMCD=bl%3D2300%2Cbr%3D1400%2Cbs%2Cd%3D4000%2Cmtp%3D48100%2Cot%3Dv%2Csid%3D%22{sid}%22",
        segments[1]
    );
    assert_eq!(client.get(&in_query).status, 200);
    let sessions = client.get("/sessions").json();
    let report = &sessions["sessions"][0]["cmcd"];
    let expected = json!({
        "sid": sid, "cid": null, "requests": 2, "starvations": 1, "buffer": 2.3,
        "deadline": null, "bit_rate": 1_400_000, "top_bit_rate": null,
        "throughput": 48_100_000, "speed": null, "startup": false, "object": "v", "format": null,
    });
    assert_eq!(*report, expected);
    // In the four fields, and with values that are not valid.
    let fields = [
        ("CMCD-Object", "br=1400,d=4000,ot=v,tb=1500"),
        ("CMCD-Request", "bl=7100,dl=6900,su,nor=\"8.m4s\""),
        ("CMCD-Session", "sid=\"6e2fb550-c457-11e9-bb97-0800200c9a66\",sf=h,st=x,pr=1.5,new=1"),
        ("CMCD-Status", "bs,rtp=many"),
    ];
    assert_eq!(client.request("GET", &segments[2], &fields).status, 200);
    let report = client.get("/sessions").json()["sessions"][0]["cmcd"].clone();
    for (key, value) in [
        ("requests", json!(3)),
        ("starvations", json!(2)),
        ("buffer", json!(7.1)),
        ("deadline", json!(6.9)),
        ("top_bit_rate", json!(1_500_000)),
        ("speed", json!(1.5)),
        ("startup", json!(true)),
        ("format", json!("h")),
    ] {
        assert_eq!(report[key], value, "{key}: {report}");
    }
    for (name, value) in [
        ("tenuto_cmcd_requests_total", 4.0),
        ("tenuto_cmcd_starvations_total", 2.0),
        ("tenuto_cmcd_ignored_total", 2.0),
        ("tenuto_cmcd_buffer_seconds_count", 2.0),
        ("tenuto_cmcd_buffer_seconds_sum", 9.4),
    ] {
        let found = metric(&mut client, name);
        assert!((found - value).abs() < 1e-6, "{name}: {found}");
    }
    eventually("the report is logged", || {
        let log = std::fs::read_to_string(&log).unwrap();
        let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.into_iter().any(|line| {
            let wanted = json!({
                "br": 1400, "d": 4000, "ot": "v", "tb": 1500, "bl": 7100, "dl": 6900, "su": true,
                "bs": true, "sid": sid, "sf": "h", "pr": 1.5,
            });
            line["cmcd"] == wanted
        })
    });
}

#[test]
fn no_report_is_an_error_or_changes_what_is_served() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve();
    let mut client = serving.client();
    let (_, uris) = playlists(&mut client, "");
    let plain = client.get(&uris[0]);
    let long = format!("CMCD=sid%3D%22{}%22", "x".repeat(8000));
    let bad = ["CMCD", "CMCD=", "CMCD=%zz", "CMCD=%ff", "CMCD=bl%3Dx", "CMCD=%22", "CMCD=a&CMCD=b"];
    for query in bad.into_iter().chain([&*long]) {
        let response = client.get(&format!("{}&{query}", uris[0]));
        assert_eq!(response.status, 200, "{query}");
        assert!(response.body == plain.body, "{query}");
    }
    client.send(
        format!("GET {} HTTP/1.1\r\nHost: a\r\nCMCD-Status: ", uris[0])
            .into_bytes()
            .into_iter()
            .chain(*b"\xff\xfe\r\n\r\n")
            .collect::<Vec<u8>>()
            .as_slice(),
    );
    assert_eq!(client.read_response(true).map(|response| response.status), Some(200));
    let ignored = metric(&mut client, "tenuto_cmcd_ignored_total");
    assert!(ignored >= 5.0, "{ignored}");
    // A stranger's report counts as a request only.
    let stranger = client.get("/t/none/master.m3u8?CMCD=bl%3D1%2Cbs");
    assert_eq!(stranger.status, 404);
    assert!(metric(&mut client, "tenuto_cmcd_starvations_total") == 0.0);
}

#[test]
fn media_says_what_it_is_and_what_is_reserved() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve();
    let mut client = serving.client();
    let (master, uris) = playlists(&mut client, "");
    let bandwidth = master.split_once(":BANDWIDTH=").unwrap().1.split(',').next().unwrap();
    let bandwidth: u64 = bandwidth.parse().unwrap();
    let reserved = format!("\"tenuto\";mb={}", bandwidth.div_ceil(1000));
    let file = client.get_following("/t/film.mp4").0;
    let playlists: Vec<_> =
        uris.iter().map(|uri| playlist_uris(client.get(uri).text(), uri)).collect();
    let dash_init = playlists[0][0].replace("init.mp4", "init-dash.mp4");
    for (path, keys) in [
        (&playlists[0][1], &["br", "d", "ot=v", "st=v"][..]),
        (&playlists[1][1], &["br", "d", "ot=a", "st=v"]),
        (&playlists[0][0], &["ot=i", "sf=h", "st=v"]),
        (&dash_init, &["ot=i", "sf=d", "st=v"]),
        (&file, &["br", "d", "ot=av", "sf=o", "st=v"]),
    ] {
        for (method, range) in [("GET", None), ("HEAD", None), ("GET", Some("bytes=0-9"))] {
            let fields: Vec<_> = range.map(|range| ("Range", range)).into_iter().collect();
            let response = client.request(method, path, &fields);
            assert_eq!(response.field("cmsd-dynamic"), Some(&*reserved), "{method} {path}");
            let found: Vec<&str> = response.field("cmsd-static").unwrap().split(',').collect();
            let matches = |(found, wanted): (&&str, &&str)| {
                // Of numbers only the key is given.
                found == wanted || found.split('=').next() == Some(wanted) && !wanted.contains('=')
            };
            assert_eq!(found.len(), keys.len(), "{method} {path}: {found:?}");
            assert!(found.iter().zip(keys).all(matches), "{method} {path}: {found:?}");
        }
    }
    // The playlist states what the field states.
    let playlist = client.get(&uris[0]).text().to_owned();
    let length = playlist.split_once("#EXTINF:").unwrap().1.split(',').next().unwrap();
    let millis = format!("d={:.0}", length.parse::<f64>().unwrap() * 1000.0);
    let segment = client.get(&playlists[0][1]);
    assert!(segment.field("cmsd-static").unwrap().contains(&millis), "{millis} {segment:?}");
    assert_eq!(client.get(&uris[0]).field("cmsd-static"), None);
}
