//! Plans: how many streams other disks would hold, asked of a server that runs.
//!
//! The answer is that of `tenuto plan`. It takes a core for up to seconds, so plans are made one at
//! a time, of disks that hold a bounded number of streams.

use super::call::ApiCall;
use super::operations::{PLANNED_DISKS, PLANNED_MEMORY, PLANNED_READS};
use super::problem::Problem;
use super::{AdminApi, json};
use crate::ServerConfig;
use crate::http::Response;
use crate::plan::{
    MOST_STREAMS_WHILE_SERVING, PlanDisk, PlannedAudience, Popularity, Question, RATES,
    USUAL_WITHIN, USUAL_ZIPF, in_turn, model_read_sizes, most_streams, plan,
};
use crate::wire;
use disk::DiskModel;
use scheduler::PolicyKind;
use std::ops::RangeInclusive;
use std::sync::{Arc, TryLockError};
use std::time::Duration;
use store::StoreAccess;
use units::{BitRate, ByteCount};

impl AdminApi {
    /// The streams that disks would hold.
    pub(super) fn plan(&self, call: &ApiCall) -> Result<Response, Problem> {
        let disk = self.planned_disk(call)?;
        let audience = self.audience(call)?;
        let streams = most_streams(&disk, &audience);
        if streams > MOST_STREAMS_WHILE_SERVING {
            let most = MOST_STREAMS_WHILE_SERVING;
            let message =
                format!("the disk may hold {streams} such streams: a plan here is for {most}");
            let hint = "ask for a higher rate, or run `tenuto plan` on another machine";
            return Err(Problem::new(422, "too-many-streams", message, hint));
        }
        let policy = match call.parameter::<String>("policy", "the name of a policy")? {
            None => PolicyKind::TimeDomain,
            Some(name) => PolicyKind::named(&name).ok_or_else(|| {
                bad(format!("there is no policy '{}'", name.escape_debug()), NAMED)
            })?,
        };
        let number = |name, range: RangeInclusive<u64>| {
            let value = call.parameter::<u64>(name, "a whole number")?;
            match value.filter(|value| !range.contains(value)) {
                None => Ok(value),
                Some(_) => {
                    let (least, most) = (range.start(), range.end());
                    Err(bad(
                        format!("'{name}' is out of range"),
                        &format!("from {least} to {most}"),
                    ))
                }
            }
        };
        let read = number("read_size", PLANNED_READS)?;
        if read.is_some_and(|read| !read.is_power_of_two()) {
            return Err(bad("'read_size' is not a power of two".to_owned(), "for example 1048576"));
        }
        let question = Question {
            audience,
            memory: number("memory", PLANNED_MEMORY)?.map(ByteCount),
            disks: number("disks", PLANNED_DISKS)?.unwrap_or(1),
            startup: ServerConfig::default().startup.max(disk.slot() * 2),
            read: read.map(ByteCount),
            popularity: self::popularity(call)?,
            policies: vec![policy],
        };
        let _alone = match self.counting.try_lock() {
            Ok(held) => held,
            Err(TryLockError::Poisoned(held)) => held.into_inner(),
            Err(TryLockError::WouldBlock) => {
                return Err(Problem::busy("another plan is being made"));
            }
        };
        let plan =
            wire::PlanReport::of(&plan(&disk, question, &mut in_turn), |held| held[0].into());
        let (guaranteed, policy) = (policy.guarantees(), policy.name().to_owned());
        Ok(json(200, &wire::PolicyPlan { policy, guaranteed, plan }))
    }

    fn planned_disk(&self, call: &ApiCall) -> Result<PlanDisk, Problem> {
        let model = call.parameter::<String>("model", "the name of a model")?;
        match (model, call.parameter::<String>("disk", "the uuid of a disk")?) {
            (Some(name), None) => DiskModel::preset(&name).map(PlanDisk::Model).ok_or_else(|| {
                bad(format!("there is no disk model '{}'", name.escape_debug()), NAMED)
            }),
            (None, Some(uuid)) => {
                let known =
                    self.store(&uuid.to_ascii_lowercase())?.store().calibration().ok_or_else(
                        || {
                            let hint = "calibrate it first: POST /api/v1/disks/{disk}/calibrate";
                            Problem::new(409, "not-calibrated", "the disk is not calibrated", hint)
                        },
                    )?;
                Ok(PlanDisk::measured(known))
            }
            (None, None) => Err(bad("no disk to plan with".to_owned(), "name a model or a disk")),
            (Some(_), Some(_)) => {
                Err(bad("'model' and 'disk' are two disks".to_owned(), "name one of them"))
            }
        }
    }

    fn audience(&self, call: &ApiCall) -> Result<PlannedAudience, Problem> {
        let rate = call.parameter::<u64>("rate", "bits per second")?;
        match (rate, call.parameter::<String>("title", "a title's name")?) {
            (Some(rate), None) if RATES.contains(&BitRate(rate)) => {
                Ok(PlannedAudience::Rate(BitRate(rate)))
            }
            (Some(_), None) => {
                let (least, most) = (RATES.start().0, RATES.end().0);
                let hint = format!("from {least} to {most} bits per second");
                Err(bad("'rate' is not the rate of a stream".to_owned(), &hint))
            }
            (None, Some(name)) => {
                let title = self.open(&name)?;
                Ok(PlannedAudience::of_packaging(name, Arc::clone(&title.whole.packaging)))
            }
            (None, None) => {
                let hint = "name a rate in bits per second or a title";
                Err(bad("no streams to plan for".to_owned(), hint))
            }
            (Some(_), Some(_)) => {
                Err(bad("'rate' and 'title' are two audiences".to_owned(), "name one of them"))
            }
        }
    }
}

/// How viewers choose among titles, if the question says so.
fn popularity(call: &ApiCall) -> Result<Option<Popularity>, Problem> {
    let Some(titles) = call.parameter::<u64>("titles", "a whole number")? else { return Ok(None) };
    let exponent = call.parameter::<f64>("zipf", "a number")?.unwrap_or(USUAL_ZIPF);
    let within = call.parameter::<u64>("within", "whole seconds")?;
    let within = within.map_or(USUAL_WITHIN, Duration::from_secs);
    let popularity = Popularity { titles, exponent, within };
    popularity.check().map_err(|reason| bad(reason.message, &reason.hint.unwrap_or_default()))?;
    Ok(Some(popularity))
}

/// What a plan can be made for.
pub(super) fn choices() -> Response {
    let model = |model: &DiskModel| wire::PlannedModel {
        name: model.name().to_owned(),
        title: model.title().to_owned(),
        kind: if model.rotational() { "hdd" } else { "ssd" }.to_owned(),
        capacity: model.capacity().0,
    };
    let policy = |policy: PolicyKind| wire::PlannedPolicy {
        name: policy.name().to_owned(),
        guaranteed: policy.guarantees(),
    };
    json(
        200,
        &wire::PlanChoices {
            models: DiskModel::presets().iter().map(model).collect(),
            policies: PolicyKind::all().map(policy).collect(),
            read_sizes: model_read_sizes().map(|size| size.0).collect(),
        },
    )
}

fn bad(message: String, hint: &str) -> Problem {
    Problem::new(400, "bad-parameter", message, hint)
}

const NAMED: &str = "/api/v1/planning has the names";
