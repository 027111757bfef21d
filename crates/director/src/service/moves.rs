//! Room for a viewer who was refused because the nodes with the title are full: a viewer of another
//! title, which other nodes have too, is sent on from one of these nodes.
//!
//! ```text
//!   refused a viewer of C: n1 and n2 are full       wanted: one viewer of H leaves n1
//!   a player of H at n1 asks where it should be     n3, then n1: told to one player
//!   n1 has room when that player has gone           C fits within the time of the refusal
//! ```
//!
//! Players of HLS and DASH ask twice a minute, and they ask the director that they have come by:
//! the others know nothing of its wishes, and a director that ends forgets them. A wish that no
//! player has met in a minute is over: the viewers were players of another kind, or have left. Who
//! could move is found by [`cluster::Director::find_move`]; that a node has room for the one who
//! moves is looked at again when the player asks (`steering`).

use cluster::{NodeId, TitleName};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::Duration;
use units::{Moment, locked};

/// The moves that are wanted, and those that were made.
#[derive(Debug, Default)]
pub(super) struct WantedMoves(Mutex<Moves>);

#[derive(Debug, Default)]
struct Moves {
    /// By node and title: viewers of the title who should leave the node, until when.
    wanted: BTreeMap<(NodeId, TitleName), (u32, Moment)>,
    /// For whom a move was looked for lately: for each viewer one at a time, however often it asks.
    asked: BTreeMap<(TitleName, IpAddr), MoveSearch>,
    /// By session: which node a viewer was told to leave, and when.
    told: BTreeMap<String, (NodeId, Moment)>,
    made: u64,
    /// When what is over was last looked for.
    looked: Moment,
}

#[derive(Clone, Copy, Debug)]
struct MoveSearch {
    at: Moment,
    is_wanted: bool,
}

impl Moves {
    /// Forgets what is over, once a second: everybody who is refused, or steered, comes by here.
    fn forget(&mut self, now: Moment) {
        if now.since(self.looked) < FORGOTTEN_EVERY {
            return;
        }
        self.looked = now;
        self.asked.retain(|_, asked| now.since(asked.at) < WANTED);
        self.wanted.retain(|_, (_, until)| *until > now);
        self.told.retain(|_, (_, at)| now.since(*at) < SETTLED);
    }
}

impl WantedMoves {
    /// The time within which the move that is wanted for this viewer, who was refused, makes room:
    /// none if nobody can move. `None`: nobody has looked for one lately.
    pub(super) fn recall(
        &self,
        title: &TitleName,
        client: IpAddr,
        now: Moment,
    ) -> Option<Option<Duration>> {
        let mut moves = locked(&self.0);
        moves.forget(now);
        if moves.asked.len() >= MOST {
            return Some(None);
        }
        let asked = moves.asked.get(&(title.clone(), client));
        let asked = asked.filter(|asked| now.since(asked.at) < WANTED)?;
        let left = MOVED_WITHIN.saturating_sub(now.since(asked.at));
        Some((asked.is_wanted && !left.is_zero()).then_some(left))
    }

    /// A move was looked for, for a viewer who was refused: one viewer of this title should leave
    /// this node, or nobody can.
    pub(super) fn want(
        &self,
        refused: (TitleName, IpAddr),
        found: Option<(NodeId, TitleName)>,
        now: Moment,
    ) {
        let mut moves = locked(&self.0);
        moves.asked.insert(refused, MoveSearch { at: now, is_wanted: found.is_some() });
        if let Some(found) = found {
            let wanted = moves.wanted.entry(found).or_insert((0, now));
            let viewers = if wanted.1 > now { wanted.0 } else { 0 };
            *wanted = (viewers + 1, now + WANTED);
        }
    }

    /// Whether a move may be wanted of the player of this session, which plays a title at a node:
    /// another one is wanted, or this player was told of one.
    pub(super) fn concern(
        &self,
        node: &NodeId,
        title: &TitleName,
        session: &str,
        now: Moment,
    ) -> bool {
        let moves = locked(&self.0);
        let wanted = moves.wanted.get(&(node.clone(), title.clone()));
        wanted.is_some_and(|(viewers, until)| *viewers > 0 && *until > now)
            || moves.told.contains_key(session)
    }

    /// Whether the player of this session, which plays a title at a node, should leave it. Who was
    /// told is told the same again, and is left alone for a while when it has gone.
    pub(super) fn leaves(
        &self,
        node: &NodeId,
        title: &TitleName,
        session: &str,
        now: Moment,
    ) -> bool {
        let mut moves = locked(&self.0);
        moves.forget(now);
        let told = moves.told.get(session).filter(|(_, at)| now.since(*at) < SETTLED);
        if let Some((from, at)) = told {
            return from == node && now.since(*at) < WANTED;
        }
        let is_session = !session.is_empty() && session.len() <= LONGEST_SESSION;
        let Some((viewers, until)) = moves.wanted.get_mut(&(node.clone(), title.clone())) else {
            return false;
        };
        if !is_session || *viewers == 0 || *until <= now {
            return false;
        }
        *viewers -= 1;
        moves.made += 1;
        moves.told.insert(session.to_owned(), (node.clone(), now));
        true
    }

    /// The node that the player of this session was told to leave, long enough ago that it has told
    /// since where it is; `None`: it was not told lately.
    pub(super) fn was_told_to_leave(&self, session: &str, now: Moment) -> Option<NodeId> {
        let moves = locked(&self.0);
        let (from, at) = moves.told.get(session)?;
        (now.since(*at) >= WANTED).then(|| from.clone())
    }

    /// Viewers who were told to move.
    pub(super) fn made(&self) -> u64 {
        locked(&self.0).made
    }
}

/// The time within which a move that is wanted has made room, if it does: a player asks twice a
/// minute, and what it leaves is free when it has fetched nothing there for a moment.
const MOVED_WITHIN: Duration = Duration::from_secs(40);
/// A wish is over after this time: all players have asked twice by then.
const WANTED: Duration = Duration::from_secs(60);
/// A viewer is moved once in this time.
const SETTLED: Duration = Duration::from_secs(600);
/// Time between two looks for what is over.
const FORGOTTEN_EVERY: Duration = Duration::from_secs(1);
/// Viewers for whom a move is wanted at a time: more are too many for moves to help.
const MOST: usize = 1000;
/// Characters of a session's name: those of nodes have 32.
const LONGEST_SESSION: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_viewers_leave_as_were_refused_each_once() {
        let (n1, n3) = (NodeId::new("n1").unwrap(), NodeId::new("n3").unwrap());
        let [cold, hot] = ["cold", "hot"].map(|name| TitleName::new(name).unwrap());
        let moves = WantedMoves::default();
        let at = |seconds| Moment::ZERO + Duration::from_secs(seconds);
        assert!(!moves.leaves(&n1, &hot, "a", at(0)), "nothing is wanted");
        let refused = |last| (cold.clone(), IpAddr::from([127, 0, 0, last]));
        let recall = |last, second| {
            let (title, client) = refused(last);
            let known = moves.recall(&title, client, at(second));
            known.map(|time| time.map_or(0, |time| time.as_secs()))
        };
        assert_eq!(recall(1, 0), None);
        (1..3).for_each(|last| moves.want(refused(last), Some((n1.clone(), hot.clone())), at(0)));
        moves.want(refused(3), None, at(0));
        let known = [recall(1, 0), recall(1, 30), recall(1, 50), recall(3, 1), recall(4, 1)];
        assert_eq!(known, [Some(40), Some(10), Some(0), Some(0), None]);
        // (session, node, title, second, whether it leaves)
        let rows = [
            ("a", &n1, &cold, 1, false),
            ("a", &n3, &hot, 1, false),
            ("", &n1, &hot, 1, false),
            ("a", &n1, &hot, 1, true),
            ("a", &n1, &hot, 31, true),
            ("b", &n1, &hot, 31, true),
            ("c", &n1, &hot, 31, false),
            ("a", &n3, &hot, 61, false),
        ];
        for (session, node, title, second, leaves) in rows {
            let is_so = moves.leaves(node, title, session, at(second));
            assert_eq!(is_so, leaves, "{session} at {node} after {second} s");
        }
        assert_eq!(moves.made(), 2);
        let left = [("a", 60), ("a", 61), ("c", 61)];
        let left = left.map(|(session, second)| moves.was_told_to_leave(session, at(second)));
        assert_eq!(left, [None, Some(n1.clone()), None]);
        assert_eq!(recall(1, 60), None, "the wish is over");
        moves.want(refused(5), Some((n1.clone(), hot.clone())), at(100));
        assert!(!moves.leaves(&n1, &hot, "a", at(101)), "it was moved not long ago");
        assert!(!moves.leaves(&n1, &hot, "c", at(161)), "too late");
    }
}
