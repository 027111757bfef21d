//! What players report of themselves (CMCD), kept for each session and counted for the server.
//!
//! The reports of a session's requests are merged: `/sessions` shows the last value of each key.
//! Only requests of live sessions count as reports of a buffer, so that a stranger cannot change
//! those figures.

use crate::http::Cmcd;
use crate::sessions::PlayerSession;
use crate::wire;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Counters of all players' reports.
#[derive(Debug)]
pub(crate) struct ReportCounters {
    /// Requests with CMCD.
    pub(crate) requests: AtomicU64,
    /// Values and fields that were ignored because they are not valid.
    pub(crate) ignored: AtomicU64,
    /// Requests of sessions which reported that the player's buffer had run empty.
    pub(crate) starvations: AtomicU64,
    /// Seconds of media in the players' buffers, at each request that reports it.
    pub(crate) buffer: Histogram,
}

impl Default for ReportCounters {
    fn default() -> Self {
        Self {
            requests: AtomicU64::default(),
            ignored: AtomicU64::default(),
            starvations: AtomicU64::default(),
            // A quarter of a second to two minutes.
            buffer: Histogram::new(exponential_buckets(0.25, 2.0, 10)),
        }
    }
}

impl ReportCounters {
    /// Counts the report of a request, and keeps it for its session, if it has one.
    pub(crate) fn note(&self, report: &Cmcd, session: Option<&PlayerSession>) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.ignored.fetch_add(report.ignored, Ordering::Relaxed);
        let Some(session) = session else { return };
        self.starvations.fetch_add(u64::from(report.bs), Ordering::Relaxed);
        if let Some(buffer) = report.bl {
            self.buffer.observe(seconds(buffer));
        }
        session.reported.note(report);
    }
}

/// The reports of one session's player.
#[derive(Debug, Default)]
pub(crate) struct SessionReports(Mutex<Merged>);

#[derive(Debug, Default)]
struct Merged {
    requests: u64,
    starvations: u64,
    last: Cmcd,
}

impl SessionReports {
    fn note(&self, report: &Cmcd) {
        let mut merged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Merged { requests, starvations, last } = &mut *merged;
        *requests += 1;
        *starvations += u64::from(report.bs);
        // Players with a buffer for each track report that of the requested one. The picture's is
        // shown, which is the one that runs empty first.
        let keeps_video = last.ot.is_some_and(is_video) && !report.ot.is_some_and(is_video);
        if !keeps_video {
            last.ot = report.ot.or(last.ot);
            last.bl = report.bl.or(last.bl);
            last.br = report.br.or(last.br);
            last.tb = report.tb.or(last.tb);
        }
        last.dl = report.dl.or(last.dl);
        last.mtp = report.mtp.or(last.mtp);
        last.pr = report.pr.or(last.pr);
        last.sf = report.sf.or(last.sf);
        last.su = report.su;
        for (last, name) in [(&mut last.sid, &report.sid), (&mut last.cid, &report.cid)] {
            // Nearly always the name that is there already.
            if name.is_some() && last != name {
                last.clone_from(name);
            }
        }
    }

    /// The reports as `/sessions` shows them; `None` where there are none.
    pub(crate) fn shown(&self) -> Option<wire::CmcdReport> {
        let merged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Merged { requests, starvations, last } = &*merged;
        let rate = |kilobits: Option<u64>| kilobits.map(|kilobits| kilobits * 1000);
        let text = |token: Option<&'static str>| token.map(str::to_owned);
        (*requests > 0).then(|| wire::CmcdReport {
            sid: last.sid.clone(),
            cid: last.cid.clone(),
            requests: *requests,
            starvations: *starvations,
            buffer: last.bl.map(seconds),
            deadline: last.dl.map(seconds),
            bit_rate: rate(last.br),
            top_bit_rate: rate(last.tb),
            throughput: rate(last.mtp),
            speed: last.pr,
            startup: last.su,
            object: text(last.ot),
            format: text(last.sf),
        })
    }
}

fn is_video(object: &str) -> bool {
    matches!(object, "v" | "av")
}

fn seconds(millis: u64) -> f64 {
    Duration::from_millis(millis).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_value_of_each_key_is_shown_and_the_buffer_of_the_picture() {
        let reports = SessionReports::default();
        assert_eq!(reports.shown(), None);
        for text in [
            "sid=\"a\",ot=m,sf=h,su",
            "bl=4000,br=96,ot=a,sid=\"a\",su",
            "bl=3000,br=1400,bs,ot=v,mtp=50000,sid=\"a\",tb=2000",
            "bl=9000,br=96,mtp=60000,ot=a,pr=2,sid=\"a\"",
        ] {
            let mut report = Cmcd::default();
            report.take(Some(text));
            reports.note(&report);
        }
        let expected = wire::CmcdReport {
            sid: Some("a".to_owned()),
            requests: 4,
            starvations: 1,
            buffer: Some(3.0),
            bit_rate: Some(1_400_000),
            top_bit_rate: Some(2_000_000),
            throughput: Some(60_000_000),
            speed: Some(2.0),
            object: Some("v".to_owned()),
            format: Some("h".to_owned()),
            ..wire::CmcdReport::default()
        };
        assert_eq!(reports.shown(), Some(expected));
    }
}
