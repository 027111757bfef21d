//! The rule against what was worked out by hand, against a slow and obvious one, and with a player
//! on a way whose width changes, in virtual time.

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
fn the_rule_is_that_of_its_source() {
    // The way's rate in Mb/s, the rendition before, milliseconds ahead: with pieces of 4 s and 100
    // ms of waiting for each.
    let cases = [
        // 70 % of 10 is above 5 on average, with two pieces ahead.
        (10.0, 0, 8000, 2),
        // Not two pieces: the peak counts, and 5.6 is below 6; 3 is here in 0.1 + 12 / 5.6 s.
        (8.0, 0, 4000, 1),
        // Where it is already, 95 %: 0.1 + 24 / 7.6 = 3.26 s.
        (8.0, 2, 4000, 2),
        (8.0, 2, 3300, 2),
        (8.0, 2, 3200, 1),
        // Nothing is here in half a second; in 4.5 s all are.
        (8.0, 2, 500, 2),
        // Empty: 3 needs 0.1 + 12 / 3.04 = 4.05 s, and 4 s may be waited.
        (3.2, 1, 0, 0),
        (3.3, 1, 0, 1),
        // Too narrow for any.
        (0.5, 2, 30_000, 0),
        // Enough ahead to wait for it, not enough to keep it up.
        (2.0, 2, 30_000, 0),
        // 0.95 x 2.7 is above the mean, if not above the peak.
        (2.7, 1, 30_000, 1),
        (2.7, 1, 7900, 0),
    ];
    let offers = offers();
    for (rate, before, ahead, wanted) in cases {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "of a table")]
        let situation = Situation {
            offers: &offers,
            before,
            rate: BitRate((rate * 1e6) as u64),
            wait: ms(100),
            list: Duration::ZERO,
            ahead: ms(ahead),
            piece: ms(4000),
        };
        assert_eq!(next(&situation), wanted, "{rate} Mb/s, {before} before, {ahead} ms ahead");
    }
}

#[test]
fn a_list_that_is_not_here_is_part_of_the_way() {
    let mut offers = offers();
    offers[2].listed = false;
    let chosen = |list: u64| {
        let (rate, wait, ahead, piece) = (BitRate(10 * MBIT), ms(100), ms(8000), ms(4000));
        next(&Situation { offers: &offers, before: 0, rate, wait, list: ms(list), ahead, piece })
    };
    // 0.1 + 20 / 7 s for the piece, 0.1 s and what the last one took for the list.
    assert_eq!([chosen(0), chosen(4900), chosen(5000)], [2, 2, 1]);
}

#[test]
fn the_first_is_no_larger_than_what_is_named_first_or_five_megabits() {
    let of = |peaks: &[u64], named: usize| {
        let offer =
            |peak: &u64| Rendition { peak: BitRate(*peak), mean: BitRate(*peak), listed: false };
        first(&peaks.iter().map(offer).collect::<Vec<_>>(), named)
    };
    let ladder = [MBIT, 3 * MBIT, 6 * MBIT];
    assert_eq!([0, 1, 2].map(|named| of(&ladder, named)), [0, 1, 1]);
    assert_eq!(of(&[100_000, 400_000, 600_000], 0), 1, "500 kb/s are taken for granted");
    assert_eq!(of(&[8 * MBIT, 20 * MBIT], 1), 0, "the lowest, if none is as small");
}

/// All that are here in time, one by one, in seconds and bits; the highest of them.
fn obvious(situation: &Situation<'_>) -> usize {
    #[expect(clippy::cast_precision_loss, reason = "of a test")]
    let number = |rate: BitRate| rate.0 as f64;
    let (wait, ahead) = (situation.wait.as_secs_f64(), situation.ahead.as_secs_f64());
    let piece = situation.piece.as_secs_f64();
    let highest = |stall: f64| {
        let mut found = None;
        for (rendition, offer) in situation.offers.iter().enumerate() {
            let factor = if rendition > situation.before { 0.7 } else { 0.95 };
            let usable = number(situation.rate) * factor;
            let takes = if stall == 0.0 && ahead >= 2.0 * piece { offer.mean } else { offer.peak };
            let mut time = wait + number(takes) * piece / usable;
            if !offer.listed {
                time += wait + situation.list.as_secs_f64();
            }
            if usable >= number(takes) && (time <= wait || time < ahead + stall) {
                found = Some(rendition);
            }
        }
        found
    };
    let first = if ahead > 0.0 { highest(0.0) } else { None };
    first.or_else(|| highest(piece.min(4.0))).unwrap_or(0)
}

#[test]
fn the_rule_agrees_with_the_obvious_one() {
    let mut random = fastrand::Rng::with_seed(7);
    let mut chosen = [0u32; 6];
    for round in 0..20_000 {
        let mut peak = 0;
        let offers: Vec<Rendition> = (0..random.usize(1..=6))
            .map(|_| {
                peak += random.u64(100_000..4_000_000);
                let (mean, listed) = (BitRate(peak * random.u64(50..=100) / 100), random.bool());
                Rendition { peak: BitRate(peak), mean, listed }
            })
            .collect();
        let situation = Situation {
            before: random.usize(..offers.len()),
            offers: &offers,
            rate: BitRate(random.u64(0..15_000_000)),
            wait: ms(random.u64(5..400)),
            list: ms(random.u64(0..800)),
            ahead: ms(if random.u8(..8) == 0 { 0 } else { random.u64(0..30_000) }),
            piece: ms(random.u64(500..10_000)),
        };
        let found = next(&situation);
        assert_eq!(found, obvious(&situation), "round {round}: {situation:?}");
        chosen[found] += 1;
    }
    assert!(chosen.iter().all(|count| *count > 20), "each is somebody's: {chosen:?}");
}

/// A player of a film of 160 s in pieces of 4 s, on a way of so many Mb/s from each second on.
/// Gives where the rendition changed (second, piece, rendition), and what the viewer saw.
fn watched(switching: AbrRule, way: &[(u64, u64)]) -> (String, PlayerReport) {
    let mut renditions = RenditionSelector::new(switching, offers(), 2);
    let track = TrackTimeline::from_durations(std::iter::repeat_n(ms(4000), 40));
    let timeline = Arc::new(Timeline { tracks: vec![track] });
    let options = PlayerOptions::default();
    let mut player = Player::new(Moment::ZERO, timeline, options, &Behaviour::default());
    let (mut now, mut changes, mut last) = (Moment::ZERO, String::new(), None);
    let mut coming = None;
    loop {
        while let Some(action) = player.poll(now) {
            let Action::Fetch(fetch) = action else { continue };
            let chosen = renditions.next(player.ahead(0), ms(4000));
            if last != Some(chosen) {
                changes += &format!("{}:{}:{chosen} ", now.0 / 1_000_000_000, fetch.piece);
                last = Some(chosen);
            }
            let bytes = offers()[chosen].mean.bytes_in(ms(4000));
            coming = Some((fetch, chosen, bytes, now, arrival(way, now, bytes)));
        }
        let arrives = coming.map(|(.., at)| at);
        let Some(at) = [arrives, player.wake_at()].into_iter().flatten().min() else { break };
        now = at;
        if let Some((fetch, chosen, bytes, asked, _)) = coming.take_if(|(.., at)| *at <= now) {
            let took = now.since(asked);
            renditions.came(chosen, &Download { bytes, took, waited: ms(20) });
            player.arrived(now, fetch);
        }
    }
    (changes, player.report(now))
}

/// 20 ms after it was asked for it begins to come, millisecond by millisecond.
fn arrival(way: &[(u64, u64)], asked: Moment, bytes: ByteCount) -> Moment {
    let (mut at, mut bits) = (asked + ms(20), bytes.0 * 8);
    while bits > 0 {
        let second = at.0 / 1_000_000_000;
        let width = way.iter().rfind(|(from, _)| *from <= second).map_or(1, |(_, mbit)| *mbit);
        bits = bits.saturating_sub(width * 1000);
        at = at + ms(1);
    }
    at
}

fn check(switching: AbrRule, way: &[(u64, u64)], expect: Expect) {
    let (changes, report) = watched(switching, way);
    let stalls = report.stalls;
    let seen = format!("{changes}{} stalls, {:?}", stalls.count, stalls.total);
    expect.assert_eq(&seen);
}

#[test]
fn on_a_way_that_becomes_narrow_and_wide_again_it_goes_down_and_up() {
    let way = [(0, 10), (40, 2), (100, 10)];
    check(AbrRule::HlsJs, &way, expect!["0:0:1 1:1:2 45:18:1 55:20:0 127:39:1 0 stalls, 0ns"]);
    check(AbrRule::Never, &way, expect!["0:0:2 2 stalls, 10.008s"]);
}

#[test]
fn on_a_way_that_is_wide_enough_it_stays_with_the_best() {
    check(AbrRule::HlsJs, &[(0, 20)], expect!["0:0:1 0:1:2 0 stalls, 0ns"]);
    check(AbrRule::HlsJs, &[(0, 4)], expect!["0:0:1 0 stalls, 0ns"]);
}
