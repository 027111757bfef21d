//! How many more viewers fit, asked of a copy: the engine itself goes on as if nobody had asked.

use super::*;

/// Most of them share no read: each watches another title.
#[test]
fn as_many_fit_as_are_told_and_nothing_has_changed() {
    // Reads per slot, pieces of buffers, viewers who play already, and how many more fit.
    let mut told = Vec::new();
    for (min_read, buffers, playing) in [(4, 1000, 0), (4, 1000, 2), (8, 1000, 2), (8, 20, 1)] {
        let mut fixture = Fixture::new(config(min_read, buffers));
        for title in 0..playing {
            fixture.admit(title).unwrap();
        }
        fixture.pass(700);
        let (now, before) = (fixture.now, fixture.engine.status(fixture.now));
        let asked = request(layout(77));
        let headroom = fixture.engine.clone().headroom(now, &asked, 100);
        assert_eq!(fixture.engine.status(now), before, "the original is as it was");

        // The same requests, one after the other, of the engine that plays.
        let starts = (0..100_u32).map(|number| (f64::from(number) * 0.618_033_988_749_895).fract());
        let admitted = starts.take_while(|part| {
            let start = Duration::from_secs(10).mul_f64(*part);
            let request = AdmitRequest { start, ..asked.clone() };
            matches!(fixture.engine.admit(now, request), AdmissionDecision::Admitted { .. })
        });
        assert_eq!(admitted.count(), headroom.fits as usize);
        let resource = headroom.refusal.expect("100 do not fit").resource;
        told.push((headroom.fits, resource));
    }
    let (disk, memory) = (Some(Resource::Disk), Some(Resource::Memory));
    assert_eq!(told, [(2, disk), (2, disk), (3, disk), (1, memory)]);
}

#[test]
fn no_more_are_counted_than_were_asked_about() {
    let fixture = Fixture::new(config(8, 1000));
    let headroom = fixture.engine.headroom(Moment::ZERO, &request(layout(1)), 2);
    assert_eq!((headroom.fits, headroom.refusal), (2, None));
}
