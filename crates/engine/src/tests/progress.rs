//! Where viewers are: the play-out clock, and what has been delivered.

use super::*;

/// Position and delivered time of a session, in milliseconds.
fn progress(fixture: &Fixture, session: SessionId) -> Option<(u128, u128)> {
    let status = fixture.engine.session(fixture.now, session).expect("open");
    assert_eq!(status.duration, Duration::from_secs(20));
    assert_eq!(status.tracks, [0]);
    let progress = status.progress?;
    let until = progress.tracks.iter().map(|track| track.delivered_until).min().unwrap();
    Some((progress.clock.min(until).as_millis(), until.as_millis()))
}

#[test]
fn a_position_follows_the_clock_up_to_what_was_delivered() {
    let mut fixture = Fixture::new(config(4, 1000));
    let viewer = fixture.admit(1).unwrap();
    assert_eq!(progress(&fixture, viewer), Some((0, 0)));
    // Pieces asked for, milliseconds passed; position and delivered time after it.
    let rows = [
        (0..4, 2000, (2000, 2000)),
        (4..12, 1000, (3000, 6000)),
        // A pause: no more than was delivered has been played.
        (12..12, 2500, (5500, 6000)),
        (12..12, 1500, (6000, 6000)),
        (12..PIECES, 1000, (8000, 20_000)),
    ];
    for (pieces, time, expected) in rows {
        if !pieces.is_empty() {
            fixture.want(viewer, pieces.clone());
        }
        fixture.pass(time);
        assert_eq!(progress(&fixture, viewer), Some(expected), "{pieces:?}");
    }
    // Without a reservation there is no clock.
    let silent = fixture.admit(2).unwrap();
    fixture.want(silent, 0..1);
    fixture.pass(12_000);
    assert_eq!(progress(&fixture, silent), None);
}
