//! Attribution of late reads: what the machine did while a run was on, and what was full first.

use super::port::check_not_stuck;
use crate::blame::{Faults, First, Sampler, SystemSample, Watched, faults, first_full};
use crate::error::{MeterError, MeterErrorKind};
use crate::report::{Block, LineShape, Plot, Series, times_json};
use crate::streams::StreamsOutcome;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::Path;
use units::float;
use units::show::count;

/// The causes of the late reads of one run.
#[derive(Serialize, Deserialize)]
pub(super) struct Attribution {
    faults: Faults,
    pub(super) first: First,
    watched: Watched,
}

/// Starts to sample this machine and the devices beneath `target`.
pub(super) fn watch(target: &Path) -> Result<Sampler, MeterError> {
    Sampler::start(target).map_err(|error| MeterError::new(format!("cannot watch: {error}")))
}

impl Attribution {
    pub(super) fn of(outcome: &StreamsOutcome, watched: Watched) -> Self {
        let seconds = &outcome.seconds;
        // The first second in which the storage was late; without one, in which the meter was.
        let by_storage = seconds.iter().position(|second| second.late > second.late_by_meter);
        let late = by_storage.or_else(|| seconds.iter().position(|second| second.late > 0));
        let watched = watched.spun(seconds);
        let mut first = first_full(&watched, late, by_storage.is_some());
        let failed = outcome.failed > 0 && outcome.failed == outcome.late_by_storage();
        // What failed did not take its time.
        if let (true, Some(failure)) = (failed, &outcome.first_failure) {
            let operations = count(outcome.failed, "operation");
            first = First::failed(late, &format!("{operations} failed: {}", failure.message));
        }
        Self { faults: faults(seconds, &watched.samples), first, watched }
    }

    /// The causes on two machines in the same run: all faults, and the machine of this attribution.
    pub(super) fn with_faults_of(self, other: &Self) -> Self {
        let (ours, theirs) = (self.faults, other.faults);
        let faults = Faults {
            storage: ours.storage + theirs.storage,
            meter: ours.meter + theirs.meter,
            agent_cpu: ours.agent_cpu + theirs.agent_cpu,
        };
        Self { faults, ..self }
    }

    /// The mean number of processors that the meter used: 0.5 is half a processor.
    pub(super) fn own_processors(&self) -> f64 {
        let samples = &self.watched.samples;
        let sum = |of: fn(&SystemSample) -> f64| samples.iter().map(of).sum::<f64>();
        // Divided by the sampled time and not by the time of the run, because the last sample is
        // shorter.
        sum(|sample| sample.own_cpu) / sum(|sample| sample.seconds).max(1e-6)
    }

    pub(super) fn json(&self) -> Value {
        let Watched { stack, samples, naps, speeds } = &self.watched;
        let speeds = speeds.iter().map(|(name, speed)| (name.clone(), json!(speed.0)));
        json!({
            "faults": self.faults,
            "broke_first": self.first,
            "devices": stack.devices,
            "mount": stack.mount,
            "file_system": stack.file_system,
            "link_bits_per_s": speeds.collect::<serde_json::Map<_, _>>(),
            "naps": times_json(naps),
            "seconds": samples,
        })
    }

    /// The section of the report.
    pub(super) fn blocks(&self) -> Result<Vec<Block>, MeterError> {
        let Faults { storage, meter, agent_cpu } = self.faults;
        let causes = [
            ("the storage", storage),
            ("this machine had no processor free for the meter", agent_cpu),
            ("the meter itself", meter),
        ];
        let rows = causes.map(|(cause, count)| vec![cause.to_owned(), count.to_string()]);
        let mut blocks = vec![
            Block::Heading("What broke first".into()),
            Block::Text(format!("{}.", self.first.sentence)),
            Block::table(&["late because of", "frames"], rows.into()),
        ];
        // A single sample is the incomplete last second of a short run, which draws no line.
        if self.watched.samples.len() > 1 {
            blocks.push(self.busy().block(
                "What stands at 100 % when frames begin to be late is the limit. If nothing does, \
                 the storage itself, or what lies between, takes its time.",
            )?);
        }
        Ok(blocks)
    }

    fn busy(&self) -> Plot {
        let line = |name: &str, share: &dyn Fn(&SystemSample) -> f64| {
            let samples = (0u32..).map(f64::from).zip(&self.watched.samples);
            let points = samples.map(|(at, sample)| (at, share(sample) * 100.0)).collect();
            Series::new(name, LineShape::Line, points)
        };
        let mut series = vec![
            line("processors", &SystemSample::processors_busy),
            line("the meter's processor time", &SystemSample::own_share),
        ];
        for name in &self.watched.stack.devices {
            series.push(line(name, &|sample| {
                let device = sample.devices.iter().find(|device| device.name == *name);
                device.map_or(0.0, |device| device.busy)
            }));
        }
        Plot::by_second("How busy this machine and its devices were", "% of the time", series)
    }
}

/// Refuses a run whose figures cannot be relied on.
pub(super) fn check_valid(
    outcome: &StreamsOutcome,
    attribution: Option<&Attribution>,
) -> Result<(), MeterError> {
    if !outcome.valid() {
        let share = float(outcome.late_by_meter) / float(outcome.frames.max(1)) * 100.0;
        let cause = attribution.and_then(|attribution| attribution.faults.mostly());
        let why = cause.map(|cause| format!(" ({cause})")).unwrap_or_default();
        let message = format!(
            "not valid: {} of {} ({share:.1} %) late because of this machine, not of the \
             storage{why}",
            outcome.late_by_meter,
            count(outcome.frames, "frame")
        );
        return Err(MeterError::new(message)
            .hint("let nothing else run here, measure fewer streams, or say --realtime")
            .invalid());
    }
    check_not_stuck(outcome.stuck)?;
    // The storage failed, and the figures tell how often: the run is valid, and nothing held.
    failure(outcome)
        .map_or(Ok(()), |reason| Err(MeterError { kind: MeterErrorKind::NotHeld, ..reason }))
}

/// Refuses a run in which a frame could not be read or written, or did not come back.
pub(super) fn check_complete(outcome: &StreamsOutcome) -> Result<(), MeterError> {
    check_not_stuck(outcome.stuck)?;
    failure(outcome).map_or(Ok(()), |error| Err(error.invalid()))
}

/// The operations that failed, if any did, as an error.
fn failure(outcome: &StreamsOutcome) -> Option<MeterError> {
    let failed = count(outcome.failed, "frame");
    let first = outcome.first_failure.clone()?;
    Some(MeterError::of(&first.about(format!("{failed} not read or written, the first"))))
}

#[cfg(test)]
mod injected_faults;
