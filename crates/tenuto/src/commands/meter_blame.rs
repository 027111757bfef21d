//! What the machine did while streams ran, for the outcome, the report and `--json`.

use super::meter_plots::{number, plot};
use super::meter_port::came_back;
use super::meter_record::times;
use crate::failure::{Code, Failure};
use meter::blame::{Faults, First, Sample, Sampler, Watched, faults, first_full};
use meter::report::{Block, Plot, Series, Shape};
use meter::streams::Outcome;
use serde_json::{Value, json};
use std::path::Path;

/// What is to be said of one run.
pub(super) struct Blame {
    faults: Faults,
    pub(super) first: First,
    watched: Watched,
}

/// Watches this machine and what lies beneath `target` from now on.
pub(super) fn watch(target: &Path) -> Result<Sampler, Failure> {
    Sampler::start(target).map_err(|error| Failure::new(format!("cannot watch: {error}")))
}

impl Blame {
    pub(super) fn of(outcome: &Outcome, watched: Watched) -> Self {
        let seconds = &outcome.seconds;
        let late = seconds.iter().position(|second| second.late > second.late_by_meter);
        let late = late.or_else(|| seconds.iter().position(|second| second.late > 0));
        let watched = watched.spun(seconds);
        Self {
            faults: faults(seconds, &watched.samples),
            first: first_full(&watched, late),
            watched,
        }
    }

    /// Of the meter, in the mean: 0.5 is half of one.
    pub(super) fn own_processors(&self) -> f64 {
        let samples = &self.watched.samples;
        let sum = |of: fn(&Sample) -> f64| samples.iter().map(of).sum::<f64>();
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
            "naps": times(naps),
            "seconds": samples,
        })
    }

    /// The report's section.
    pub(super) fn blocks(&self) -> Result<Vec<Block>, Failure> {
        let Faults { storage, meter, agent_cpu, clock } = self.faults;
        let rows = [
            ("the storage", storage),
            ("this machine had no processor free for the meter", agent_cpu),
            ("the meter itself", meter),
            ("a clock was set", clock),
        ];
        let rows = rows.map(|(whose, count)| vec![whose.to_owned(), count.to_string()]);
        let mut blocks = vec![
            Block::Heading("What broke first".into()),
            Block::Text(format!("{}.", self.first.sentence)),
            Block::Table {
                head: ["late because of", "frames"].map(str::to_owned).into(),
                rows: rows.into(),
            },
        ];
        if self.watched.samples.len() > 1 {
            blocks.push(plot(
                &self.busy(),
                "What stands at 100 % when frames begin to be late is the limit. If nothing does, \
                 the storage itself, or what lies between, takes its time.",
            )?);
        }
        Ok(blocks)
    }

    fn busy(&self) -> Plot {
        let line = |name: &str, share: &dyn Fn(&Sample) -> f64| Series {
            name: name.to_owned(),
            shape: Shape::Line,
            points: (0u32..)
                .map(f64::from)
                .zip(&self.watched.samples)
                .map(|(at, sample)| (at, share(sample) * 100.0))
                .collect(),
        };
        let mut series = vec![
            line("processors", &Sample::processors_busy),
            line("the meter's processor time", &Sample::own_share),
        ];
        for name in &self.watched.stack.devices {
            series.push(line(name, &|sample| {
                let device = sample.devices.iter().find(|device| device.name == *name);
                device.map_or(0.0, |device| device.busy)
            }));
        }
        Plot {
            title: "How busy this machine and its devices were".into(),
            x_label: "seconds since the start".into(),
            y_label: "% of the time".into(),
            series,
        }
    }
}

/// Whether what a run says can be relied on.
pub(super) fn believable(outcome: &Outcome, blame: Option<&Blame>) -> Result<(), Failure> {
    if !outcome.valid() {
        let share = number(outcome.late_by_meter) / number(outcome.frames.max(1)) * 100.0;
        let why = blame.and_then(|blame| blame.faults.mostly());
        let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
        let sentence = format!(
            "not valid: {} of {} frames ({share:.1} %) were late because of this machine, not of \
             the storage{why}",
            outcome.late_by_meter, outcome.frames
        );
        return Err(Failure::new(sentence)
            .hint("let nothing else run here, measure fewer streams, or say --realtime")
            .code(Code::Invalid));
    }
    whole(outcome)
}

/// Whether all could be read and written, late or not.
pub(super) fn whole(outcome: &Outcome) -> Result<(), Failure> {
    came_back(outcome.stuck)?;
    let Some(first) = &outcome.first_failure else { return Ok(()) };
    let count = outcome.failed;
    Err(Failure::of(&format!("{count} frames could not be read or written, the first: {first}"))
        .code(Code::Invalid))
}
