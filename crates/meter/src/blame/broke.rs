//! What broke first: the resource that was full when frames began to be late.

use super::{SystemSample, Watched};
use serde::{Deserialize, Serialize};
use units::{BitRate, ByteCount, float, rounded};

/// A resource that may be full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Resource {
    /// The processors of this machine.
    Processors,
    /// The one processor that the meter runs on.
    MeterProcessor,
    /// Packets and timers after interrupts.
    Softirq,
    /// A network interface.
    Link,
    /// TCP retransmits too much, or the receiving program does not read fast enough.
    Tcp,
    /// The NFS client's queue.
    NfsQueue,
    /// The NFS server, or the network to it.
    NfsServer,
    /// A block device beneath the target.
    Device,
    /// No resource that this machine can observe.
    Nothing,
}

impl Resource {
    /// Whether it is what the meter itself needs to be on time, rather than the storage.
    fn delays_the_meter(self) -> bool {
        matches!(self, Self::Processors | Self::MeterProcessor)
    }
}

/// The first resource that was full when frames began to be late, and the evidence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct First {
    /// The resource.
    pub(crate) resource: Resource,
    /// The resource's name, where a machine has several of the kind.
    pub(crate) name: Option<String>,
    /// The first second of the run in which it was full; `None` if no frame was late and this is
    /// the fullest resource.
    pub(crate) second: Option<usize>,
    /// The evidence as a sentence.
    pub(crate) sentence: String,
}

impl First {
    fn nothing(second: Option<usize>, sentence: &str) -> Self {
        Self { resource: Resource::Nothing, name: None, second, sentence: sentence.to_owned() }
    }

    /// The storage failed to read or write what was late, which no full resource explains.
    pub(crate) fn failed(second: Option<usize>, sentence: &str) -> Self {
        Self::nothing(second, sentence)
    }

    /// The resource in one or two words.
    pub(crate) fn short(&self) -> String {
        let what = match self.resource {
            Resource::Processors => "processors",
            Resource::MeterProcessor => "the meter's processor",
            Resource::Softirq => "network interrupts",
            Resource::Link => "link",
            Resource::Tcp => "TCP",
            Resource::NfsQueue => "NFS client",
            Resource::NfsServer => "NFS server",
            Resource::Device => "device",
            Resource::Nothing => "nothing seen here",
        };
        self.name.as_ref().map_or_else(|| what.to_owned(), |name| format!("{what} {name}"))
    }
}

/// The utilisation of one resource in one second.
struct Full {
    resource: Resource,
    name: Option<String>,
    /// The share of the limit that was used; 1 or more means full.
    share: f64,
    words: String,
}

impl Full {
    fn new(resource: Resource, share: f64, words: String) -> Self {
        Self { resource, name: None, share, words }
    }

    fn named(self, name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..self }
    }
}

/// The resource that was full when frames began to be late, in second `late`; without such a
/// second, the resource that was nearest to its limit. `by_storage` says whose the late frames are:
/// only what can delay the storage, or the meter, is named.
pub(crate) fn first_full(watched: &Watched, late: Option<usize>, by_storage: bool) -> First {
    let Some(late) = late else { return fullest(watched) };
    // The deadline is later than the read by the client's buffer, and the cause is where the read
    // was.
    let from = late.saturating_sub(BEFORE);
    let until = watched.samples.len().min(late + 1);
    for second in from..until {
        let full = what(watched, &watched.samples[second])
            .into_iter()
            .filter(|it| it.share >= 1.0 && it.resource.delays_the_meter() != by_storage);
        // The agent's own faults go first. A layered device is busy whenever the one below it is,
        // so of several full devices the lowest is the cause.
        if let Some(Full { resource, name, words, .. }) = full.reduce(|first, next| {
            let deeper = first.resource == Resource::Device && next.resource == Resource::Device;
            if deeper { next } else { first }
        }) {
            let sentence = format!("{words}, in second {second} of the run");
            return First { resource, name, second: Some(second), sentence };
        }
    }
    let sentence = if by_storage {
        "nothing on this machine was full: the storage, or the way to it, took its time"
    } else {
        "the meter was late itself, and nothing on this machine was seen to be full"
    };
    First::nothing(Some(late), sentence)
}

/// The resource nearest to its limit, for a run without a late frame.
fn fullest(watched: &Watched) -> First {
    let all = watched.samples.iter().flat_map(|sample| what(watched, sample));
    match all.max_by(|a, b| a.share.total_cmp(&b.share)) {
        Some(Full { resource, name, share, words }) if share > 0.0 => {
            let sentence = format!("nothing broke; nearest to its limit in any second: {words}");
            First { resource, name, second: None, sentence }
        }
        _ => First::nothing(None, "nothing broke, and nothing was busy"),
    }
}

fn what(watched: &Watched, sample: &SystemSample) -> Vec<Full> {
    let mut all = vec![processors(sample), meter_processor(sample), softirq(sample)];
    // What this machine's network does concerns no storage in it.
    let links = if watched.stack.is_local() { &[] } else { &sample.links[..] };
    for link in links {
        let Some(speed) = watched.speeds.get(&link.name) else { continue };
        // Links are full in each direction separately.
        let most = link.received.max(link.sent);
        let words = format!("{} moved {} of {speed}", link.name, rate(most));
        let full = Full::new(Resource::Link, most / bytes(*speed) / LINK, words);
        all.push(full.named(&link.name));
    }
    if !watched.stack.is_local() {
        all.extend(tcp(sample));
        all.extend(nfs(sample));
    }
    all.extend(sample.devices.iter().map(|device| {
        let words = format!(
            "{} was busy {} of the time with {:.1} requests at once, each taking {}; it read {} and \
             wrote {} a second",
            device.name,
            percent(device.busy),
            device.queue,
            millis(device.request),
            size(device.read),
            size(device.written)
        );
        // A device that is always busy with one request at a time could still take more.
        let share = (device.busy / DEVICE).min(device.queue);
        Full::new(Resource::Device, share, words).named(&device.name)
    }));
    all
}

fn processors(sample: &SystemSample) -> Full {
    // The time that the meter polls the clock is not work.
    let count = u32::try_from(sample.processors.len()).unwrap_or(u32::MAX).max(1);
    let spun = sample.own_spin / sample.seconds.max(1e-6) / f64::from(count);
    let busy = sample.processors_busy() - spun;
    // Processors that others keep busy do not matter to a meter that gets one when it needs it.
    let waited = sample.own_wait.max(sample.overslept);
    let words = format!(
        "the {} processors of this machine were busy {} of the time (the meter's part: {})",
        sample.processors.len(),
        percent(busy),
        percent(sample.own_share())
    );
    let full = busy / PROCESSORS;
    let share = if waited < WAITED { full.min(0.99) } else { full };
    Full::new(Resource::Processors, share, words)
}

fn meter_processor(sample: &SystemSample) -> Full {
    let own = sample.own_share();
    let share = if sample.busiest_processor() > PROCESSORS { own / PROCESSORS } else { 0.0 };
    let words = format!("the meter used {} of a processor", percent(own));
    Full::new(Resource::MeterProcessor, share, words)
}

fn softirq(sample: &SystemSample) -> Full {
    let most = sample.processors.iter().map(|each| each.softirq).fold(0.0, f64::max);
    let words = format!("a processor spent {} of its time on network interrupts", percent(most));
    Full::new(Resource::Softirq, most / SOFTIRQ, words)
}

fn tcp(sample: &SystemSample) -> Vec<Full> {
    let SystemSample { tcp_segments, tcp_again, tcp_windows_closed, .. } = sample;
    let mut all = Vec::new();
    // Of a few segments a single retransmission would already be a large share.
    if *tcp_segments >= FEW_SEGMENTS {
        let lost = float(*tcp_again) / float(*tcp_segments);
        let words = format!(
            "the network loses packets: {tcp_again} of {tcp_segments} TCP segments went again"
        );
        all.push(Full::new(Resource::Tcp, lost / TCP_LOSS, words));
    }
    let words = format!(
        "TCP peers were told to stop {tcp_windows_closed} times because nobody took what came"
    );
    all.push(Full::new(Resource::Tcp, float(*tcp_windows_closed) / CLOSED, words));
    all
}

fn nfs(sample: &SystemSample) -> Option<Full> {
    let nfs = sample.nfs.filter(|nfs| nfs.requests > 0)?;
    // The larger part of the time names the side that is to be looked at.
    let waits_here = nfs.queue > nfs.server;
    let (resource, words) = if waits_here {
        let words = format!(
            "NFS requests waited {} here before they were sent, and {} for the server",
            millis(nfs.queue),
            millis(nfs.server)
        );
        (Resource::NfsQueue, words)
    } else {
        let words = format!("the NFS server took {} for a request", millis(nfs.server));
        (Resource::NfsServer, words)
    };
    Some(Full::new(resource, nfs.queue.max(nfs.server) / NFS_SECONDS, words))
}

/// Seconds before the first late frame's deadline in which its cause may be found.
const BEFORE: usize = 2;
/// Share of processor time at which the processors count as full. Below 1 because a second is
/// longer than a peak.
const PROCESSORS: f64 = 0.95;
/// Seconds that the meter must have waited for a processor, in one of them.
const WAITED: f64 = 0.05;
const DEVICE: f64 = 0.95;
const LINK: f64 = 0.9;
/// Share of softirq time at which a processor counts as full: the processor that takes a network
/// card's interrupts is at its limit long before all of its time is counted as softirq.
const SOFTIRQ: f64 = 0.6;
/// With one segment in a hundred lost, TCP's rate is the network's and not the storage's.
const TCP_LOSS: f64 = 0.01;
const FEW_SEGMENTS: u64 = 100;
/// Closed receive windows per second from which the receiver counts as too slow.
const CLOSED: f64 = 20.0;
/// Seconds for one NFS request from which NFS counts as full: longer than video clients buffer (8
/// frames at 25 a second are 0.32 s, and a frame takes several requests).
const NFS_SECONDS: f64 = 0.2;

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn millis(seconds: f64) -> String {
    format!("{:.1} ms", seconds * 1e3)
}

fn size(bytes: f64) -> ByteCount {
    ByteCount(rounded(bytes))
}

fn rate(bytes: f64) -> BitRate {
    BitRate(rounded(bytes * 8.0))
}

fn bytes(rate: BitRate) -> f64 {
    float(rate.0) / 8.0
}

#[cfg(test)]
mod tests {
    use super::super::Stack;
    use super::super::sample::{Device, Link, Nfs, Processor};
    use super::*;

    fn quiet() -> SystemSample {
        let processor = Processor { busy: 0.2, softirq: 0.01, steal: 0.0 };
        SystemSample { seconds: 1.0, processors: vec![processor; 2], ..SystemSample::default() }
    }

    fn device(name: &str, busy: f64, queue: f64) -> Device {
        let name = name.into();
        Device { name, busy, queue, requests: 100, request: 0.04, read: 2e8, written: 0.0 }
    }

    fn seen(second: SystemSample) -> First {
        seen_of(second, Stack::default(), true)
    }

    fn seen_of(second: SystemSample, stack: Stack, by_storage: bool) -> First {
        let samples = vec![quiet(), quiet(), quiet(), second, quiet()];
        let speeds = [("eth0".to_owned(), BitRate(1_000_000_000))].into();
        first_full(&Watched { samples, speeds, stack, ..Watched::default() }, Some(4), by_storage)
    }

    #[test]
    fn the_resource_that_is_full_before_the_first_late_frame_is_named() {
        let busy = Processor { busy: 0.99, softirq: 0.7, steal: 0.0 };
        let idle_for_us = Processor { softirq: 0.0, ..busy };
        let link = Link { name: "eth0".into(), received: 1.2e8, sent: 1e3, dropped: 0 };
        let nfs = |queue, server| Nfs { requests: 50, again: 0, queue, server };
        let cases = [
            (
                SystemSample { processors: vec![idle_for_us; 2], own_wait: 0.2, ..quiet() },
                Resource::Processors,
            ),
            (SystemSample { processors: vec![idle_for_us; 2], ..quiet() }, Resource::Nothing),
            (
                SystemSample { processors: vec![busy, Processor::default()], ..quiet() },
                Resource::Softirq,
            ),
            (SystemSample { links: vec![link], ..quiet() }, Resource::Link),
            (SystemSample { tcp_segments: 1000, tcp_again: 30, ..quiet() }, Resource::Tcp),
            (SystemSample { nfs: Some(nfs(0.5, 0.01)), ..quiet() }, Resource::NfsQueue),
            (SystemSample { nfs: Some(nfs(0.01, 0.5)), ..quiet() }, Resource::NfsServer),
            (
                SystemSample { devices: vec![device("sda", 0.99, 12.0)], ..quiet() },
                Resource::Device,
            ),
            (
                SystemSample { devices: vec![device("sda", 0.99, 0.9)], ..quiet() },
                Resource::Nothing,
            ),
        ];
        for (second, resource) in cases {
            let by_meter = resource == Resource::Processors;
            let first = seen_of(second, Stack::default(), !by_meter);
            assert_eq!(first.resource, resource, "{}", first.sentence);
        }
    }

    #[test]
    fn a_processor_that_only_watches_the_clock_is_not_full() {
        let busy = Processor { busy: 1.0, ..Processor::default() };
        let second = |own_spin| SystemSample {
            processors: vec![busy],
            own_cpu: 1.0,
            own_spin,
            own_wait: 0.1,
            ..quiet()
        };
        let own = |sample| seen_of(sample, Stack::default(), false).resource;
        assert_eq!(own(second(0.0)), Resource::Processors);
        assert_eq!(own(second(0.9)), Resource::Nothing);
    }

    #[test]
    fn only_what_can_delay_the_target_is_named() {
        let lost = SystemSample { tcp_segments: 1000, tcp_again: 300, ..quiet() };
        let local = Stack { devices: vec!["sda".into()], ..Stack::default() };
        let memory = Stack { file_system: Some("tmpfs".into()), ..Stack::default() };
        for (stack, resource) in [
            (Stack::default(), Resource::Tcp),
            (local, Resource::Nothing),
            (memory, Resource::Nothing),
        ] {
            assert_eq!(seen_of(lost.clone(), stack.clone(), true).resource, resource, "{stack:?}");
        }
        // Others use the processors, and frames are late because of the storage; or of the meter.
        let busy = Processor { busy: 1.0, ..Processor::default() };
        let hogged = SystemSample { processors: vec![busy], own_wait: 0.2, ..quiet() };
        let frozen = seen(hogged.clone());
        assert_eq!(frozen.resource, Resource::Nothing);
        assert!(frozen.sentence.contains("the storage, or the way to it"), "{}", frozen.sentence);
        let own = seen_of(quiet(), Stack::default(), false);
        assert!(own.sentence.contains("the meter was late itself"), "{}", own.sentence);
        assert_eq!(seen_of(hogged, Stack::default(), false).resource, Resource::Processors);
    }

    #[test]
    fn of_stacked_devices_the_lowest_full_one_is_named() {
        let devices = vec![device("loop0", 1.0, 20.0), device("vda", 0.98, 15.0)];
        let first = seen(SystemSample { devices, ..quiet() });
        assert_eq!((first.name.as_deref(), first.second), (Some("vda"), Some(3)));
        assert!(first.sentence.starts_with("vda was busy 98 % of the time"), "{}", first.sentence);
        assert_eq!(first.short(), "device vda");
        let devices = vec![device("loop0", 1.0, 20.0), device("vda", 0.1, 0.2)];
        assert_eq!(seen(SystemSample { devices, ..quiet() }).name.as_deref(), Some("loop0"));
    }

    #[test]
    fn without_a_miss_the_resource_nearest_to_its_limit_is_named() {
        let busy = SystemSample { devices: vec![device("sda", 0.9, 4.0)], ..quiet() };
        let watched = Watched { samples: vec![quiet(), busy], ..Watched::default() };
        let first = first_full(&watched, None, false);
        assert_eq!((first.resource, first.second), (Resource::Device, None));
        assert!(first.sentence.starts_with("nothing broke; nearest"), "{}", first.sentence);
    }
}
