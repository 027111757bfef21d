//! The activity of a machine between two moments: the difference of two readings of its counters.

use super::SystemCounters;
use super::proc::{DiskCounters, Interface, Ticks};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use units::float;

/// The activity in a second, or in the time that the sampler slept. Times are in seconds, shares
/// from 0 to 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct SystemSample {
    /// The length of the sample.
    pub(crate) seconds: f64,
    /// Every processor, in order.
    pub(crate) processors: Vec<Processor>,
    /// Block devices beneath the target, from the top down.
    pub(crate) devices: Vec<Device>,
    /// Network interfaces that transferred bytes, the loopback included.
    pub(crate) links: Vec<Link>,
    /// TCP segments sent, retransmissions not counted.
    pub(crate) tcp_segments: u64,
    /// Retransmitted TCP segments.
    pub(crate) tcp_again: u64,
    /// Times that a peer had to stop sending because the receive window was full.
    pub(crate) tcp_windows_closed: u64,
    /// TCP retransmission timeouts.
    pub(crate) tcp_timeouts: u64,
    /// Counters of the target's NFS mount, if it has one.
    pub(crate) nfs: Option<Nfs>,
    /// Processor time of this process.
    pub(crate) own_cpu: f64,
    /// Processor time that the meter spent polling the clock until a frame was due.
    pub(crate) own_spin: f64,
    /// The longest total time that one of the meter's threads waited for a processor.
    pub(crate) own_wait: f64,
    /// The longest delay with which a thread that only sleeps was woken.
    pub(crate) overslept: f64,
    /// The step by which the wall clock was set.
    pub(crate) clock_set: f64,
}

/// The use of one processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Processor {
    /// Share of time in which it ran something.
    pub(crate) busy: f64,
    /// Share of time in which it handled packets and timers after an interrupt; part of `busy`.
    pub(crate) softirq: f64,
    /// Share of time in which the hypervisor ran something else.
    pub(crate) steal: f64,
}

/// The activity of one block device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Device {
    /// The device's name in the kernel.
    pub(crate) name: String,
    /// Share of time in which at least one request was in flight.
    pub(crate) busy: f64,
    /// The mean number of requests in flight.
    pub(crate) queue: f64,
    /// Completed requests.
    pub(crate) requests: u64,
    /// The mean time of a request, in seconds.
    pub(crate) request: f64,
    /// Bytes read per second.
    pub(crate) read: f64,
    /// Bytes written per second.
    pub(crate) written: f64,
}

/// The traffic of one network interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Link {
    /// The interface's name in the kernel.
    pub(crate) name: String,
    /// Bytes received per second.
    pub(crate) received: f64,
    /// Bytes sent per second.
    pub(crate) sent: f64,
    /// Dropped packets.
    pub(crate) dropped: u64,
}

/// The reads and writes of one NFS mount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Nfs {
    /// Completed requests.
    pub(crate) requests: u64,
    /// Retransmitted requests.
    pub(crate) again: u64,
    /// The mean time that a request waited before it was sent, in seconds.
    pub(crate) queue: f64,
    /// The mean time of a request on the network and at the server, in seconds.
    pub(crate) server: f64,
}

impl SystemSample {
    /// The activity from `before` to `after`.
    pub(crate) fn between(
        before: &SystemCounters,
        after: &SystemCounters,
        overslept: Duration,
    ) -> Self {
        // Two readings at the same moment must not divide by zero.
        let seconds = after.at.duration_since(before.at).as_secs_f64().max(1e-6);
        let tcp = after.tcp.zip(before.tcp);
        let of_tcp = |count: fn(&super::proc::Tcp) -> u64| {
            // A smaller value after a reset of the counters is no negative count.
            tcp.map_or(0, |(after, before)| count(&after).saturating_sub(count(&before)))
        };
        // Threads come and go: a new one counts from zero.
        let threads = || {
            after.threads.iter().map(|(thread, after)| {
                let before = before.threads.get(thread).copied().unwrap_or_default();
                (after.ran.saturating_sub(before.ran), after.waited.saturating_sub(before.waited))
            })
        };
        let clock = after.clock_set(before);
        Self {
            seconds,
            processors: pairs(&before.processors, &after.processors, |_, _| true)
                .map(|(before, after)| processor(before, after))
                .collect(),
            devices: pairs(&before.disks, &after.disks, |a, b| a.name == b.name)
                .map(|(before, after)| device(before, after, seconds))
                .collect(),
            links: pairs(&before.interfaces, &after.interfaces, |a, b| a.name == b.name)
                .map(|(before, after)| link(before, after, seconds))
                // Idle interfaces would only make the report longer.
                .filter(|link| link.received + link.sent > 0.0)
                .collect(),
            tcp_segments: of_tcp(|tcp| tcp.sent),
            tcp_again: of_tcp(|tcp| tcp.again),
            tcp_windows_closed: of_tcp(|tcp| tcp.window_closed),
            tcp_timeouts: of_tcp(|tcp| tcp.timeouts),
            nfs: after.nfs.zip(before.nfs).map(|(after, before)| {
                let requests = after.requests.saturating_sub(before.requests);
                Nfs {
                    requests,
                    again: after.again.saturating_sub(before.again),
                    queue: mean_ms(after.queue_ms.saturating_sub(before.queue_ms), requests),
                    server: mean_ms(after.server_ms.saturating_sub(before.server_ms), requests),
                }
            }),
            own_cpu: threads().map(|(ran, _)| ran).sum::<Duration>().as_secs_f64(),
            own_spin: 0.0,
            own_wait: threads().map(|(_, waited)| waited).max().unwrap_or_default().as_secs_f64(),
            overslept: overslept.as_secs_f64(),
            clock_set: if clock < UNSTEADY { 0.0 } else { clock.as_secs_f64() },
        }
    }

    /// The meter's share of a processor, without polling.
    pub(crate) fn own_share(&self) -> f64 {
        (self.own_cpu - self.own_spin) / self.seconds.max(1e-6)
    }

    /// The share of the busiest processor.
    pub(crate) fn busiest_processor(&self) -> f64 {
        self.processors.iter().map(|each| each.busy + each.steal).fold(0.0, f64::max)
    }

    /// The busy share of all processors together, from 0 to 1.
    pub(crate) fn processors_busy(&self) -> f64 {
        let count = u32::try_from(self.processors.len()).unwrap_or(u32::MAX).max(1);
        self.processors.iter().map(|each| each.busy + each.steal).sum::<f64>() / f64::from(count)
    }
}

/// Differences below this are no step of the clock: two clocks are read one after the other, and
/// the kernel slews the wall clock by at most 0.5 ms a second.
const UNSTEADY: Duration = Duration::from_millis(5);

/// Pairs of the entries that both readings have.
fn pairs<'a, T>(
    before: &'a [T],
    after: &'a [T],
    same: fn(&T, &T) -> bool,
) -> impl Iterator<Item = (&'a T, &'a T)> {
    before.iter().zip(after).filter(move |(before, after)| same(before, after))
}

fn processor(before: &Ticks, after: &Ticks) -> Processor {
    let all = after.all.saturating_sub(before.all);
    let share = |count: fn(&Ticks) -> u64| {
        float(count(after).saturating_sub(count(before))) / float(all.max(1))
    };
    Processor {
        busy: share(|ticks| ticks.busy),
        softirq: share(|ticks| ticks.softirq),
        steal: share(|ticks| ticks.steal),
    }
}

fn device(before: &DiskCounters, after: &DiskCounters, seconds: f64) -> Device {
    let more = |count: fn(&DiskCounters) -> u64| count(after).saturating_sub(count(before));
    let requests = more(|disk| disk.requests);
    Device {
        name: after.name.clone(),
        // The kernel rounds busy time up to a tick, which may exceed the time between two readings.
        busy: (float(more(|disk| disk.busy_ms)) / 1e3 / seconds).min(1.0),
        queue: float(more(|disk| disk.weighted_ms)) / 1e3 / seconds,
        requests,
        request: mean_ms(more(|disk| disk.request_ms), requests),
        read: float(more(|disk| disk.bytes_read)) / seconds,
        written: float(more(|disk| disk.bytes_written)) / seconds,
    }
}

fn link(before: &Interface, after: &Interface, seconds: f64) -> Link {
    let more = |count: fn(&Interface) -> u64| count(after).saturating_sub(count(before));
    Link {
        name: after.name.clone(),
        received: float(more(|link| link.received)) / seconds,
        sent: float(more(|link| link.sent)) / seconds,
        dropped: more(|link| link.dropped),
    }
}

/// The mean of `count` times that add up to `sum_ms`, in seconds.
fn mean_ms(sum_ms: u64, count: u64) -> f64 {
    if count == 0 { 0.0 } else { float(sum_ms) / float(count) / 1e3 }
}

#[cfg(test)]
mod tests {
    use super::super::proc::{Tcp, Waiting};
    use super::*;
    use std::time::{Instant, SystemTime};

    fn counters(at: Instant, wall: SystemTime, scale: u64) -> SystemCounters {
        let ticks =
            Ticks { busy: 30 * scale, softirq: 10 * scale, steal: 20 * scale, all: 100 * scale };
        let disk = DiskCounters {
            name: "sda".into(),
            requests: 50 * scale,
            bytes_read: 1000 * scale,
            bytes_written: 0,
            busy_ms: 900 * scale,
            weighted_ms: 4000 * scale,
            request_ms: 2500 * scale,
        };
        let waited = |ms| Waiting {
            ran: Duration::from_millis(100 * scale),
            waited: Duration::from_millis(ms * scale),
        };
        SystemCounters {
            at,
            wall,
            processors: vec![ticks],
            disks: vec![disk],
            interfaces: vec![Interface::default()],
            tcp: Some(Tcp { sent: 100 * scale, again: 2 * scale, window_closed: 0, timeouts: 0 }),
            nfs: None,
            threads: [(1, waited(5)), (2, waited(40))].into(),
        }
    }

    #[test]
    fn counts_of_a_second_become_shares_rates_and_means() {
        let (at, wall) = (Instant::now(), SystemTime::now());
        let second = Duration::from_secs(1);
        let after = counters(at + second, wall + second, 2);
        let sample = SystemSample::between(&counters(at, wall, 1), &after, Duration::ZERO);
        let processor = Processor { busy: 0.3, softirq: 0.1, steal: 0.2 };
        assert_eq!(sample.processors, [processor]);
        let sda = &sample.devices[0];
        assert_eq!((sda.busy, sda.queue, sda.requests, sda.request), (0.9, 4.0, 50, 0.05));
        assert_eq!((sample.tcp_segments, sample.tcp_again), (100, 2));
        assert_eq!((sample.own_cpu, sample.own_wait, sample.clock_set), (0.2, 0.04, 0.0));
        assert_eq!(sample.links, [], "an interface that moves nothing says nothing");
    }

    #[test]
    fn a_clock_step_is_seen_in_either_direction() {
        let (at, wall) = (Instant::now(), SystemTime::now());
        let second = Duration::from_secs(1);
        for shift in [1.5, -2.5] {
            let moved = if shift > 0.0 {
                wall + Duration::from_secs_f64(shift)
            } else {
                wall - Duration::from_secs_f64(-shift)
            };
            let after = counters(at + second, moved + second, 1);
            let sample = SystemSample::between(&counters(at, wall, 1), &after, Duration::ZERO);
            assert!((sample.clock_set - f64::abs(shift)).abs() < 1e-9, "{}", sample.clock_set);
        }
    }
}
