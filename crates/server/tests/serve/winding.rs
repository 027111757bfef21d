//! Winding: the I-frames of a title, fetched in its session by players and by hand.

use crate::client::playlist_uris;
use crate::fixture::{TestStore, media};
use crate::playing::frames;
use units::ByteCount;

/// Frames in a group of pictures of the film: a key frame each second.
const GROUP: usize = 25;

#[test]
fn ffmpeg_decodes_the_iframe_playlist_of_each_part_at_each_speed() {
    let fixture = TestStore::with(&[&media().film, &media().large]);
    let serving = fixture.serve_with(|config| config.memory = Some(ByteCount::mib(512)));
    let mut client = serving.client();
    // Title and query; where its pictures are; the numbers of the I-frames.
    let film: Vec<usize> = (0..6).map(|group| group * GROUP).collect();
    let table: &[(&str, &std::path::Path, &[usize])] = &[
        ("film/master.m3u8", &media().film, &film),
        ("film/master.m3u8?speed=2", &media().film, &film),
        ("film/master.m3u8?start=2", &media().film, &film[2..]),
        // Of pictures that are all key frames one in a second.
        ("large/master.m3u8", &media().large, &[0, 25, 50, 75]),
    ];
    for (path, source, numbers) in table {
        let source = frames(source.to_str().unwrap());
        let pictures: Vec<&String> = source.iter().filter(|it| it.starts_with("0 ")).collect();
        let master = client.get(&format!("/t/{path}")).text().to_owned();
        let lists = playlist_uris(&master, &format!("/t/{path}"));
        let iframes: Vec<&String> = lists.iter().filter(|uri| uri.contains("-iframes")).collect();
        let [list] = iframes[..] else { panic!("{path}: one list of I-frames: {lists:?}") };
        let shown = frames(&serving.url(list));
        let wanted: Vec<&String> = numbers.iter().map(|number| pictures[*number]).collect();
        assert!(shown.iter().eq(wanted.iter().copied()), "{path}: {} I-frames", shown.len());
        // Its place is needed for the next.
        let (folder, token) = (list.rsplit_once('/').unwrap().0, list.split_once("?s=").unwrap().1);
        let ended = client.request("DELETE", &format!("{folder}/session?s={token}"), &[]);
        assert_eq!(ended.status, 204, "{path}");
    }
    assert_eq!(serving.status("/deadline_misses"), 0);
    assert_eq!(serving.status("/guarantee_violations/scheduler"), 0);
}

#[test]
fn a_player_may_wind_to_any_iframe_and_play_on_from_any_segment() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve();
    let mut client = serving.client();
    let master = client.get("/t/film/master.m3u8").text().to_owned();
    let lists = playlist_uris(&master, "/t/film/master.m3u8");
    let of = |client: &mut crate::client::Client, name: &str| -> Vec<String> {
        let list = lists.iter().find(|list| list.contains(name)).expect("a playlist");
        let uris = playlist_uris(client.get(list).text(), list);
        uris.into_iter().filter(|uri| uri.contains(".m4s")).collect()
    };
    let (segments, iframes) = (of(&mut client, "/0.m3u8"), of(&mut client, "/0-iframes.m3u8"));
    // Forwards, leaving some out; backwards; and playing between.
    let wound = [&iframes[0], &iframes[2], &iframes[4], &segments[1], &iframes[3], &iframes[2]];
    for uri in wound.into_iter().chain([&iframes[1], &segments[0], &segments[1]]) {
        let response = client.get(uri);
        assert!(response.status == 200 && response.whole, "{uri}: {}", response.status);
        assert_eq!(response.field("content-type"), Some("video/mp4"), "{uri}");
    }
    // A range is a range of that response; a tag is of that I-frame.
    let whole = client.get(&iframes[1]);
    let tag = whole.field("etag").expect("a tag").to_owned();
    let part = client.request("GET", &iframes[1], &[("Range", "bytes=10-19"), ("If-Range", &tag)]);
    assert_eq!((part.status, &part.body[..]), (206, &whole.body[10..20]));
    assert_ne!(client.get(&iframes[2]).field("etag"), Some(&*tag));
    let token = iframes[0].split_once("?s=").expect("a token").1;
    for (path, status) in [
        (format!("/t/film/0/iframe-6.m4s?s={token}"), 404),
        (format!("/t/film/1/iframe-0.m4s?s={token}"), 404),
        (format!("/t/film/1-iframes.m3u8?s={token}"), 404),
        ("/t/film/0/iframe-0.m4s".to_owned(), 404),
        (format!("/t/film/0-iframes.m3u8?s={token}&speed=2"), 400),
    ] {
        assert_eq!(client.get(&path).status, status, "{path}");
    }
    assert_eq!(serving.status("/deadline_misses"), 0);
}
