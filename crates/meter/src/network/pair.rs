//! Two network namespaces and the link between them.

use super::counters::dropped;
use super::{Condition, system};
use crate::error::MeterError;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::process::Command;

/// Two namespaces and their link; all is removed when it is dropped.
pub(super) struct NamespacePair {
    near: String,
    far: String,
}

/// The server's address, from a network for documentation (RFC 5737), in its own namespace.
pub(super) const SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

/// The name of the link's ends, in both namespaces.
const LINK: &str = "tenuto0";

/// The name of one namespace.
#[derive(Clone)]
pub(super) struct Namespace(String);

impl NamespacePair {
    pub(super) fn make() -> Result<Self, MeterError> {
        let own = std::process::id();
        let pair = Self { near: format!("tenuto-{own}-near"), far: format!("tenuto-{own}-far") };
        let Self { near, far } = &pair;
        ip(&format!("netns add {near}"))?;
        // From here on dropping the pair removes everything.
        ip(&format!("netns add {far}"))?;
        ip(&format!("link add {LINK} netns {near} type veth peer name {LINK} netns {far}"))?;
        for (place, address) in [(near, "192.0.2.2"), (far, "192.0.2.1")] {
            ip(&format!("-n {place} addr add {address}/30 dev {LINK}"))?;
            ip(&format!("-n {place} link set {LINK} up"))?;
            // Segmentation offload would let the kernel move many packets as one, and no MTU would
            // matter.
            ip(&format!("-n {place} link set {LINK} gso_max_segs 1"))?;
        }
        Ok(pair)
    }

    pub(super) fn set(&self, condition: &Condition) -> Result<(), MeterError> {
        let Self { near, far } = self;
        let Condition { link, queue, mtu, .. } = condition;
        for place in [near, far] {
            ip(&format!("-n {place} link set {LINK} mtu {mtu}"))?;
        }
        // The burst covers the bytes between two ticks of the kernel, and at least two packets.
        let burst = (link.0 / 8 / TICKS).max(2 * u64::from(mtu + HEADER));
        let (rate, queue) = (link.0, queue.0);
        let shape = format!("rate {rate}bit burst {burst} limit {queue}");
        run("tc", &format!("-n {far} qdisc replace dev {LINK} root tbf {shape}"))?;
        let window = match condition.window {
            Some(window) => format!("4096 {0} {0}", window.0),
            None => "4096 131072 6291456".to_owned(),
        };
        self.near().offer(&window)
    }

    /// Packets that the queue dropped since it was made.
    pub(super) fn dropped(&self) -> Result<u64, MeterError> {
        let command = format!("-n {} -s qdisc show dev {LINK}", self.far);
        let text = run("tc", &command)?;
        dropped(&text).ok_or_else(|| {
            let missing = "it does not say how many packets were dropped";
            MeterError::new(format!("`tc {command}`: {missing}"))
        })
    }

    /// The TCP counters of the sender's connections, as text.
    pub(super) fn sockets(&self) -> Result<String, MeterError> {
        ip(&format!("netns exec {} ss -tinH state established", self.far))
    }

    pub(super) fn near(&self) -> Namespace {
        Namespace(self.near.clone())
    }

    pub(super) fn far(&self) -> Namespace {
        Namespace(self.far.clone())
    }
}

impl Namespace {
    /// Moves the calling thread, and threads that it starts from now on, into this namespace.
    pub(super) fn enter(&self) -> Result<(), MeterError> {
        let failed = system("cannot enter a network namespace");
        let file = File::open(format!("/run/netns/{}", self.0)).map_err(failed)?;
        let network = Some(LinkNameSpaceType::Network);
        move_into_link_name_space(file.as_fd(), network).map_err(|error| failed(error.into()))
    }
}

impl Namespace {
    /// Sets the receive window of this namespace: least, first and largest.
    fn offer(&self, window: &str) -> Result<(), MeterError> {
        let set = || {
            self.enter()?;
            std::fs::write("/proc/sys/net/ipv4/tcp_rmem", window)
                .map_err(system("cannot set the window"))
        };
        // The file describes the namespace of the calling thread, so a thread of its own enters it.
        let ended = std::thread::scope(|scope| scope.spawn(set).join());
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for NamespacePair {
    fn drop(&mut self) {
        for place in [&self.near, &self.far] {
            // Errors cannot be reported in drop; `ip netns` lists what remains.
            let _ = ip(&format!("netns del {place}"));
        }
    }
}

fn ip(arguments: &str) -> Result<String, MeterError> {
    run("ip", arguments)
}

fn run(tool: &str, arguments: &str) -> Result<String, MeterError> {
    call(tool, &arguments.split(' ').collect::<Vec<_>>())
}

fn call(tool: &str, arguments: &[&str]) -> Result<String, MeterError> {
    let failed =
        |reason: &str| MeterError::new(format!("`{tool} {}`: {reason}", arguments.join(" ")));
    let done = Command::new(tool).args(arguments).output().map_err(|error| {
        failed(&error.to_string()).hint("install iproute2, which has `ip`, `tc` and `ss`")
    })?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        return Err(failed(said.trim()).hint("the kernel must have veth and tbf"));
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

/// The lowest timer frequency of the kernel, in ticks per second.
const TICKS: u64 = 100;

/// The length of an Ethernet header in bytes.
const HEADER: u32 = 14;
