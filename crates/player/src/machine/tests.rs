//! Scripts of arrivals and the resulting actions and report, as text.

use super::*;
use expect_test::{Expect, expect};
use std::fmt::Write as _;
use units::show_duration;

/// Plays a script of `TIME_MS arrived TRACK PIECE`, `TIME_MS changed PIECES PIECE_MS` (to another
/// timeline), `TIME_MS kept` (the present one) and `TIME_MS until`, one per line. `tracks` has
/// the number of pieces and their length in milliseconds; between lines the player is polled at its
/// wake-up times.
fn check(tracks: &[(usize, u64)], set: &str, behaviour: &str, script: &str, expect: Expect) {
    let timelines = tracks.iter().map(|(pieces, piece_ms)| {
        let piece = Duration::from_millis(*piece_ms);
        crate::TrackTimeline::from_durations(std::iter::repeat_n(piece, *pieces))
    });
    let timeline = Arc::new(Timeline { tracks: timelines.collect() });
    let actions = behaviour.parse().unwrap();
    let mut player = Player::new(Moment::ZERO, timeline, options(set), &actions);
    let mut out = String::new();
    drain(&mut player, Moment::ZERO, &mut out);
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split(' ').collect();
        let now = Moment::from_millis(words[0].parse().unwrap());
        while let Some(wake) = player.wake_at().filter(|wake| *wake < now) {
            drain(&mut player, wake, &mut out);
        }
        if let [_, "arrived", track, piece] = words[..] {
            let (track, piece) = (track.parse().unwrap(), piece.parse().unwrap());
            player.arrived(now, Fetch { track, piece });
        }
        match words[..] {
            [_, "changed", pieces, piece_ms] => {
                let piece = Duration::from_millis(piece_ms.parse().unwrap());
                let pieces = std::iter::repeat_n(piece, pieces.parse().unwrap());
                let tracks = vec![crate::TrackTimeline::from_durations(pieces)];
                player.change_timeline(now, Arc::new(Timeline { tracks }));
            }
            [_, "kept"] => player.keep_timeline(now),
            _ => {}
        }
        drain(&mut player, now, &mut out);
    }
    let end = player.now;
    write_report(&player.report(end), &mut out);
    expect.assert_eq(&out);
}

fn options(set: &str) -> PlayerOptions {
    let mut options = PlayerOptions { start: Duration::ZERO, ..PlayerOptions::default() };
    for (name, value) in set.split_whitespace().filter_map(|pair| pair.split_once('=')) {
        let value = units::parse_duration(value).unwrap();
        match name {
            "start" => options.start = value,
            "resume" => options.resume = value,
            "buffer" => options.buffer = value,
            "dead-band" => options.dead_band = value,
            other => panic!("no option {other}"),
        }
    }
    options
}

fn drain(player: &mut Player, now: Moment, out: &mut String) {
    while let Some(action) = player.poll(now) {
        let ms = now.0 / 1_000_000;
        match action {
            Action::Fetch(fetch) => writeln!(out, "{ms:>5} fetch {} {}", fetch.track, fetch.piece),
            other => writeln!(out, "{ms:>5} {other:?}"),
        }
        .unwrap();
    }
    assert!(player.wake_at().is_none_or(|wake| wake > now), "the wake-up time does not advance");
}

fn write_report(report: &PlayerReport, out: &mut String) {
    let show = show_duration;
    let drifts: Vec<i64> = report.drift.units().iter().map(|nanos| nanos / 1_000_000).collect();
    writeln!(
        out,
        "{:?}: startup {}, played {}, {} stalls {} longest {}, seeks {:?}, margin {:?} ms\n\
         drift {drifts:?} ms, ADF {}, CDF {}",
        report.state,
        report.startup.map_or("none".to_owned(), show),
        show(report.played),
        report.stalls.count,
        show(report.stalls.total),
        show(report.stalls.longest),
        report.seeks,
        report.least_margin.map(|nanos| nanos / 1_000_000),
        show(report.drift.accumulated()),
        show(report.drift.consecutive()),
    )
    .unwrap();
}

#[test]
fn pieces_on_time_are_played_without_a_stall() {
    check(
        &[(3, 1000), (2, 1500)],
        "",
        "",
        "100 arrived 0 0
         250 arrived 1 0
         300 arrived 0 1
         400 arrived 1 1
         500 arrived 0 2
         9000 until",
        expect![[r#"
                0 fetch 0 0
                0 fetch 1 0
              100 fetch 0 1
              250 Started
              250 fetch 1 1
              300 fetch 0 2
             3250 Ended
            Finished: startup 250ms, played 3s, 0 stalls 0us longest 0us, seeks [], margin Some(950) ms
            drift [0, 0, 0] ms, ADF 0us, CDF 0us
        "#]],
    );
}

#[test]
fn a_late_piece_stalls_play_out_and_delays_all_later_pieces() {
    check(
        &[(4, 1000)],
        "",
        "",
        "100 arrived 0 0
         1400 arrived 0 1
         1500 arrived 0 2
         3450 arrived 0 3
         9000 until",
        expect![[r#"
                0 fetch 0 0
              100 Started
              100 fetch 0 1
             1100 Stalled
             1400 Resumed
             1400 fetch 0 2
             1500 fetch 0 3
             3400 Stalled
             3450 Resumed
             4450 Ended
            Finished: startup 100ms, played 4s, 2 stalls 350ms longest 300ms, seeks [], margin Some(-300) ms
            drift [0, 300, 300, 350] ms, ADF 950ms, CDF 950ms
        "#]],
    );
}

#[test]
fn a_piece_that_arrives_exactly_when_due_is_on_time() {
    check(
        &[(2, 1000)],
        "",
        "",
        "0 arrived 0 0
         1000 arrived 0 1
         1500 until",
        expect![[r#"
                0 fetch 0 0
                0 Started
                0 fetch 0 1
            Playing: startup 0us, played 1.50s, 0 stalls 0us longest 0us, seeks [], margin Some(0) ms
            drift [0, 0] ms, ADF 0us, CDF 0us
        "#]],
    );
}

#[test]
fn a_stall_within_the_dead_band_is_not_counted() {
    check(
        &[(2, 1000)],
        "dead-band=40ms",
        "",
        "0 arrived 0 0
         1030 arrived 0 1
         1500 until",
        expect![[r#"
                0 fetch 0 0
                0 Started
                0 fetch 0 1
             1000 Stalled
             1030 Resumed
            Playing: startup 0us, played 1.47s, 0 stalls 0us longest 0us, seeks [], margin Some(-30) ms
            drift [0, 30] ms, ADF 30ms, CDF 0us
        "#]],
    );
}

#[test]
fn fetching_stops_when_the_buffer_is_full() {
    check(
        &[(9, 1000)],
        "start=2s buffer=2s",
        "",
        "10 arrived 0 0
         20 arrived 0 1
         30 arrived 0 2
         1500 arrived 0 3
         1900 until",
        expect![[r#"
                0 fetch 0 0
               10 fetch 0 1
               20 Started
               20 fetch 0 2
             1020 fetch 0 3
            Playing: startup 20ms, played 1.88s, 0 stalls 0us longest 0us, seeks [], margin Some(1520) ms
            drift [0, 0] ms, ADF 0us, CDF 0us
        "#]],
    );
}

#[test]
fn after_a_stall_play_out_waits_for_the_resume_threshold() {
    check(
        &[(5, 1000)],
        "resume=2s",
        "",
        "0 arrived 0 0
         1500 arrived 0 1
         1700 arrived 0 2
         2000 until",
        expect![[r#"
                0 fetch 0 0
                0 Started
                0 fetch 0 1
             1000 Stalled
             1500 fetch 0 2
             1700 Resumed
             1700 fetch 0 3
            Playing: startup 0us, played 1.30s, 1 stalls 700ms longest 700ms, seeks [], margin Some(-500) ms
            drift [0, 700] ms, ADF 700ms, CDF 700ms
        "#]],
    );
}

#[test]
fn at_another_speed_a_viewer_plays_another_timeline_or_goes_on_where_that_is_refused() {
    check(
        &[(9, 1000)],
        "buffer=1s",
        "1500ms speed 2; 2300ms pause; 2400ms resume; 4s speed -4; 4500ms seek 1s",
        "0 arrived 0 0
         100 arrived 0 1
         1600 until
         1900 kept
         2000 arrived 0 2
         3100 arrived 0 3
         4100 changed 2 500
         4200 arrived 0 0
         4300 arrived 0 1
         5300 until",
        expect![[r#"
                0 fetch 0 0
                0 Started
                0 fetch 0 1
             1000 fetch 0 2
             1500 Speed(2000)
             1900 fetch 0 2
             2500 fetch 0 3
             3500 fetch 0 4
             4000 Speed(-4000)
             4100 fetch 0 0
             4200 fetch 0 1
             4500 Ended
            Finished: startup 0us, played 3.80s, 0 stalls 0us longest 0us, seeks [400ms, 200ms, 0ns], margin Some(400) ms
            drift [0, 0, 0, 0, 0] ms, ADF 0us, CDF 0us
        "#]],
    );
    // A viewer leaves also while the server has not answered.
    check(
        &[(9, 1000)],
        "",
        "500ms speed 2; 900ms stop",
        "0 arrived 0 0
         1000 until",
        expect![[r#"
                0 fetch 0 0
                0 Started
                0 fetch 0 1
              500 Speed(2000)
              900 Ended
            Stopped: startup 0us, played 500ms, 0 stalls 0us longest 0us, seeks [], margin None ms
            drift [0] ms, ADF 0us, CDF 0us
        "#]],
    );
}

#[test]
fn a_pause_is_neither_a_stall_nor_drift() {
    check(
        &[(3, 1000)],
        "",
        "500ms pause; 3s resume",
        "0 arrived 0 0
         2000 arrived 0 1
         4000 arrived 0 2
         9000 until",
        expect![[r#"
                0 fetch 0 0
                0 Started
                0 fetch 0 1
             2000 fetch 0 2
             5500 Ended
            Finished: startup 0us, played 3s, 0 stalls 0us longest 0us, seeks [], margin Some(500) ms
            drift [0, 0, 0] ms, ADF 0us, CDF 0us
        "#]],
    );
}

#[test]
fn resuming_at_the_end_of_the_title_ends_play_out() {
    check(
        &[(1, 1000)],
        "",
        "1s pause; 5s resume",
        "0 arrived 0 0
         9000 until",
        expect![[r#"
                0 fetch 0 0
                0 Started
             5000 Ended
            Finished: startup 0us, played 1s, 0 stalls 0us longest 0us, seeks [], margin None ms
            drift [0] ms, ADF 0us, CDF 0us
        "#]],
    );
}

#[test]
fn a_pause_ends_a_stall_and_resuming_without_media_begins_another() {
    check(
        &[(3, 1000)],
        "",
        "1500ms pause; 3s resume",
        "0 arrived 0 0
         3250 arrived 0 1
         4000 until",
        expect![[r#"
                0 fetch 0 0
                0 Started
                0 fetch 0 1
             1000 Stalled
             3000 Stalled
             3250 Resumed
             3250 fetch 0 2
            Playing: startup 0us, played 1.75s, 2 stalls 750ms longest 500ms, seeks [], margin Some(-250) ms
            drift [0, 750] ms, ADF 750ms, CDF 750ms
        "#]],
    );
}

#[test]
fn a_seek_outside_the_buffer_drops_it_and_waits_for_media() {
    check(
        &[(60, 1000)],
        "",
        "500ms seek 50s",
        "0 arrived 0 0
         100 arrived 0 1
         700 arrived 0 2
         900 arrived 0 50
         1000 arrived 0 51
         1500 until",
        expect![[r#"
                0 fetch 0 0
                0 Started
                0 fetch 0 1
              100 fetch 0 2
              700 fetch 0 50
              900 fetch 0 51
             1000 fetch 0 52
            Playing: startup 0us, played 1.10s, 0 stalls 0us longest 0us, seeks [400ms], margin Some(900) ms
            drift [0, 0] ms, ADF 0us, CDF 0us
        "#]],
    );
}

#[test]
fn a_seek_into_the_buffer_is_instant() {
    check(
        &[(60, 1000)],
        "",
        "500ms seek 1500ms",
        "0 arrived 0 0
         100 arrived 0 1
         200 arrived 0 2
         700 until",
        expect![[r#"
                0 fetch 0 0
                0 Started
                0 fetch 0 1
              100 fetch 0 2
              200 fetch 0 3
            Playing: startup 0us, played 700ms, 0 stalls 0us longest 0us, seeks [0ns], margin Some(900) ms
            drift [0, 0] ms, ADF 0us, CDF 0us
        "#]],
    );
}

#[test]
fn stopping_ends_a_stall() {
    check(
        &[(3, 1000)],
        "",
        "4s stop",
        "0 arrived 0 0
         9000 until",
        expect![[r#"
                0 fetch 0 0
                0 Started
                0 fetch 0 1
             1000 Stalled
             4000 Ended
            Stopped: startup 0us, played 1s, 1 stalls 3s longest 3s, seeks [], margin None ms
            drift [0] ms, ADF 0us, CDF 0us
        "#]],
    );
}

#[test]
fn a_failed_piece_is_fetched_again() {
    let track = crate::TrackTimeline::from_durations([Duration::from_secs(1)]);
    let timeline = Arc::new(Timeline { tracks: vec![track] });
    let mut player =
        Player::new(Moment::ZERO, timeline, PlayerOptions::default(), &Behaviour::default());
    let fetch = Fetch { track: 0, piece: 0 };
    assert_eq!(player.poll(Moment::ZERO), Some(Action::Fetch(fetch)));
    assert_eq!(player.poll(Moment::ZERO), None);
    player.failed(Moment::from_millis(5), fetch);
    assert_eq!(player.poll(Moment::from_millis(5)), Some(Action::Fetch(fetch)));
}

/// Plays a random title, polling the player at least every `interval`; returns the time of the end
/// and the report.
fn play_random(mut random: fastrand::Rng, interval: Duration) -> (Duration, PlayerReport) {
    let tracks = (0..random.usize(1..3)).map(|_| {
        let pieces = random.usize(1..12);
        let lengths: Vec<u64> = (0..pieces).map(|_| random.u64(1..4000)).collect();
        crate::TrackTimeline::from_durations(lengths.into_iter().map(Duration::from_millis))
    });
    let timeline = Arc::new(Timeline { tracks: tracks.collect() });
    let options = PlayerOptions {
        start: Duration::from_millis(random.u64(0..3000)),
        resume: Duration::from_millis(random.u64(0..3000)),
        buffer: Duration::from_millis(random.u64(0..6000)),
        dead_band: Duration::ZERO,
    };
    let duration = timeline.duration();
    let mut player = Player::new(Moment::ZERO, timeline, options, &Behaviour::default());
    let mut in_flight: Vec<(Moment, Fetch)> = Vec::new();
    let mut now = Moment::ZERO;
    loop {
        let mut ended = false;
        while let Some(action) = player.poll(now) {
            match action {
                Action::Fetch(fetch) => {
                    // Computed from the piece and not drawn, so that it does not depend on the
                    // order of polls.
                    let took = (fetch.piece as u64 * 7919 + fetch.track as u64 * 104_729) % 5000;
                    in_flight.push((now + Duration::from_millis(took), fetch));
                }
                Action::Ended => ended = true,
                _ => {}
            }
        }
        if ended {
            assert_eq!(player.report(now).played, duration, "the whole title is played");
            return (now.since(Moment::ZERO), player.report(now));
        }
        let arrival = in_flight.iter().map(|(at, _)| *at).min();
        let wake = player.wake_at().into_iter().chain(arrival).min();
        now = wake.expect("a wake-up or an arrival").min(now + interval);
        if let Some(i) = in_flight.iter().position(|(at, _)| *at <= now) {
            let (_, fetch) = in_flight.swap_remove(i);
            player.arrived(now, fetch);
        }
    }
}

#[test]
fn the_report_covers_the_whole_time_and_does_not_depend_on_the_polling_interval() {
    for seed in 0..500 {
        let random = fastrand::Rng::with_seed(seed);
        let (took, report) = play_random(random.clone(), Duration::from_secs(1000));
        let startup = report.startup.expect("play-out started");
        // The last poll may come one nanosecond after the end.
        let gap = took.saturating_sub(startup + report.played + report.stalls.total);
        assert!(gap <= Duration::from_nanos(1), "seed {seed}: {gap:?} missing");
        let (_, often) = play_random(random, Duration::from_millis(3));
        assert_eq!(report, often, "seed {seed}");
    }
}
