//! The loop of a driver, as the documentation of [`Engine`] has it.

use super::*;
use std::collections::BTreeMap;

enum Event {
    ReadDone(ReadId),
    Sent(RequestId, ReadId),
}

#[test]
fn a_driver_s_loop() {
    let mut engine = Engine::new(config(2, 20));
    let mut now = Moment::ZERO;
    let AdmissionDecision::Admitted { session, .. } = engine.admit(now, request(layout(1))) else {
        panic!("an empty server has room for one viewer");
    };
    let whole = Part { track: 0, bytes: 0..u64::from(PIECES * PIECE) };
    engine.request(now, MediaRequest { request: RequestId(1), session, parts: vec![whole] });
    // Reads take 10 ms each, sockets nothing.
    let mut events = BTreeMap::<Moment, Vec<Event>>::new();
    let mut complete = false;
    while !complete {
        for action in engine.take_actions() {
            match action {
                Action::Read { read, .. } => {
                    let done = now + Duration::from_millis(10);
                    events.entry(done).or_default().push(Event::ReadDone(read));
                }
                Action::Deliver { request, read, .. } => {
                    events.entry(now).or_default().push(Event::Sent(request, read));
                }
                Action::Complete { .. } => complete = true,
                _ => {}
            }
        }
        let wakeup = engine.next_wakeup();
        match events.first_entry().filter(|due| *due.key() <= wakeup) {
            Some(due) => {
                now = *due.key();
                for event in due.remove() {
                    match event {
                        Event::ReadDone(read) => engine.read_done(now, read, ReadOutcome::Good),
                        Event::Sent(request, read) => engine.sent(now, request, read),
                    }
                }
            }
            None => {
                now = wakeup;
                engine.tick(now);
            }
        }
    }
    engine.close(now, session);
    assert!(engine.is_empty(), "nothing is booked when all have left");
    assert_eq!(engine.status(now).deadline_misses, 0);
}
