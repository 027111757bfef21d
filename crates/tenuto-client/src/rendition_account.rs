//! The renditions that each viewer of a run received; [`renditions`](super::renditions) rates them.

use super::renditions::{ReceivedSegment, RenditionStats, of_viewer};
use super::session::Session;
use std::collections::BTreeMap;
use units::BitRate;

/// The account of each viewer; `None` where the server does not declare rates.
pub(crate) fn shown(sessions: &[Session]) -> Vec<Option<RenditionStats>> {
    let mut best: BTreeMap<String, BitRate> = BTreeMap::new();
    for session in sessions {
        if let Some(offered) = &session.offered {
            let of_address = best.entry(session.url.to_string()).or_default();
            *of_address = (*of_address).max(offered.peaks[offered.best]);
        }
    }
    let of = |session: &Session| {
        let offered = session.offered.as_ref()?;
        let mut timelines = session.timelines.iter().peekable();
        let mut track = timelines.next()?.1.tracks.first()?;
        let pieces = session.fetched.iter().enumerate().filter_map(|(number, fetched)| {
            while let Some((_, next)) = timelines.next_if(|(before, _)| *before <= number) {
                track = next.tracks.first()?;
            }
            (fetched.track == 0).then(|| ReceivedSegment {
                piece: fetched.piece,
                rate: offered.peaks[fetched.rendition],
                start: track.start(fetched.piece),
                length: track.start(fetched.piece + 1) - track.start(fetched.piece),
            })
        });
        Some(of_viewer(&pieces.collect::<Vec<_>>(), best[&session.url.to_string()]))
    };
    sessions.iter().map(of).collect()
}
