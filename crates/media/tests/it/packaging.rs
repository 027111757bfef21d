//! Segments, playlists and progressive files: read by independent parsers, and compared with slow,
//! simple computations from the index.

use crate::footage::{Folder, Title, ffmpeg_strict, make, read, remux};
use m3u8_rs::{MasterPlaylist, MediaPlaylist};
use media::{
    Body, CHECKSUM_SPAN, ContentSteering, GrowingFile, Growth, Ldu, LduIndex, Links,
    NoSegmentIndex, Packaging, PackagingError, PackagingOptions, SettledSegments, Slice,
    SoundPurposes, TitleIndex, TitleKind, TrackDescription, TrackIndex, TrackKind,
};
use shiguredo_mp4::demux::{Fmp4SegmentDemuxer, Input, Mp4FileDemuxer, Sample};
use std::sync::Arc;
use std::time::Duration;
use units::{MediaTime, Timescale};

const SECOND: Duration = Duration::from_secs(1);

fn footage(name: &str) -> Title {
    let folder = Folder::new(name);
    let how = "-c:v libx264 -preset veryfast -bf 2 -g 12 -c:a aac";
    read(&remux(&make(&folder, "source.mp4", how), "mp4", ""), 1 << 16)
}

/// A track made from numbers, with the sample entry of an unknown codec.
fn track(kind: TrackKind, scale: u32, ldus: LduIndex) -> TrackIndex {
    let video = kind == TrackKind::Video;
    let description = TrackDescription {
        sample_entry: b"\0\0\0\x10avc1\0\0\0\0\0\0\0\x01".to_vec(),
        codec: if video { "avc1.64001f" } else { "mp4a.40.2" }.to_owned(),
        width: if video { 1280 } else { 0 },
        height: if video { 720 } else { 0 },
        sample_rate: if video { 0 } else { 48_000 },
        channels: if video { 0 } else { 2 },
        ..TrackDescription::plain(kind, Timescale(scale))
    };
    let data_len = ldus.data_len();
    let spans = usize::try_from(data_len.div_ceil(CHECKSUM_SPAN)).unwrap();
    TrackIndex { description, ldus, data_len, checksums: vec![0; spans].into() }
}

fn pictures(frames: u32, size: impl Fn(u32) -> u32) -> TrackIndex {
    let mut ldus = LduIndex::default();
    (0..frames).for_each(|i| ldus.push(size(i), 40, 0, i % 25 == 0, false));
    track(TrackKind::Video, 1000, ldus)
}

fn sound(packets: u32) -> TrackIndex {
    let mut ldus = LduIndex::default();
    (0..packets).for_each(|i| ldus.push(300 + i % 50, 1024, 0, true, false));
    track(TrackKind::Audio, 48_000, ldus)
}

fn title(tracks: Vec<TrackIndex>) -> TitleIndex {
    TitleIndex { kind: TitleKind::Media, tracks, texts: Vec::new(), thumbnails: None }
}

fn package(tracks: Vec<TrackIndex>, segment: Duration) -> Packaging {
    Packaging::new(
        Arc::new(title(tracks)),
        &PackagingOptions { segment, ..PackagingOptions::default() },
    )
    .unwrap()
}

/// Asserts that the second parser finds the LDU's values.
fn assert_sample(sample: &Sample<'_>, bytes: &[u8], ldu: &Ldu, what: &str) {
    let offset = i64::from(ldu.composition_offset);
    assert_eq!(sample.timestamp, ldu.decode_time, "{what}");
    assert_eq!(sample.duration, ldu.duration, "{what}");
    assert_eq!(sample.composition_time_offset.unwrap_or(0), offset, "{what}");
    assert_eq!(sample.keyframe, ldu.sync, "{what}");
    assert_eq!(sample.data_size, bytes.len(), "{what}");
}

fn ldu_bytes<'a>(title: &'a Title, track: usize, ldu: &Ldu) -> &'a [u8] {
    let start = usize::try_from(ldu.offset).unwrap();
    &title.data[track][start..start + ldu.size as usize]
}

/// Players wind in the smallest rendition of each codec: see the header of `iframes.rs`.
#[test]
fn manifests_list_the_iframes_of_the_smallest_rendition_of_each_codec() {
    let of = |size: u32, codec: &str| {
        let mut track = pictures(150, |_| size);
        track.description.codec = codec.to_owned();
        track
    };
    let (avc, hevc) = ("avc1.64001f", "hvc1.1.6.L93.B0");
    let tracks = vec![of(5000, avc), of(500, avc), of(2000, avc), of(3000, hevc), of(900, hevc)];
    let packaging = package(tracks, 2 * SECOND);
    // What admission offers, and the tracks whose I-frames are listed.
    let table: [(&[u16], &[u16]); 4] =
        [(&[0, 3, 2, 4, 1], &[1, 4]), (&[1], &[1]), (&[2, 0], &[2]), (&[3, 2], &[3, 2])];
    for (offered, wanted) in table {
        let multivariant = packaging.multivariant_playlist(offered, "");
        let manifest = packaging.dash_manifest(offered, "");
        let mut listed: Vec<u16> = Vec::new();
        for part in multivariant.split("URI=\"").skip(1) {
            listed
                .extend(part.split_once("-iframes.m3u8").map(|(it, _)| it.parse::<u16>().unwrap()));
        }
        assert_eq!(listed, wanted, "{multivariant}");
        let mut listed: Vec<u16> = Vec::new();
        for part in manifest.split("<Representation id=\"").skip(1) {
            let id = part.split('"').next().unwrap();
            listed.extend(id.strip_suffix("-iframes").map(|it| it.parse::<u16>().unwrap()));
        }
        assert_eq!(listed, wanted, "{manifest}");
    }
    // Those of the others are served all the same.
    assert!((0..5).all(|track| packaging.iframe_playlist(track, "").is_some()));
}

#[test]
fn segments_that_an_index_cannot_state_are_in_no_file() {
    let second = |seconds: u32| {
        let mut ldus = LduIndex::default();
        (0..seconds).for_each(|_| ldus.push(1, 1000, 0, true, false));
        track(TrackKind::Video, 1000, ldus)
    };
    let large = |bytes: u32| package(vec![pictures(100, |_| bytes)], 4 * SECOND);
    let most = u32::from(u16::MAX);
    let table = [
        (package(vec![second(most)], SECOND), Ok(())),
        (package(vec![second(most + 1)], SECOND), Err(NoSegmentIndex::Segments)),
        // Of 25 pictures each.
        (large((1 << 31) / 26), Ok(())),
        (large((1 << 31) / 25), Err(NoSegmentIndex::Segment)),
        (
            package(vec![sound(100), pictures(100, |_| 1 << 28)], SECOND),
            Err(NoSegmentIndex::Segment),
        ),
    ];
    for (packaging, wanted) in table {
        assert_eq!(packaging.on_demand(), wanted);
        let last = u16::try_from(packaging.index().tracks.len() - 1).unwrap();
        if wanted.is_err() {
            assert_eq!(packaging.track_file(last), None);
        }
    }
}

#[test]
fn segments_read_by_another_parser_are_the_index() {
    let title = footage("segments-read");
    let packaging = title.packaging(SECOND);
    for (number, track) in title.index.tracks.iter().enumerate() {
        let id = u16::try_from(number).unwrap();
        let mut parser = Fmp4SegmentDemuxer::new();
        parser.handle_init_segment(&packaging.init_segment(id).unwrap()).unwrap();
        assert_eq!(parser.tracks().unwrap()[0].timescale.get(), track.description.timescale.0);
        let mut ldus = track.ldus.iter();
        for k in 0..packaging.segment_count(id) {
            let segment = title.bytes(&packaging.segment(id, k).unwrap());
            for sample in parser.handle_media_segment(&segment).unwrap() {
                let ldu = ldus.next().unwrap();
                let bytes = ldu_bytes(&title, number, &ldu);
                assert_sample(&sample, bytes, &ldu, &format!("track {number}, segment {k}"));
                let at = usize::try_from(sample.data_offset).unwrap();
                assert_eq!(&segment[at..at + sample.data_size], bytes);
            }
        }
        assert_eq!(ldus.next(), None, "track {number}: every LDU is in a segment");
    }
}

#[test]
fn a_progressive_file_read_by_another_parser_is_the_index() {
    let title = footage("progressive-read");
    let packaging = title.packaging(SECOND);
    let file = title.bytes(&packaging.progressive(&[0, 1]));
    let mut parser = Mp4FileDemuxer::new();
    parser.handle_input(Input { position: 0, data: &file });
    let mut next = [0, 0];
    while let Some(sample) = parser.next_sample().unwrap() {
        let number = usize::try_from(sample.track.track_id).unwrap() - 1;
        let ldu = title.index.tracks[number].ldus.get(next[number]);
        next[number] += 1;
        let bytes = ldu_bytes(&title, number, &ldu);
        assert_sample(&sample, bytes, &ldu, &format!("track {number}"));
        let at = usize::try_from(sample.data_offset).unwrap();
        assert_eq!(&file[at..at + sample.data_size], bytes);
    }
    let all = [0, 1].map(|track| title.index.tracks[track].ldus.len());
    assert_eq!(next, all, "every LDU is in the file");
}

#[test]
fn the_same_request_gives_the_same_bytes() {
    let title = footage("same");
    let twice = [title.packaging(SECOND), title.packaging(SECOND)];
    let made = twice.map(|packaging| {
        let segment = packaging.segment(0, 1).unwrap();
        let progressive = packaging.progressive(&[0, 1]);
        (segment, progressive, packaging.init_segment(1), packaging.media_playlist(1, "?s=x"))
    });
    assert!(made[0] == made[1]);
}

fn span(start: u64, end: u64) -> std::ops::Range<u64> {
    start..end
}

/// The stored byte ranges of a body, by track.
fn stored(body: &Body, track: u16) -> Vec<std::ops::Range<u64>> {
    let of_track = |slice: &Slice| match slice {
        Slice::Stored { track: t, bytes } if *t == track => Some(bytes.clone()),
        _ => None,
    };
    body.slices().filter_map(of_track).collect()
}

#[test]
fn a_segment_is_one_header_and_one_stored_slice_and_segments_cover_the_data() {
    let packaging = package(vec![pictures(250, |i| 1000 + i), sound(500)], SECOND);
    for track in [0, 1] {
        let mut end = 0;
        for k in 0..packaging.segment_count(track) {
            let body = packaging.segment(track, k).unwrap();
            let slices: Vec<&Slice> = body.slices().collect();
            assert!(matches!(slices[..], [Slice::Generated { .. }, Slice::Stored { .. }]));
            let bytes = stored(&body, track)[0].clone();
            assert_eq!(bytes.start, end, "track {track}, segment {k}");
            end = bytes.end;
        }
        assert_eq!(end, packaging.index().tracks[usize::from(track)].data_len);
        assert_eq!(packaging.segment(track, packaging.segment_count(track)), None);
    }
    assert_eq!((packaging.segment_count(0), packaging.segment_count(1)), (10, 10));
    assert!(packaging.segment(2, 0).is_none() && packaging.init_segment(2).is_none());
}

#[test]
fn a_progressive_file_is_interleaved_by_the_second() {
    let packaging = package(vec![pictures(75, |_| 10), sound(141)], SECOND);
    assert_eq!(order(&packaging), "010101");
    assert_eq!(stored(&packaging.progressive(&[0, 1]), 0)[1], span(250, 500));
    // A single track is one run.
    assert_eq!(stored_runs(&packaging, &[1]), [1]);
}

// VLC drops the sound that lies behind pictures which are shown after it.
#[test]
fn a_track_that_begins_late_in_a_second_of_the_file_lies_behind_the_others() {
    let waiting = |mut track: TrackIndex, millis: i64| {
        let edit = |duration, media_time| media::Edit { duration, media_time };
        let wait = edit(Some(MediaTime(millis * 1_000_000)), None);
        track.description.edits = vec![wait, edit(None, Some(0))];
        track
    };
    for (pictures_wait, sound_wait, wanted) in
        [(0, 0, "010101"), (0, 920, "010101"), (920, 0, "101010"), (1500, 0, "1010")]
    {
        let tracks =
            vec![waiting(pictures(75, |_| 10), pictures_wait), waiting(sound(141), sound_wait)];
        let shown = order(&package(tracks, SECOND));
        assert_eq!(shown, wanted, "pictures wait {pictures_wait} ms, the sound {sound_wait} ms");
    }
}

/// The numbers of the tracks of the stored slices of the file with two tracks.
fn order(packaging: &Packaging) -> String {
    let body = packaging.progressive(&[0, 1]);
    let stored = body.slices().filter_map(|slice| match slice {
        Slice::Stored { track, .. } => Some(track.to_string()),
        _ => None,
    });
    stored.collect()
}

fn stored_runs(packaging: &Packaging, tracks: &[u16]) -> Vec<usize> {
    let body = packaging.progressive(tracks);
    tracks.iter().map(|&track| stored(&body, track).len()).collect()
}

#[test]
fn files_beyond_four_gibibytes_have_wide_places() {
    // 2 h at 60 MB/s: offsets beyond 32 bits, and an `mdat` beyond them.
    let packaging = package(vec![pictures(180_000, |_| 2_400_000)], SECOND);
    let body = packaging.progressive(&[0]);
    let Some(Slice::Generated { bytes, .. }) = body.slice(0) else { panic!("a header") };
    assert_eq!(body.len(), bytes.len() as u64 + 180_000 * 2_400_000);
    let place = |name: &[u8]| bytes.windows(4).position(|window| window == name);
    let wide = place(b"co64").expect("64-bit places");
    assert_eq!(place(b"stco"), None);
    let chunk = |n: usize| {
        let at = wide + 12 + 8 * n;
        u64::from_be_bytes(bytes[at..at + 8].try_into().unwrap())
    };
    // The last second's chunk begins a second of data before the end.
    assert_eq!(chunk(0), bytes.len() as u64);
    assert_eq!(chunk(7199), body.len() - 25 * 2_400_000);
    let mdat = place(b"mdat").unwrap();
    assert_eq!(bytes[mdat - 4..mdat], [0, 0, 0, 1]);
    let size = u64::from_be_bytes(bytes[mdat + 4..mdat + 12].try_into().unwrap());
    assert_eq!(size, body.len() - (mdat as u64 - 4));
}

#[test]
fn long_titles_and_ten_thousand_frames_of_one_byte() {
    let packaging = package(vec![pictures(270_000, |_| 40_000), sound(506_250)], 4 * SECOND);
    assert_eq!(packaging.duration(), Duration::from_secs(10_800));
    assert_eq!((packaging.segment_count(0), packaging.segment_count(1)), (2700, 2700));
    let tiny = package(vec![pictures(10_000, |_| 1)], 4 * SECOND);
    assert_eq!(tiny.segment_count(0), 100);
    assert_eq!(stored(&tiny.segment(0, 99).unwrap(), 0), vec![span(9900, 10_000)]);
    assert_eq!(stored(&tiny.progressive(&[0]), 0), vec![span(0, 10_000)]);
}

/// The slow computation: for every piece it goes through all segments.
fn due_slowly(packaging: &Packaging, track: u16, piece: u32) -> Vec<u32> {
    let playlist = packaging.media_playlist(track, "").unwrap();
    let playlist = m3u8_rs::parse_media_playlist_res(playlist.as_bytes()).unwrap();
    let mut starts = vec![0.0];
    for segment in &playlist.segments {
        starts.push(starts.last().unwrap() + f64::from(segment.duration));
    }
    let data_len = packaging.index().tracks[usize::from(track)].data_len;
    (0..data_len.div_ceil(u64::from(piece)))
        .map(|number| {
            let first = number * u64::from(piece);
            let touching = (0..packaging.segment_count(track)).find(|&k| {
                stored(&packaging.segment(track, k).unwrap(), track)[0].contains(&first)
            });
            // The playlist rounds to microseconds.
            let start = Duration::from_secs_f64(starts[touching.unwrap() as usize] + 1e-5);
            u32::try_from(start.as_millis()).unwrap()
        })
        .collect()
}

#[test]
fn due_times_in_segments_are_when_the_first_segment_that_touches_a_piece_begins() {
    let packaging = package(vec![pictures(1000, |i| 100 + i * 7), sound(1875)], 2 * SECOND);
    for (track, piece) in [(0, 1), (0, 10_007), (0, 65_536), (1, 4096), (1, 1 << 30)] {
        let data_len = packaging.index().tracks[usize::from(track)].data_len;
        let due = packaging.due_segmented(track, (0..data_len).step_by(piece as usize));
        // For single bytes a sample is enough.
        if piece == 1 {
            assert_eq!(due.len() as u64, packaging.index().tracks[0].data_len);
            assert!(due.is_sorted() && due[0] == 0 && due[due.len() - 1] == 38_000);
            continue;
        }
        assert_eq!(due, due_slowly(&packaging, track, piece), "track {track}, pieces of {piece}");
    }
    assert_eq!(packaging.due_segmented(9, 0..2), Vec::<u32>::new());
}

#[test]
fn due_times_in_a_progressive_file_are_when_the_second_begins() {
    let packaging = package(vec![pictures(250, |_| 1000), sound(500)], SECOND);
    // A second of pictures is 25,000 bytes.
    let due = packaging.due_progressive(&[0, 1], 0, 10_000);
    assert_eq!(due[..8], [0, 0, 0, 1000, 1000, 2000, 2000, 2000]);
    assert_eq!(due.len(), 25);
    assert_eq!(packaging.due_progressive(&[1], 0, 10_000), Vec::<u32>::new());
}

#[test]
fn players_choose_sound_by_what_it_is_for() {
    let none = SoundPurposes::default();
    let rows = [
        none,
        SoundPurposes { visual_impaired: true, ..none },
        SoundPurposes { hearing_impaired: true, ..none },
        SoundPurposes { comment: true, ..none },
        SoundPurposes { dub: true, ..none },
        none,
    ];
    let sounds = rows.iter().enumerate().map(|(number, purposes)| {
        let mut track = sound(300);
        track.description.language = "eng".to_owned();
        track.description.default = number == 0;
        track.description.purposes = *purposes;
        track
    });
    let tracks = [pictures(150, |_| 5000)].into_iter().chain(sounds).collect();
    let packaging = package(tracks, 2 * SECOND);
    let told = packaging.multivariant_playlist(&[0], "");
    let told: Vec<&str> = told
        .lines()
        .filter_map(|line| line.split_once("NAME=")?.1.split_once(",CHANNELS").map(|it| it.0))
        .collect();
    let clear = "public.accessibility.enhances-speech-intelligibility";
    assert_eq!(
        told,
        [
            "\"English\",LANGUAGE=\"en\",DEFAULT=YES,AUTOSELECT=YES".to_owned(),
            "\"English (audio description)\",LANGUAGE=\"en\",DEFAULT=NO,AUTOSELECT=YES,\
             CHARACTERISTICS=\"public.accessibility.describes-video\""
                .to_owned(),
            format!(
                "\"English (clear speech)\",LANGUAGE=\"en\",DEFAULT=NO,AUTOSELECT=YES,\
                 CHARACTERISTICS=\"{clear}\""
            ),
            "\"English (commentary)\",LANGUAGE=\"en\",DEFAULT=NO,AUTOSELECT=NO".to_owned(),
            "\"English 2\",LANGUAGE=\"en\",DEFAULT=NO,AUTOSELECT=YES".to_owned(),
            "\"English 3\",LANGUAGE=\"en\",DEFAULT=NO,AUTOSELECT=NO".to_owned(),
        ]
    );
    let mpd = packaging.dash_manifest(&[0], "");
    let marks: Vec<&str> = mpd
        .lines()
        .filter(|line| line.contains("<Role") || line.contains("<Accessibility"))
        .filter_map(|line| line.split_once("value=\"")?.1.split_once('"').map(|it| it.0))
        .collect();
    assert_eq!(
        marks,
        ["main", "1", "alternate", "2", "alternate", "commentary", "dub", "alternate"]
    );
}

#[test]
fn playlists_as_text() {
    let mut english = sound(300);
    english.description.language = "eng".to_owned();
    let mut german = sound(300);
    german.description = TrackDescription {
        language: "deu".to_owned(),
        channels: 6,
        default: false,
        ..german.description
    };
    let mut dolby = german.clone();
    dolby.description.codec = "ac-3".to_owned();
    let packaging = package(vec![pictures(150, |_| 5000), german, english, dolby], 2 * SECOND);
    assert_eq!(packaging.offers(), [[0, 2]]);
    let multivariant = "\
#EXTM3U
#EXT-X-VERSION:7
#EXT-X-INDEPENDENT-SEGMENTS
#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"mp4a.40.2\",NAME=\"German\",LANGUAGE=\"de\",DEFAULT=NO,AUTOSELECT=YES,CHANNELS=\"6\",URI=\"1.m3u8?s=T\"
#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"mp4a.40.2\",NAME=\"English\",LANGUAGE=\"en\",DEFAULT=YES,AUTOSELECT=YES,CHANNELS=\"2\",URI=\"2.m3u8?s=T\"
#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"ac-3\",NAME=\"German\",LANGUAGE=\"de\",DEFAULT=YES,AUTOSELECT=YES,CHANNELS=\"6\",URI=\"3.m3u8?s=T\"
#EXT-X-STREAM-INF:BANDWIDTH=1125532,AVERAGE-BANDWIDTH=1124810,CODECS=\"avc1.64001f,mp4a.40.2\",RESOLUTION=1280x720,FRAME-RATE=25.000,AUDIO=\"mp4a.40.2\"
0.m3u8?s=T
#EXT-X-STREAM-INF:BANDWIDTH=1125532,AVERAGE-BANDWIDTH=1124810,CODECS=\"avc1.64001f,ac-3\",RESOLUTION=1280x720,FRAME-RATE=25.000,AUDIO=\"ac-3\"
0.m3u8?s=T
#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=40864,AVERAGE-BANDWIDTH=40864,CODECS=\"avc1.64001f\",RESOLUTION=1280x720,URI=\"0-iframes.m3u8?s=T\"
";
    assert_eq!(packaging.multivariant_playlist(&[0], "?s=T"), multivariant);
    let media = "\
#EXTM3U
#EXT-X-VERSION:7
#EXT-X-INDEPENDENT-SEGMENTS
#EXT-X-TARGETDURATION:2
#EXT-X-MEDIA-SEQUENCE:0
#EXT-X-PLAYLIST-TYPE:VOD
#EXT-X-MAP:URI=\"2/init.mp4?s=T\"
#EXTINF:2.005333,
2/0.m4s?s=T
#EXTINF:2.005334,
2/1.m4s?s=T
#EXTINF:2.389333,
2/2.m4s?s=T
#EXT-X-ENDLIST
";
    assert_eq!(packaging.media_playlist(2, "?s=T").as_deref(), Some(media));
    assert_eq!(packaging.media_playlist(4, ""), None);
}

/// A title that is recorded for eight seconds, and the same when it has grown.
fn recorded() -> [Packaging; 2] {
    let whole = title(vec![pictures(200, |_| 5000), sound(375)]);
    let mut segments = SettledSegments::new(2 * SECOND);
    segments.extend(&whole, &[u64::MAX; 2]);
    let listed = Arc::new(segments.index(&whole));
    let growing = segments.packaging(listed, 1_772_396_100).unwrap();
    let options = PackagingOptions {
        segment: 2 * SECOND,
        growth: Growth::Grown { began: 1_772_396_100 },
        encryption: None,
    };
    [growing, Packaging::new(Arc::new(whole), &options).unwrap()]
}

#[test]
fn playlists_of_a_growing_title_as_text() {
    let [growing, grown] = recorded();
    let multivariant = "\
#EXTM3U
#EXT-X-VERSION:7
#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"mp4a.40.2\",NAME=\"Audio\",DEFAULT=YES,AUTOSELECT=YES,CHANNELS=\"2\",URI=\"1.m3u8?s=T\"
#EXT-X-STREAM-INF:BANDWIDTH=1124596,AVERAGE-BANDWIDTH=1124452,CODECS=\"avc1.64001f,mp4a.40.2\",RESOLUTION=1280x720,FRAME-RATE=25.000,AUDIO=\"mp4a.40.2\"
0.m3u8?s=T
";
    assert_eq!(growing.multivariant_playlist(&[0], "?s=T"), multivariant);
    let pictures = "\
#EXTM3U
#EXT-X-VERSION:7
#EXT-X-TARGETDURATION:3
#EXT-X-MEDIA-SEQUENCE:0
#EXT-X-PLAYLIST-TYPE:EVENT
#EXT-X-PROGRAM-DATE-TIME:2026-03-01T20:15:00Z
#EXT-X-MAP:URI=\"0/init.mp4?s=T\"
#EXTINF:2.000000,
0/0.m4s?s=T
#EXTINF:2.000000,
0/1.m4s?s=T
#EXTINF:2.000000,
0/2.m4s?s=T
";
    assert_eq!(growing.media_playlist(0, "?s=T").as_deref(), Some(pictures));
    let all = format!("{pictures}#EXTINF:2.000000,\n0/3.m4s?s=T\n#EXT-X-ENDLIST\n");
    assert_eq!(grown.media_playlist(0, "?s=T"), Some(all));
    let sound = "\
#EXTM3U
#EXT-X-VERSION:7
#EXT-X-INDEPENDENT-SEGMENTS
#EXT-X-TARGETDURATION:3
#EXT-X-MEDIA-SEQUENCE:0
#EXT-X-PLAYLIST-TYPE:EVENT
#EXT-X-PROGRAM-DATE-TIME:2026-03-01T20:15:00Z
#EXT-X-MAP:URI=\"1/init.mp4?s=T\"
#EXTINF:2.005333,
1/0.m4s?s=T
#EXTINF:2.005334,
1/1.m4s?s=T
#EXTINF:2.005333,
1/2.m4s?s=T
";
    assert_eq!(growing.media_playlist(1, "?s=T").as_deref(), Some(sound));
}

/// Read again as FFmpeg's own fragments are, and decoded by FFmpeg as the same title with its
/// header in front.
#[test]
fn the_file_of_a_growing_title_has_all_that_was_recorded() {
    let title = footage("growing-file");
    let growth = Growth::Grown { began: 0 };
    let options = PackagingOptions { segment: SECOND / 2, growth, ..PackagingOptions::default() };
    let packaging = Packaging::new(Arc::new(title.index.clone()), &options).unwrap();
    let mut file = GrowingFile::default();
    file.extend(&packaging);
    let bytes = title.bytes(file.body());
    let again = read(&bytes, 10_000);
    assert_eq!(again.data, title.data);
    for (found, track) in again.index.tracks.iter().zip(&title.index.tracks) {
        let ldus = |track: &TrackIndex| track.ldus.iter().collect::<Vec<_>>();
        assert_eq!(ldus(found), ldus(track));
        assert_eq!(found.description.sample_entry, track.description.sample_entry);
    }
    let folder = Folder::new("growing-file");
    let progressive = title.packaging(SECOND).progressive(&[0, 1]);
    let [grown, whole] =
        [("grown.mp4", bytes), ("whole.mp4", title.bytes(&progressive))].map(|(name, bytes)| {
            std::fs::write(folder.file(name), bytes).unwrap();
            let words = "-i FILE -map 0 -f framemd5 -";
            String::from_utf8(ffmpeg_strict(words, &[&folder.file(name)])).unwrap()
        });
    assert_eq!(grown, whole);
    assert!(grown.lines().count() > 150, "{grown}");
}

#[test]
fn the_manifest_of_a_growing_title_as_text() {
    let [growing, grown] = recorded();
    let location = "https://tv.example/t/news/manifest.mpd?s=T";
    let clock = "../../time";
    let links = Links { folder: "news/", query: "?s=T", location, clock, ..Links::default() };
    let manifest = "\
<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<MPD xmlns=\"urn:mpeg:dash:schema:mpd:2011\" type=\"dynamic\" profiles=\"urn:mpeg:dash:profile:isoff-live:2011\" availabilityStartTime=\"2026-03-01T20:15:00Z\" publishTime=\"2026-03-01T20:15:06Z\" minimumUpdatePeriod=\"PT2S\" maxSegmentDuration=\"PT3S\" minBufferTime=\"PT2.005318S\">
<Location>https://tv.example/t/news/manifest.mpd?s=T</Location>
<Period id=\"0\" start=\"PT0S\">
<AdaptationSet id=\"0\" contentType=\"video\" mimeType=\"video/mp4\" segmentAlignment=\"true\" maxWidth=\"1280\" maxHeight=\"720\">
<Representation id=\"0\" codecs=\"avc1.64001f\" bandwidth=\"1001232\" width=\"1280\" height=\"720\" frameRate=\"25\">
<SegmentTemplate timescale=\"1000\" startNumber=\"0\" initialization=\"news/$RepresentationID$/init-dash.mp4?s=T\" media=\"news/$RepresentationID$/$Number$.m4s?s=T\">
<SegmentTimeline>
<S t=\"0\" d=\"2000\" r=\"2\"/>
</SegmentTimeline>
</SegmentTemplate>
</Representation>
</AdaptationSet>
<AdaptationSet id=\"1\" contentType=\"audio\" mimeType=\"audio/mp4\" segmentAlignment=\"true\" startWithSAP=\"1\">
<AudioChannelConfiguration schemeIdUri=\"urn:mpeg:mpegB:cicp:ChannelConfiguration\" value=\"2\"/>
<Role schemeIdUri=\"urn:mpeg:dash:role:2011\" value=\"main\"/>
<Representation id=\"1\" codecs=\"mp4a.40.2\" bandwidth=\"123364\" audioSamplingRate=\"48000\">
<SegmentTemplate timescale=\"48000\" startNumber=\"0\" initialization=\"news/$RepresentationID$/init-dash.mp4?s=T\" media=\"news/$RepresentationID$/$Number$.m4s?s=T\">
<SegmentTimeline>
<S t=\"0\" d=\"96256\" r=\"2\"/>
</SegmentTimeline>
</SegmentTemplate>
</Representation>
</AdaptationSet>
</Period>
<UTCTiming schemeIdUri=\"urn:mpeg:dash:utc:http-xsdate:2014\" value=\"../../time\"/>
<UTCTiming schemeIdUri=\"urn:mpeg:dash:utc:http-head:2014\" value=\"../../time\"/>
</MPD>
";
    assert_eq!(growing.dash_manifest(&[0], links), manifest);
    let without = growing.dash_manifest(&[0], "?s=T");
    assert!(!without.contains("Location") && !without.contains("UTCTiming"), "{without}");
    let grown = grown.dash_manifest(&[0], links);
    assert!(grown.contains("type=\"static\""), "{grown}");
    assert!(grown.contains("mediaPresentationDuration=\"PT8S\""), "{grown}");
    assert!(!grown.contains("Location"), "{grown}");
}

#[test]
fn playlists_read_by_another_parser() {
    let title = footage("playlists");
    let packaging = title.packaging(SECOND);
    let text = packaging.multivariant_playlist(&[0], "?s=T");
    let all: MasterPlaylist = m3u8_rs::parse_master_playlist_res(text.as_bytes()).unwrap();
    let [variant, winding] = all.variants.as_slice() else { panic!("two variants: {text}") };
    assert!(!variant.is_i_frame && winding.is_i_frame, "the second for winding: {text}");
    assert_eq!(variant.codecs.as_deref(), Some("avc1.64000b,mp4a.40.2"));
    assert_eq!(variant.resolution.map(|r| (r.width, r.height)), Some((160, 90)));
    assert_eq!(variant.frame_rate, Some(25.0));
    assert_eq!(all.alternatives[0].uri.as_deref(), Some("1.m3u8?s=T"));
    assert_eq!(all.alternatives[0].channels.as_deref(), Some("1"));
    for track in [0, 1] {
        let text = packaging.media_playlist(track, "?s=T").unwrap();
        let one: MediaPlaylist = m3u8_rs::parse_media_playlist_res(text.as_bytes()).unwrap();
        assert!(one.end_list && one.independent_segments);
        assert_eq!(one.segments.len(), packaging.segment_count(track) as usize);
        let total: f32 = one.segments.iter().map(|segment| segment.duration).sum();
        assert!((total - 2.4).abs() < 0.03, "track {track}: {total} s");
        // No segment is denser than the variant declares.
        for (k, segment) in (0..).zip(&one.segments) {
            let bits = packaging.segment(track, k).unwrap().len() * 8;
            let length = f64::from(segment.duration).max(1.0);
            assert!(bits as f64 / length <= variant.bandwidth as f64);
            assert!(f64::from(segment.duration) <= one.target_duration as f64 + 0.5);
        }
    }
}

#[test]
fn audio_tracks_are_named_by_title_or_language_and_each_name_is_unique() {
    let named = |language: &str, title: &str| {
        let mut track = sound(300);
        track.description.language = language.to_owned();
        track.description.title = title.to_owned();
        track
    };
    let tracks = vec![
        pictures(150, |_| 5000),
        named("fra", ""),
        named("eng", "Director's \"cut\"\n"),
        named("fre", ""),
        named("und", ""),
        named("qaa", ""),
        named("deu", "French 2"),
        named("und", ""),
    ];
    let packaging = package(tracks, 2 * SECOND);
    let text = packaging.multivariant_playlist(&[0], "");
    let all: MasterPlaylist = m3u8_rs::parse_master_playlist_res(text.as_bytes()).unwrap();
    let given: Vec<_> =
        all.alternatives.iter().map(|it| (it.name.as_str(), it.language.as_deref())).collect();
    let wanted = [
        ("French", Some("fr")),
        ("Director's 'cut'", Some("en")),
        ("French 2", Some("fr")),
        ("Audio", None),
        ("qaa", Some("qaa")),
        ("French 2 2", Some("de")),
        ("Audio 2", None),
    ];
    assert_eq!(given, wanted);
}

#[test]
fn a_tracks_title_is_kept() {
    let folder = Folder::new("titled");
    let how = "-c:v libx264 -preset veryfast -g 12 -c:a aac -metadata:s:a:0 title=Commentary";
    for muxer in ["mp4", "mov"] {
        let title = read(&remux(&make(&folder, "titled.mkv", how), muxer, ""), 1 << 16);
        let titles: Vec<&str> =
            title.index.tracks.iter().map(|track| track.description.title.as_str()).collect();
        assert_eq!(titles, ["", "Commentary"], "{muxer}");
        let packaging = title.packaging(SECOND);
        assert!(packaging.multivariant_playlist(&[0], "").contains("NAME=\"Commentary\""));
        let file = title.bytes(&packaging.progressive(&[0, 1]));
        let boxed = b"\0\0\0\x12nameCommentary";
        assert!(file.windows(boxed.len()).any(|bytes| bytes == boxed), "{muxer}");
    }
}

#[test]
fn the_range_and_the_size_of_pictures_are_those_of_the_source() {
    let folder = Folder::new("ranges");
    let colours = |trc| format!("-color_primaries bt2020 -color_trc {trc} -colorspace bt2020nc");
    let table = [
        (colours("smpte2084"), "mp4", "RESOLUTION=160x90,FRAME-RATE=25.000,VIDEO-RANGE=PQ"),
        (colours("arib-std-b67"), "mp4", "RESOLUTION=160x90,FRAME-RATE=25.000,VIDEO-RANGE=HLG"),
        (colours("arib-std-b67"), "mov", "RESOLUTION=160x90,FRAME-RATE=25.000,VIDEO-RANGE=HLG"),
        (colours("bt709"), "mp4", "RESOLUTION=160x90,FRAME-RATE=25.000,VIDEO-RANGE=SDR"),
        (String::new(), "mp4", "RESOLUTION=160x90,FRAME-RATE=25.000\n"),
        ("-vf setsar=3/2".to_owned(), "mp4", "RESOLUTION=240x90,FRAME-RATE=25.000\n"),
        ("-vf setsar=3/2".to_owned(), "mov", "RESOLUTION=240x90,FRAME-RATE=25.000\n"),
    ];
    for (number, (encode, muxer, wanted)) in table.iter().enumerate() {
        let how = format!("-c:v libx264 -preset veryfast -g 12 {encode} -an");
        let file = make(&folder, &format!("{number}.mkv"), &how);
        let title = read(&remux(&file, muxer, ""), 1 << 16);
        let text = title.packaging(SECOND).multivariant_playlist(&[0], "");
        assert!(text.contains(wanted), "{encode} in {muxer}: {text}");
    }
}

/// The check of RFC 8216 finds each of these faults, which are made by replacing text in playlists.
#[test]
fn playlists_with_a_fault_are_found_by_the_check() {
    let title = footage("faults");
    let packaging = title.packaging(SECOND);
    let check = |from: &str, to: &str| {
        let multivariant = packaging.multivariant_playlist(&[0], "").replace(from, to);
        let mut fetch = |uri: &str| {
            let bytes = title.fetch(&packaging, uri);
            if uri.ends_with(".m3u8") {
                return String::from_utf8(bytes).unwrap().replace(from, to).into_bytes();
            }
            bytes
        };
        testkit::hls::check("film", &multivariant, &mut fetch);
    };
    check("nothing", "nothing");
    let bandwidth = |multivariant: &str, name: &str| -> u64 {
        let at = multivariant.find(name).unwrap() + name.len();
        let digits: String = multivariant[at..].chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap()
    };
    let multivariant = packaging.multivariant_playlist(&[0], "");
    let peak = bandwidth(&multivariant, ":BANDWIDTH=");
    let average = bandwidth(&multivariant, "AVERAGE-BANDWIDTH=");
    let winding = bandwidth(&multivariant, "I-FRAME-STREAM-INF:BANDWIDTH=");
    let table = [
        (format!(":BANDWIDTH={peak}"), format!(":BANDWIDTH={}", peak * 999 / 1000)),
        (
            format!("AVERAGE-BANDWIDTH={average}"),
            format!("AVERAGE-BANDWIDTH={}", average * 99 / 100),
        ),
        (",AUDIO=\"mp4a.40.2\"".to_owned(), String::new()),
        (",FRAME-RATE=25.000".to_owned(), String::new()),
        ("NAME=".to_owned(), "X-NAME=".to_owned()),
        (",DEFAULT=YES".to_owned(), ",LANGUAGE=\"English\",DEFAULT=YES".to_owned()),
        ("#EXT-X-ENDLIST".to_owned(), String::new()),
        ("#EXT-X-VERSION:7".to_owned(), "#EXT-X-VERSION:3".to_owned()),
        ("#EXTINF:0.9".to_owned(), "#EXTINF:3.9".to_owned()),
        ("0/1.m4s".to_owned(), "0/0.m4s".to_owned()),
        ("#EXT-X-I-FRAMES-ONLY\n".to_owned(), String::new()),
        ("URI=\"0-iframes.m3u8".to_owned(), "FRAME-RATE=1.000,URI=\"0-iframes.m3u8".to_owned()),
        ("URI=\"0-iframes.m3u8".to_owned(), "URI=\"0.m3u8".to_owned()),
        ("0/iframe-1.m4s".to_owned(), "0/iframe-0.m4s".to_owned()),
        ("0/iframe-1.m4s".to_owned(), "0/1.m4s".to_owned()),
        (format!("INF:BANDWIDTH={winding}"), format!("INF:BANDWIDTH={}", winding * 999 / 1000)),
    ];
    for (from, to) in table {
        let texts = [0, 1].map(|track| packaging.media_playlist(track, "").unwrap()).concat();
        let texts = texts + &packaging.iframe_playlist(0, "").unwrap();
        let exists = (multivariant.clone() + &texts).contains(&from);
        assert!(exists, "{from} is in no playlist:\n{multivariant}{texts}");
        let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(&from, &to)));
        assert!(checked.is_err(), "{from} replaced by {to} is not found");
    }
}

#[test]
fn open_groups_are_not_declared_independent() {
    let folder = Folder::new("open-groups");
    let open =
        "-c:v libx264 -preset veryfast -bf 2 -g 12 -b_strategy 0 -x264-params open-gop=1 -an";
    for (name, encode, independent) in [
        ("closed.mp4", "-c:v libx264 -preset veryfast -bf 2 -g 12 -an", true),
        ("open.mp4", open, false),
    ] {
        let title = read(&remux(&make(&folder, name, encode), "mp4", ""), 1 << 16);
        let packaging = title.packaging(SECOND);
        title.check_manifests(&packaging, name);
        for text in
            [packaging.multivariant_playlist(&[0], ""), packaging.media_playlist(0, "").unwrap()]
        {
            assert_eq!(text.contains("#EXT-X-INDEPENDENT-SEGMENTS"), independent, "{name}: {text}");
        }
    }
}

#[test]
fn offers_are_best_first() {
    let sized = |width, height, size: u32| {
        let mut track = pictures(100, move |_| size);
        (track.description.width, track.description.height) = (width, height);
        track
    };
    let ladder = vec![
        sized(640, 360, 1000),
        sound(200),
        sized(1280, 720, 3000),
        sized(1280, 720, 4000),
        sized(0, 0, 10),
    ];
    let ladder = package(ladder, SECOND);
    assert_eq!(ladder.offers(), [[3, 1], [2, 1], [0, 1], [4, 1]]);
    assert_eq!(ladder.file_offers(), [[3, 1], [2, 1], [0, 1], [4, 1]]);
    let mut second = sound(200);
    second.description.default = true;
    let mut first = sound(200);
    first.description.default = false;
    let song = package(vec![first.clone(), second.clone()], SECOND);
    assert_eq!((song.offers(), song.file_offers()), (vec![vec![1], vec![0]], vec![vec![1, 0]]));
    let film = package(vec![first, pictures(100, |_| 9), second], SECOND);
    assert_eq!((film.offers(), film.file_offers()), (vec![vec![1, 2]], vec![vec![1, 2, 0]]));
    assert_eq!(package(vec![pictures(9, |_| 1)], SECOND).offers(), [[0]]);
}

#[test]
fn a_title_without_media_is_refused_with_the_reason() {
    let refused = |kind, tracks| {
        let index = Arc::new(TitleIndex { kind, tracks, texts: Vec::new(), thumbnails: None });
        Packaging::new(index, &PackagingOptions::default()).unwrap_err()
    };
    assert_eq!(refused(TitleKind::Media, Vec::new()), PackagingError::NoTracks);
    assert_eq!(refused(TitleKind::Media, vec![pictures(0, |_| 0)]), PackagingError::NoTracks);
    let file = track(TrackKind::File, 1, LduIndex::default());
    assert_eq!(refused(TitleKind::File, vec![file]), PackagingError::File);
}

#[test]
fn a_short_title_has_about_three_segments() {
    // Seconds of the title, with a key frame in each; seconds of the segments.
    let table: &[(u32, u32, &[u8])] = &[
        (1, 4, &[1]),
        (2, 4, &[1, 1]),
        (3, 4, &[1, 1, 1]),
        (6, 4, &[2, 2, 2]),
        (9, 4, &[3, 3, 3]),
        (11, 4, &[4, 3, 4]),
        (12, 4, &[4, 4, 4]),
        (20, 4, &[4; 5]),
        (6, 1, &[1; 6]),
    ];
    for (seconds, segment, wanted) in table {
        let title = package(vec![pictures(seconds * 25, |_| 9)], SECOND * *segment);
        let text = title.media_playlist(0, "").unwrap();
        let playlist: MediaPlaylist = m3u8_rs::parse_media_playlist_res(text.as_bytes()).unwrap();
        let lengths: Vec<f32> = playlist.segments.iter().map(|segment| segment.duration).collect();
        let wanted: Vec<f32> = wanted.iter().map(|length| f32::from(*length)).collect();
        assert_eq!(lengths, wanted, "{seconds} s in segments of {segment} s");
    }
}

#[test]
fn manifests_tell_where_else_the_title_is() {
    let [_, film] = recorded();
    let servers = [("n1", "http://n1/t/news/"), ("n2", "http://n2/t/news/")];
    let servers = servers.map(|(name, folder)| (name.to_owned(), folder.to_owned()));
    let steering = ContentSteering { server_uri: "http://d/steer/news?names=", pathways: &servers };
    let links = Links { query: "?s=T", steering: Some(steering), ..Links::default() };
    let playlist = film.multivariant_playlist(&[0], links);
    let lines: Vec<&str> = playlist.lines().collect();
    let rows = [
        (
            "#EXT-X-CONTENT-STEERING:",
            "SERVER-URI=\"http://d/steer/news?names=1,0\",PATHWAY-ID=\"n1\"",
        ),
        ("#EXT-X-MEDIA:", "URI=\"1.m3u8?s=T\",STABLE-RENDITION-ID=\"1\""),
        ("#EXT-X-STREAM-INF:", ",PATHWAY-ID=\"n1\",STABLE-VARIANT-ID=\"0\""),
    ];
    for ((tag, end), line) in rows.iter().zip(&lines[2..]) {
        assert!(line.starts_with(tag) && line.ends_with(end), "{playlist}");
    }
    assert_eq!(lines[5..], ["0.m3u8?s=T"], "{playlist}");
    let manifest = film.dash_manifest(&[0], links);
    let bases = "<BaseURL serviceLocation=\"n1\">http://n1/t/news/</BaseURL>\n\
                 <BaseURL serviceLocation=\"n2\">http://n2/t/news/</BaseURL>\n<Period";
    assert!(manifest.contains(bases), "{manifest}");
    let server = "<ContentSteering>http://d/steer/news?names=n1,n2</ContentSteering>";
    let end = format!("</Period>\n{server}\n</MPD>\n");
    assert!(manifest.ends_with(&end), "{manifest}");
    for alone in [film.multivariant_playlist(&[0], "?s=T"), film.dash_manifest(&[0], "?s=T")] {
        assert!(!alone.contains("PATHWAY-ID") && !alone.contains("BaseURL"), "{alone}");
        assert!(!alone.contains("Steering") && !alone.contains("STEERING"), "{alone}");
    }
}
