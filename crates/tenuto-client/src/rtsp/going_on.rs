//! What a viewer over RTSP knows of the director that has sent it to its node, and where it goes on
//! when it loses the node.
//!
//! ```text
//!   title time    begins ......... latest that has arrived          the player's clock goes on
//!   present node                first LDU ▶ ........▶               LDUs up to the seam are known
//!                 └── offset ──┘           └ seam
//! ```
//!
//! The first LDU is the last that has arrived, or the key frame before that where the server begins
//! at key frames alone. Only numbers: the viewer asks, and speaks with its player.

use super::receiver::Reception;
use crate::url::Url;
use std::time::Duration;
use units::Moment;

/// How a viewer goes on at another node.
#[derive(Debug)]
pub(super) struct GoingOn {
    /// The first server that was asked.
    first: Url,
    /// Whether that one has sent the viewer to another, and is a director.
    pub(super) is_directed: bool,
    /// The parameter with the ticket for the last node: it shows the director that the viewer was
    /// admitted.
    ticket: String,
    /// Whether the viewer has lost its node, and is not admitted at another.
    pub(super) is_away: bool,
    /// When the director is asked; `None`: it has been, or is when the viewer resumes.
    pub(super) ask_at: Option<Moment>,
    /// Attempts since media last came.
    tries: u8,
    /// Where in the title the stream begins at the next node.
    pub(super) from: Duration,
    /// Whether play-out begins anew there, as after a seek.
    pub(super) is_anew: bool,
    /// Media time of the present stream's beginning on the player's clock.
    pub(super) offset: Duration,
    /// Media time on that clock up to which LDUs came from nodes before.
    seam: Option<Duration>,
    /// Packets from nodes before.
    pub(super) received: Reception,
    /// Whether a node has begun to play: before that the viewer has lost nothing but its way.
    pub(super) is_admitted: bool,
    /// Nodes at which the viewer has gone on.
    pub(super) failovers: u32,
}

impl GoingOn {
    /// Nothing is known but the address of the first server.
    pub(super) fn new(first: Url) -> Self {
        Self {
            first,
            is_directed: false,
            ticket: String::new(),
            is_away: false,
            ask_at: None,
            tries: 0,
            from: Duration::ZERO,
            is_anew: false,
            offset: Duration::ZERO,
            seam: None,
            received: Reception::default(),
            is_admitted: false,
            failovers: 0,
        }
    }

    /// The viewer was sent to this address, of a node.
    pub(super) fn sent_to(&mut self, node: &Url) {
        self.is_directed = true;
        let ticket = node.query().split('&').find(|parameter| parameter.starts_with("ticket="));
        self.ticket = ticket.unwrap_or_default().to_owned();
    }

    /// The address at which the director is asked again.
    pub(super) fn director(&self) -> Url {
        self.first.clone().with_query(&self.ticket)
    }

    /// The node is lost, or the next one is not reached: the director is asked, at once at first
    /// and then after `wait`. False: it was asked too often.
    pub(super) fn lose(&mut self, now: Moment, wait: Option<Duration>) -> bool {
        let at_once = self.tries == 0 && wait.is_none();
        let wait = if at_once { Duration::ZERO } else { wait.unwrap_or(PAUSE).max(PAUSE) };
        (self.is_away, self.ask_at) = (true, Some(now + wait));
        self.tries += 1;
        self.tries <= if self.is_admitted { MOST_TRIES } else { FIRST_TRIES }
    }

    /// The viewer is admitted at a node, whose stream begins so long after that of the first one on
    /// the player's clock; `latest`: what has come so far on that clock.
    pub(super) fn arrive(&mut self, offset: Duration, latest: Duration) {
        (self.is_away, self.ask_at) = (false, None);
        (self.offset, self.seam) = match self.is_anew {
            true => (Duration::ZERO, None),
            false => (offset, Some(latest)),
        };
        self.failovers += u32::from(self.is_admitted);
    }

    /// Another part of the title begins at the same node.
    pub(super) fn begin_anew(&mut self) {
        (self.offset, self.seam) = (Duration::ZERO, None);
    }

    /// The media time on the player's clock of an LDU of the present stream; `None`: it came from a
    /// node before.
    pub(super) fn due(&mut self, due: Duration) -> Option<Duration> {
        let due = self.offset + due;
        if self.seam.is_some_and(|seam| due <= seam) {
            return None;
        }
        self.tries = 0;
        Some(due)
    }
}

/// Attempts of a viewer whom no node has admitted: whoever waits for a title to begin is told soon
/// that it does not.
pub(super) const FIRST_TRIES: u8 = 4;
/// Attempts until media comes: the lease of a node that is lost has ended meanwhile.
const MOST_TRIES: u8 = 16;
/// Time between two attempts.
const PAUSE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn going_on() -> GoingOn {
        GoingOn::new(Url::parse("rtsp://director/t/film").unwrap())
    }

    #[test]
    fn the_director_is_asked_at_once_then_with_pauses_and_not_for_ever() {
        let mut state = going_on();
        let mut asked = Vec::new();
        let now = Moment::ZERO;
        for wait in [None, None, Some(MS(200)), Some(MS(3000))] {
            assert!(state.lose(now, wait));
            asked.push(state.ask_at.unwrap().since(now));
        }
        assert_eq!(asked, [MS(0), MS(1000), MS(1000), MS(3000)]);
        assert!(!state.lose(now, None), "a viewer who was never admitted gives up");
        let mut state = GoingOn { is_admitted: true, ..going_on() };
        assert_eq!((0..20).filter(|_| state.lose(now, None)).count(), 16);
    }

    #[test]
    fn the_director_is_shown_the_ticket_of_the_last_node() {
        let mut state = going_on();
        for (node, director) in [
            ("rtsp://n1/t/film?a=1&ticket=x.y", "rtsp://director/t/film?ticket=x.y"),
            ("rtsp://n2/t/film?ticket=z", "rtsp://director/t/film?ticket=z"),
            ("rtsp://n3/t/film", "rtsp://director/t/film"),
        ] {
            state.sent_to(&Url::parse(node).unwrap());
            assert_eq!(state.director().to_string(), director);
        }
    }

    #[test]
    fn ldus_that_came_from_the_node_before_are_left_out() {
        let mut state = GoingOn { is_admitted: true, ..going_on() };
        state.lose(Moment::ZERO, None);
        // It begins at the key frame, a second before the end of what has come.
        state.arrive(MS(4000), MS(5000));
        let due = [0, 960, 1000, 1040].map(|at| state.due(MS(at)));
        assert_eq!(due, [None, None, None, Some(MS(5040))]);
        assert_eq!((state.failovers, state.is_away), (1, false));
        state.begin_anew();
        assert_eq!(state.due(MS(0)), Some(MS(0)));
        state.is_anew = true;
        state.arrive(MS(4000), MS(5000));
        assert_eq!(state.due(MS(40)), Some(MS(40)));
    }
}
