//! Viewers whom a director has lately refused for want of copies: no node that answers has the
//! title, or those that have it are full. Placement expects them.
//!
//! A viewer is an address: a player that asks again and again counts once, and so do all behind one
//! proxy.

use cluster::TitleName;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use units::locked;

/// Refused viewers of the last minutes.
#[derive(Debug)]
pub(crate) struct UnmetDemand(Mutex<RefusedViewers>);

#[derive(Debug)]
struct RefusedViewers {
    since: Instant,
    current: BTreeSet<(TitleName, IpAddr)>,
    /// Viewers who were refused in the period before.
    before: BTreeSet<(TitleName, IpAddr)>,
}

impl RefusedViewers {
    /// Forgets what is old.
    fn at(&mut self, now: Instant) -> &mut Self {
        let periods = now.saturating_duration_since(self.since).as_secs() / PERIOD.as_secs();
        if periods > 0 {
            let current = std::mem::take(&mut self.current);
            self.before = if periods == 1 { current } else { BTreeSet::new() };
            self.since = now;
        }
        self
    }
}

impl UnmetDemand {
    /// Nobody was refused yet.
    pub(crate) fn new(now: Instant) -> Self {
        let (current, before) = (BTreeSet::new(), BTreeSet::new());
        Self(Mutex::new(RefusedViewers { since: now, current, before }))
    }

    /// Counts a viewer who was refused.
    pub(crate) fn refused(&self, title: &TitleName, client: IpAddr, now: Instant) {
        let mut refused = locked(&self.0);
        let refused = refused.at(now);
        if refused.current.len() < MOST_VIEWERS {
            refused.current.insert((title.clone(), client));
        }
    }

    /// The viewers who were refused in the last minutes, by title.
    pub(crate) fn viewers(&self, now: Instant) -> BTreeMap<TitleName, u32> {
        let mut refused = locked(&self.0);
        let refused = refused.at(now);
        let mut viewers = BTreeMap::new();
        for (title, _) in refused.current.union(&refused.before) {
            *viewers.entry(title.clone()).or_insert(0) += 1;
        }
        viewers
    }
}

/// Time for which a refused viewer is remembered, and up to twice as long.
const PERIOD: Duration = Duration::from_secs(300);
/// Viewers of one period: what they take in a record must fit into a request to etcd.
const MOST_VIEWERS: usize = 4_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_viewer_counts_once_and_for_some_minutes() {
        let start = Instant::now();
        let unmet = UnmetDemand::new(start);
        let title = |name: &str| TitleName::new(name).unwrap();
        let at = |seconds| start + Duration::from_secs(seconds);
        let [a, b] = ["192.0.2.1", "192.0.2.2"].map(|address| address.parse().unwrap());
        for (seconds, name, client) in
            [(0, "film", a), (9, "film", a), (9, "song", a), (290, "film", b)]
        {
            unmet.refused(&title(name), client, at(seconds));
        }
        let shown = |seconds| {
            let viewers = unmet.viewers(at(seconds));
            viewers.iter().map(|(title, count)| format!("{title} {count}")).collect::<Vec<_>>()
        };
        assert_eq!(shown(299), ["film 2", "song 1"]);
        assert_eq!(shown(301), ["film 2", "song 1"]);
        unmet.refused(&title("film"), b, at(302));
        assert_eq!(shown(590), ["film 2", "song 1"]);
        assert_eq!(shown(602), ["film 1"]);
        assert_eq!(shown(2000), [""; 0]);
    }
}
