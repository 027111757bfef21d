//! Operations on what the server can still hold: how many more viewers of a title fit, and which
//! rate a title needs at which time.

use super::call::ApiCall;
use super::problem::Problem;
use super::{AdminApi, json};
use crate::http::{Response, open_failed, refusal_message};
use crate::layout::DeliveryFormat;
use crate::library::OpenTitle;
use crate::messages::Event;
use crate::wire;
use crossbeam_channel::bounded;
use engine::{AdmitRequest, Layout, MaxWait, Priority, Resource};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use store::StoreAccess;

impl AdminApi {
    /// How many more viewers of a title fit, in its best rendition.
    pub(super) fn headroom(&self, call: &ApiCall) -> Result<Response, Problem> {
        let name = call.title()?;
        let title = self.open(&name)?;
        let (layouts, offer) = best_offer(&title)?;
        let request = AdmitRequest {
            layout: Arc::clone(&layouts[0]),
            copies: layouts[1..].to_vec(),
            offers: vec![offer.to_vec()],
            start: Duration::ZERO,
            max_wait: MaxWait::default(),
            replaces: None,
            fill: None,
            priority: Priority::ALL[0],
        };
        // Each answer takes a copy of the engine and the time of many decisions: one at a time.
        let _alone = self.counting.lock().unwrap_or_else(PoisonError::into_inner);
        let (answer, copy) = bounded(1);
        self.core.send(Event::CopyEngine { answer });
        let engine = copy.recv().map_err(|_| Problem::busy("this server is stopping"))?;
        let headroom = engine.headroom(self.shared.clock.now(), &request, MOST_COUNTED);
        let refusal = headroom.refusal.as_ref();
        let until = refusal.and_then(|refusal| refusal.retry.after()).map(|after| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            since.saturating_add(after).as_secs_f64()
        });
        let report = wire::HeadroomReport {
            title: name,
            fits: headroom.fits,
            at_least: refusal.is_none(),
            cause: refusal.map(|refusal| refusal.cause.word().to_owned()),
            resource: refusal
                .and_then(|refusal| refusal.resource.map(Resource::word))
                .map(str::to_owned),
            message: refusal.map(refusal_message),
            detail: refusal.map(|refusal| refusal.detail.clone()),
            until,
        };
        Ok(json(200, &report))
    }

    /// The rate that a title needs over its time, in its best rendition, as admission counts it.
    pub(super) fn demand(&self, call: &ApiCall) -> Result<Response, Problem> {
        let store = self.store(call.name(0))?;
        store.store().find(call.name(1))?;
        let title = self.open(call.name(1))?;
        let (layouts, offer) = best_offer(&title)?;
        Ok(json(200, &demand(&layouts[0], offer)))
    }

    pub(super) fn open(&self, name: &str) -> Result<Arc<OpenTitle>, Problem> {
        let title = self.shared.content.open(name, &self.core);
        title.map_err(|why| Problem::of_player(&open_failed(name, &why)))
    }
}

/// The copies of a title in segments, at least one, and the tracks of its best rendition.
fn best_offer(title: &OpenTitle) -> Result<(&[Arc<Layout>], &[u16]), Problem> {
    let format = DeliveryFormat::Segmented;
    let layouts = title.whole.layouts(format);
    match title.whole.offers(format).first() {
        Some(offer) if !layouts.is_empty() => Ok((layouts, offer)),
        _ => {
            let message = "this title is not delivered in segments";
            let hint = "ask about a title that plays forwards from its beginning";
            Err(Problem::new(422, "not-playable", message, hint))
        }
    }
}

/// The bytes of pieces that are due in each interval, as rates.
fn demand(layout: &Layout, offer: &[u16]) -> wire::RateOverTime {
    let whole_ms = u64::try_from(layout.duration.as_millis()).unwrap_or(u64::MAX).max(1);
    // Whole seconds, so that the rates of two titles can be compared.
    let interval_ms = whole_ms.div_ceil(MOST_INTERVALS).next_multiple_of(1000);
    let intervals = usize::try_from(whole_ms.div_ceil(interval_ms)).unwrap_or(usize::MAX);
    let mut bytes = vec![0_u64; intervals];
    for track in offer.iter().filter_map(|track| layout.tracks.get(usize::from(*track))) {
        let starts = (0_u32..).zip(&track.due).map(|(piece, due)| (track.start(piece), *due));
        let ends = (1_u32..).map(|piece| track.start(piece).min(track.bytes));
        for ((start, due), end) in starts.zip(ends) {
            let at = usize::try_from(u64::from(due) / interval_ms).unwrap_or(usize::MAX);
            let at = at.min(intervals - 1);
            bytes[at] += end.saturating_sub(start);
        }
    }
    let bit_rates = bytes.into_iter().map(|bytes| bytes.saturating_mul(8_000) / interval_ms);
    let interval = Duration::from_millis(interval_ms).as_secs_f64();
    wire::RateOverTime { interval, bit_rates: bit_rates.collect() }
}

/// The most further sessions that are counted.
const MOST_COUNTED: u32 = 2_000;
/// The most intervals of a title's rate.
const MOST_INTERVALS: u64 = 600;
