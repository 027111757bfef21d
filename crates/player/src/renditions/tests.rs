//! Tests of the adaptation rule: against values computed by hand, against a slow and obvious
//! implementation, and with a player on a network of changing rate, in virtual time.

use super::*;
use crate::{Action, Behaviour, Player, PlayerOptions, PlayerReport, Timeline, TrackTimeline};
use expect_test::{Expect, expect};
use std::sync::Arc;
use units::{ByteCount, Moment};

const MBIT: u64 = 1_000_000;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Renditions of 1, 3 and 6 Mb/s at most, 0.8, 2.5 and 5 Mb/s on average.
fn offers() -> Vec<Rendition> {
    let offer = |(peak, mean)| Rendition { peak: BitRate(peak), mean: BitRate(mean), listed: true };
    [(MBIT, 800_000), (3 * MBIT, 2_500_000), (6 * MBIT, 5 * MBIT)].map(offer).into()
}

#[test]
fn the_rule_gives_the_results_computed_by_hand() {
    // Throughput in Mb/s, previous rendition, milliseconds ahead, expected rendition; pieces of
    // 4 s, and 100 ms to the first byte of each.
    let cases = [
        // With two pieces ahead the mean counts, and 70 % of 10 is above 5.
        (10.0, 0, 8000, 2),
        // With one piece ahead the peak counts: 5.6 is below 6, and 3 takes 0.1 + 12 / 5.6 s.
        (8.0, 0, 4000, 1),
        // For the previous rendition 95 % count: 0.1 + 24 / 7.6 = 3.26 s.
        (8.0, 2, 4000, 2),
        (8.0, 2, 3300, 2),
        (8.0, 2, 3200, 1),
        // No rendition arrives within 0.5 s, all of them within 4.5 s.
        (8.0, 2, 500, 2),
        // Empty buffer: 3 takes 0.1 + 12 / 3.04 = 4.05 s, and a stall of 4 s is allowed.
        (3.2, 1, 0, 0),
        (3.3, 1, 0, 1),
        // The throughput is below all renditions.
        (0.5, 2, 30_000, 0),
        // The buffer would cover the fetch, but the throughput is below the rate.
        (2.0, 2, 30_000, 0),
        // 0.95 x 2.7 is above the mean and below the peak.
        (2.7, 1, 30_000, 1),
        (2.7, 1, 7900, 0),
    ];
    let offers = offers();
    for (rate, previous, ahead, expected) in cases {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "values of the table"
        )]
        let situation = Situation {
            offers: &offers,
            previous,
            rate: BitRate((rate * 1e6) as u64),
            wait: ms(100),
            list: Duration::ZERO,
            ahead: ms(ahead),
            piece: ms(4000),
        };
        assert_eq!(next(&situation), expected, "{rate} Mb/s after {previous}, {ahead} ms ahead");
    }
}

#[test]
fn the_time_for_a_missing_playlist_counts() {
    let mut offers = offers();
    offers[2].listed = false;
    let chosen = |list: u64| {
        let (rate, wait, ahead, piece) = (BitRate(10 * MBIT), ms(100), ms(8000), ms(4000));
        next(&Situation { offers: &offers, previous: 0, rate, wait, list: ms(list), ahead, piece })
    };
    // 0.1 + 20 / 7 s for the piece; 0.1 s and the time of the last playlist for the playlist.
    assert_eq!([chosen(0), chosen(4900), chosen(5000)], [2, 2, 1]);
}

#[test]
fn the_first_rendition_is_limited_by_the_one_listed_first_and_by_five_megabits() {
    let first_of = |peaks: &[u64], listed_first: usize| {
        let offer =
            |peak: &u64| Rendition { peak: BitRate(*peak), mean: BitRate(*peak), listed: false };
        first(&peaks.iter().map(offer).collect::<Vec<_>>(), listed_first)
    };
    let ladder = [MBIT, 3 * MBIT, 6 * MBIT];
    assert_eq!([0, 1, 2].map(|listed_first| first_of(&ladder, listed_first)), [0, 1, 1]);
    assert_eq!(first_of(&[100_000, 400_000, 600_000], 0), 1, "at least 500 kb/s are assumed");
    assert_eq!(first_of(&[8 * MBIT, 20 * MBIT], 1), 0, "the lowest, if all are above");
}

/// The highest rendition that arrives in time, computed one by one in seconds and bits.
fn obvious(situation: &Situation<'_>) -> usize {
    #[expect(clippy::cast_precision_loss, reason = "rates of a test")]
    let bits = |rate: BitRate| rate.0 as f64;
    let (wait, ahead) = (situation.wait.as_secs_f64(), situation.ahead.as_secs_f64());
    let piece = situation.piece.as_secs_f64();
    let highest = |stall: f64| {
        let mut found = None;
        for (rendition, offer) in situation.offers.iter().enumerate() {
            let factor = if rendition > situation.previous { 0.7 } else { 0.95 };
            let usable = bits(situation.rate) * factor;
            let needed = if stall == 0.0 && ahead >= 2.0 * piece { offer.mean } else { offer.peak };
            let mut time = wait + bits(needed) * piece / usable;
            if !offer.listed {
                time += wait + situation.list.as_secs_f64();
            }
            if usable >= bits(needed) && (time <= wait || time < ahead + stall) {
                found = Some(rendition);
            }
        }
        found
    };
    let first = if ahead > 0.0 { highest(0.0) } else { None };
    first.or_else(|| highest(piece.min(4.0))).unwrap_or(0)
}

#[test]
fn the_rule_agrees_with_the_obvious_implementation() {
    let mut random = fastrand::Rng::with_seed(7);
    let mut chosen = [0u32; 6];
    for case in 0..20_000 {
        let mut peak = 0;
        let offers: Vec<Rendition> = (0..random.usize(1..=6))
            .map(|_| {
                peak += random.u64(100_000..4_000_000);
                let (mean, listed) = (BitRate(peak * random.u64(50..=100) / 100), random.bool());
                Rendition { peak: BitRate(peak), mean, listed }
            })
            .collect();
        let situation = Situation {
            previous: random.usize(..offers.len()),
            offers: &offers,
            rate: BitRate(random.u64(0..15_000_000)),
            wait: ms(random.u64(5..400)),
            list: ms(random.u64(0..800)),
            ahead: ms(if random.u8(..8) == 0 { 0 } else { random.u64(0..30_000) }),
            piece: ms(random.u64(500..10_000)),
        };
        let found = next(&situation);
        assert_eq!(found, obvious(&situation), "case {case}: {situation:?}");
        chosen[found] += 1;
    }
    assert!(chosen.iter().all(|count| *count > 20), "each rendition is chosen: {chosen:?}");
}

/// Plays a film of 160 s in pieces of 4 s over a network, given as (second, Mb/s from there on).
/// Returns each change of the rendition (second, piece, rendition), and the report.
fn play(rule: AbrRule, network: &[(u64, u64)]) -> (String, PlayerReport) {
    let mut renditions = RenditionSelector::new(rule, offers(), 2);
    let track = TrackTimeline::from_durations(std::iter::repeat_n(ms(4000), 40));
    let timeline = Arc::new(Timeline { tracks: vec![track] });
    let options = PlayerOptions::default();
    let mut player = Player::new(Moment::ZERO, timeline, options, &Behaviour::default());
    let (mut now, mut changes, mut last) = (Moment::ZERO, String::new(), None);
    let mut in_flight = None;
    loop {
        while let Some(action) = player.poll(now) {
            let Action::Fetch(fetch) = action else { continue };
            let chosen = renditions.next(player.ahead(0), ms(4000));
            if last != Some(chosen) {
                changes += &format!("{}:{}:{chosen} ", now.0 / 1_000_000_000, fetch.piece);
                last = Some(chosen);
            }
            let bytes = offers()[chosen].mean.bytes_in(ms(4000));
            in_flight = Some((fetch, chosen, bytes, now, arrival(network, now, bytes)));
        }
        let arrives = in_flight.map(|(.., at)| at);
        let Some(at) = [arrives, player.wake_at()].into_iter().flatten().min() else { break };
        now = at;
        if let Some((fetch, chosen, bytes, requested, _)) = in_flight.take_if(|(.., at)| *at <= now)
        {
            let took = now.since(requested);
            renditions.piece_received(chosen, &Download { bytes, took, waited: ms(20) });
            player.arrived(now, fetch);
        }
    }
    (changes, player.report(now))
}

/// When `bytes` have arrived: transmission starts 20 ms after the request and is computed
/// millisecond by millisecond.
fn arrival(network: &[(u64, u64)], requested: Moment, bytes: ByteCount) -> Moment {
    let (mut at, mut bits) = (requested + ms(20), bytes.0 * 8);
    while bits > 0 {
        let second = at.0 / 1_000_000_000;
        let rate = network.iter().rfind(|(from, _)| *from <= second).map_or(1, |(_, mbit)| *mbit);
        bits = bits.saturating_sub(rate * 1000);
        at = at + ms(1);
    }
    at
}

fn check(rule: AbrRule, network: &[(u64, u64)], expect: Expect) {
    let (changes, report) = play(rule, network);
    let stalls = report.stalls;
    expect.assert_eq(&format!("{changes}{} stalls, {:?}", stalls.count, stalls.total));
}

#[test]
fn when_the_throughput_falls_and_rises_the_rendition_follows() {
    let network = [(0, 10), (40, 2), (100, 10)];
    check(AbrRule::HlsJs, &network, expect!["0:0:1 1:1:2 45:18:1 55:20:0 127:39:1 0 stalls, 0ns"]);
    check(AbrRule::Never, &network, expect!["0:0:2 2 stalls, 10.008s"]);
}

#[test]
fn with_constant_throughput_the_rendition_stays() {
    check(AbrRule::HlsJs, &[(0, 20)], expect!["0:0:1 0:1:2 0 stalls, 0ns"]);
    check(AbrRule::HlsJs, &[(0, 4)], expect!["0:0:1 0 stalls, 0ns"]);
}
