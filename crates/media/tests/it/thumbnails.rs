//! Thumbnails for players: the same in HLS, DASH and WebVTT, by the rules of each.

use crate::footage::{Folder, Title, make, read, remux};
use media::{CueClock, Excerpt, Packaging, Thumbnails};
use std::sync::Arc;
use std::time::Duration;
use testkit::thumbnails::{self, Thumbnail};

/// An image of this size as far as its size, with so many bytes more.
fn jpeg(width: u16, height: u16, more: usize) -> Arc<[u8]> {
    let [width, height] = [width, height].map(u16::to_be_bytes);
    let frame = [0xff, 0xc0, 0, 8, 8, height[0], height[1], width[0], width[1], 1];
    [&[0xff, 0xd8][..], &frame, &vec![0; more], &[0xff, 0xd9]].concat().into()
}

/// A film of 2.4 s that has thumbnails at this interval in seconds, as if it were longer.
fn film(folder: &Folder, interval: u32, count: u32) -> Title {
    let how = "-c:v libx264 -preset veryfast -bf 2 -g 12 -sc_threshold 0 -c:a aac";
    let mut title = read(&remux(&make(folder, "film.mp4", how), "mp4", ""), 1 << 16);
    let images = (0..count.div_ceil(25)).map(|k| jpeg(5 * 160, 5 * 90, 3000 + 100 * k as usize));
    let thumbnails = Thumbnails::new(interval, (160, 90), count, images.collect());
    title.index.thumbnails = Some(thumbnails.expect("possible ones"));
    title
}

/// The thumbnails in WebVTT.
fn by_cues(title: &Title, packaging: &Packaging) -> Vec<Thumbnail> {
    let cues = packaging.thumbnail_cues("", CueClock::Segments).expect("it has thumbnails");
    thumbnails::of_webvtt(cues.as_bytes(), &mut |uri| Some(title.fetch(packaging, uri))).unwrap()
}

#[test]
fn all_forms_name_the_same_thumbnails() {
    let folder = Folder::new("thumbnails");
    let title = film(&folder, 1, 3);
    let packaging = title.packaging(Duration::from_secs(1));
    // The rules of HLS and DASH, of all playlists and images.
    title.check_manifests(&packaging, "thumbnails");
    let multivariant = packaging.multivariant_playlist(&[0], "");
    let stated = multivariant.lines().find_map(|l| l.strip_prefix("#EXT-X-IMAGE-STREAM-INF:"));
    let mut fetch = |uri: &str| Some(title.fetch(&packaging, uri));
    let hls = thumbnails::of_hls(stated.expect("a variant of images"), &mut fetch).unwrap();
    let manifest = packaging.dash_manifest(&[0], "");
    let mut fetch = |uri: &str| {
        let number = uri.strip_prefix("thumbnails/")?.strip_suffix(".jpg")?.parse().ok()?;
        packaging.thumbnail_image(number).map(|image| image.to_vec())
    };
    let dash = thumbnails::of_manifest(&manifest, &mut fetch).unwrap();
    assert!(!manifest.contains("cmaf"), "an image is no CMAF track");
    assert_eq!((hls.len(), &hls), (3, &dash));
    assert_eq!(by_cues(&title, &packaging), hls);
}

#[test]
fn addresses_carry_the_query() {
    let folder = Folder::new("thumbnails-query");
    let packaging = film(&folder, 1, 3).packaging(Duration::from_secs(1));
    let multivariant = packaging.multivariant_playlist(&[0], "?s=1");
    assert!(multivariant.contains("URI=\"thumbnails.m3u8?s=1\""), "{multivariant}");
    let playlist = packaging.thumbnail_playlist("?s=1").unwrap();
    assert!(playlist.contains("\nthumbnails/0.jpg?s=1\n"), "{playlist}");
    let manifest = packaging.dash_manifest(&[0], "?s=1");
    assert!(manifest.contains("media=\"thumbnails/$Number$.jpg?s=1\""), "{manifest}");
    let cues = packaging.thumbnail_cues("?s=1", CueClock::Segments).unwrap();
    assert!(cues.contains("\nthumbnails/0.jpg?s=1#xywh=160,0,160,90\n"), "{cues}");
}

#[test]
fn a_part_of_a_title_has_the_cues_of_that_part_and_no_lists_of_images() {
    let folder = Folder::new("thumbnails-part");
    let title = film(&folder, 1, 3);
    let whole = title.packaging(Duration::from_secs(1));
    let part = Excerpt { start: Duration::from_secs(1), ..Excerpt::default() };
    let part = whole.excerpt(&part).unwrap();
    title.check_manifests(&part, "part");
    assert_eq!(part.thumbnail_playlist(""), None);
    assert!(!part.multivariant_playlist(&[0], "").contains("IMAGE"));
    let times = |packaging: &Packaging, clock| {
        let cues = packaging.thumbnail_cues("", clock).expect("it has thumbnails");
        let times = cues.lines().filter(|line| line.contains("-->")).map(str::to_owned);
        times.collect::<Vec<String>>()
    };
    // The file begins with the picture at 1 s, the segments with the key frame at 0.96 s.
    assert_eq!(
        times(&part, CueClock::File),
        ["00:00:00.000 --> 00:00:01.000", "00:00:01.000 --> 00:00:01.400"]
    );
    assert_eq!(times(&part, CueClock::Segments)[1], "00:00:00.040 --> 00:00:01.040");
    assert!(part.thumbnail_image(0).is_some() && part.thumbnail_image(1).is_none());
    let skipping = whole.excerpt(&Excerpt { skip: 1, ..Excerpt::default() }).unwrap();
    assert_eq!(skipping.thumbnail_cues("", CueClock::Segments), None);
    assert_eq!(skipping.thumbnail_image(0), None);
}
