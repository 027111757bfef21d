//! The cause of each miss.

use super::SystemSample;
use crate::streams::Second;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::time::Duration;

/// The cause of the meter's own lateness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The meter itself was slow.
    Meter,
    /// The agent's threads waited for a processor, or the hypervisor had taken it away.
    AgentCpu,
}

/// Late frames by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Faults {
    /// Frames that were late because of the storage.
    pub(crate) storage: u64,
    /// Frames that were late because the meter was slow.
    pub(crate) meter: u64,
    /// Frames that were late because the meter had no processor.
    pub(crate) agent_cpu: u64,
}

impl Faults {
    /// The largest cause on the meter's own side, with its explanation; `None` if there is none.
    pub(crate) fn mostly(&self) -> Option<&'static str> {
        let parts = [
            (self.agent_cpu, "this machine had no processor free for the meter"),
            (self.meter, "the meter was slow, though a processor was free"),
        ];
        let most = parts.into_iter().max_by_key(|(count, _)| *count);
        most.filter(|(count, _)| *count > 0).map(|(_, words)| words)
    }
}

/// Labels the misses of each second by what the samples around it show. Second n of a run goes
/// with sample n.
pub(crate) fn faults(seconds: &[Second], samples: &[SystemSample]) -> Faults {
    let mut all = Faults::default();
    // The first of the seconds in a row in which the meter delayed frames: frames pass a delay on
    // to the next ones until their stream has caught up.
    let mut begun = 0;
    for (at, second) in seconds.iter().enumerate() {
        if second.late_by_meter == 0 {
            begun = at + 1;
        }
        all.storage += second.late - second.late_by_meter;
        let own = match why(begun..at, second.longest_own, samples) {
            Fault::AgentCpu => &mut all.agent_cpu,
            Fault::Meter => &mut all.meter,
        };
        *own += second.late_by_meter;
    }
    all
}

/// The cause of a lateness `own` of the meter itself, for a frame due in second `late.end`, where
/// frames have been late without a break since `late.start`. A clock that was set is none: runs use
/// the monotonic clock.
fn why(late: Range<usize>, own: Duration, samples: &[SystemSample]) -> Fault {
    // The cause precedes the deadline, and the deadline is later than the request by the buffer.
    let from = late.start.saturating_sub(BEFORE);
    let around = samples.get(from..samples.len().min(late.end + 1)).unwrap_or_default();
    let waited =
        around.iter().map(|sample| sample.own_wait.max(sample.overslept)).fold(0.0, f64::max);
    let stolen =
        around.iter().flat_map(|sample| &sample.processors).any(|each| each.steal > STOLEN);
    if waited >= own.as_secs_f64() / 2.0 || stolen { Fault::AgentCpu } else { Fault::Meter }
}

/// Seconds before the first late frame's own in which the cause may be found.
const BEFORE: usize = 2;

/// Share of stolen processor time from which the lateness is put down to the hypervisor.
const STOLEN: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::super::sample::Processor;
    use super::*;

    fn second(late: u64, late_by_meter: u64, own_ms: u64) -> Second {
        let longest_own = Duration::from_millis(own_ms);
        Second { frames: 100, late, late_by_meter, longest_own, ..Second::default() }
    }

    fn sample() -> SystemSample {
        SystemSample { seconds: 1.0, ..SystemSample::default() }
    }

    #[test]
    fn each_miss_has_one_cause() {
        let quiet = sample();
        let busy = SystemSample { own_wait: 0.3, ..sample() };
        let stopped = SystemSample { overslept: 0.3, ..sample() };
        let set = SystemSample { clock_set: 2.0, overslept: 0.3, ..sample() };
        let stolen = SystemSample {
            processors: vec![Processor { steal: 0.2, ..Processor::default() }],
            ..sample()
        };
        let cases = [
            (&quiet, Faults { storage: 3, meter: 7, ..Faults::default() }),
            (&busy, Faults { storage: 3, agent_cpu: 7, ..Faults::default() }),
            (&stopped, Faults { storage: 3, agent_cpu: 7, ..Faults::default() }),
            (&stolen, Faults { storage: 3, agent_cpu: 7, ..Faults::default() }),
            (&set, Faults { storage: 3, agent_cpu: 7, ..Faults::default() }),
        ];
        for (cause, expected) in cases {
            // The cause is in the second before.
            let samples = [sample(), cause.clone(), sample()];
            let seconds = [second(0, 0, 0), second(0, 0, 0), second(10, 7, 400)];
            assert_eq!(faults(&seconds, &samples), expected);
        }
    }

    #[test]
    fn a_delay_that_frames_pass_on_keeps_its_cause() {
        let mut samples = vec![sample(); 10];
        samples[1].overslept = 5.0;
        let seconds: Vec<_> = (0..10).map(|at| second(3, u64::from(at > 2) * 3, 4000)).collect();
        let all = faults(&seconds, &samples);
        assert_eq!((all.storage, all.agent_cpu, all.meter), (9, 21, 0));
    }

    #[test]
    fn an_old_cause_does_not_count_and_seconds_without_a_sample_blame_the_meter() {
        let busy = SystemSample { own_wait: 9.0, ..sample() };
        let mut samples = vec![sample(); 10];
        samples[0] = busy;
        let mut seconds = vec![second(0, 0, 0); 12];
        seconds[8] = second(2, 2, 100);
        seconds[11] = second(1, 1, 100);
        let all = faults(&seconds, &samples);
        assert_eq!((all.meter, all.agent_cpu), (3, 0));
        assert_eq!(all.mostly(), Some("the meter was slow, though a processor was free"));
        assert_eq!(Faults::default().mostly(), None);
    }
}
