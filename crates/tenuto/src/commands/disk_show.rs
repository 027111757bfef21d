//! `disk show`: the kernel's facts about a device, and the ways of reading that it allows.

use crate::args::disks::ShowArgs;
use crate::failure::Failure;
use crate::out::{Table, facts};
use device::{
    BlockDevice, Description, DeviceError, DeviceKind, DiskFacts, FileDevice, Geometry, Method,
    OpenOptions, QueueLimits, describe,
};
use serde_json::{Value, json};
use std::path::Path;
use units::ByteCount;
use units::show::count;

pub(crate) fn show(args: &ShowArgs) -> Result<(), Failure> {
    let about = describe(&args.device)?;
    // Opened apart from `describe`, whose facts need no permission to read the device.
    let opened = FileDevice::open(&args.device, OpenOptions::default());
    let readable = opened.map(|device| (device.geometry(), device.methods()));
    args.report.show(&as_json(&args.device, &about, &readable), || as_page(&about, &readable));
    Ok(())
}

/// Each way of reading, and why it does not work here if it does not.
type Methods = Vec<(Method, std::io::Result<()>)>;

/// The facts that need permission to read the device.
type Readable = Result<(Geometry, Methods), DeviceError>;

fn as_page(about: &Description, readable: &Readable) -> String {
    let kind = if about.kind == DeviceKind::Block { "block device" } else { "file" }.to_owned();
    let mut lines = vec![("kind", kind), ("size", about.size.to_string())];
    if let Some(allocated) = about.allocated.filter(|_| about.is_sparse()) {
        lines.push(("sparse", format!("only {allocated} of it are allocated")));
    }
    if let Some(disk) = &about.disk {
        lines.extend(of_disk(disk, about.kind));
    }
    // The kernel lists the users of block devices only.
    if about.kind == DeviceKind::Block {
        let uses: Vec<String> = about.uses.iter().map(ToString::to_string).collect();
        lines.push(("in use", if uses.is_empty() { "no".to_owned() } else { uses.join(", ") }));
    }
    match readable {
        Err(error) => {
            lines.push(("reads by", format!("unknown: {error}")));
            facts(&lines)
        }
        Ok((geometry, methods)) => {
            lines.push(("transfers of", format!("whole blocks of {} bytes", geometry.block)));
            let mut table = Table::new(&["method", "works", "what"]);
            for (method, works) in methods {
                let works = works.as_ref().map_or_else(ToString::to_string, |()| "yes".to_owned());
                table.row(vec![method.to_string(), works, method.description().to_owned()]);
            }
            format!("{}\n{}", facts(&lines), table.show())
        }
    }
}

fn of_disk(disk: &DiskFacts, kind: DeviceKind) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    let name = match &disk.partition_of {
        Some(whole) => format!("{}, a partition of {whole}", disk.name),
        None => disk.name.clone(),
    };
    lines.push((if kind == DeviceKind::Block { "name" } else { "lies on" }, name));
    lines.extend(disk.model.clone().map(|model| ("model", model)));
    lines.extend(disk.backing_file.clone().map(|file| ("loop over", file)));
    if let (Some(logical), Some(physical)) = (disk.logical_block, disk.physical_block) {
        lines.push(("block", format!("{logical} bytes, written in units of {physical}")));
    }
    let seeks = if disk.rotational { "cost time" } else { "cost nothing" };
    lines.push(("seeks", seeks.to_owned()));
    // The kernel reports `none` for disks without zones.
    if let Some(zoned) = disk.zoned.as_ref().filter(|zoned| *zoned != "none") {
        let size = disk.zone_size.map_or(String::new(), |size| format!(", zones of {size}"));
        lines.push(("zoned", format!("{zoned}{size}")));
    }
    let QueueLimits { largest_request, segments, requests, read_ahead, .. } = disk.queue;
    if let (Some(largest), Some(segments), Some(requests)) = (largest_request, segments, requests) {
        let pieces = count(segments, "piece");
        let text = format!("up to {largest} in {pieces} of memory, {requests} may wait");
        lines.push(("requests", text));
    }
    lines.extend(read_ahead.map(|size| ("read-ahead", format!("{size} (buffered readers)"))));
    lines.extend(disk.queue.scheduler.clone().map(|scheduler| ("scheduler", scheduler)));
    lines.extend(disk.queue.write_cache.clone().map(|cache| ("writes", cache)));
    lines
}

fn as_json(path: &Path, about: &Description, readable: &Readable) -> Value {
    let opened = readable.as_ref();
    let methods = opened.ok().map(|(_, methods)| {
        let one = |(method, works): &(Method, std::io::Result<()>)| {
            json!({
                "name": method.name(),
                "works": works.is_ok(),
                "reason": works.as_ref().err().map(ToString::to_string),
            })
        };
        methods.iter().map(one).collect::<Vec<_>>()
    });
    json!({
        "path": path,
        "kind": if about.kind == DeviceKind::Block { "block" } else { "file" },
        "size": about.size.0,
        "allocated": about.allocated.map(|bytes| bytes.0),
        "sparse": about.is_sparse(),
        "block": opened.ok().map(|(geometry, _)| geometry.block),
        "rotational": about.disk.as_ref().is_some_and(|disk| disk.rotational),
        "disk": about.disk.as_ref().map(disk_json),
        "in_use": about.uses.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "methods": methods,
        "unreadable": opened.err().map(ToString::to_string),
    })
}

fn disk_json(disk: &DiskFacts) -> Value {
    let bytes = |size: Option<ByteCount>| size.map(|size| size.0);
    json!({
        "name": disk.name,
        "partition_of": disk.partition_of,
        "model": disk.model,
        "backing_file": disk.backing_file,
        "logical_block": disk.logical_block,
        "physical_block": disk.physical_block,
        "minimum_transfer": disk.minimum_transfer,
        "optimal_transfer": disk.optimal_transfer,
        "rotational": disk.rotational,
        "zoned": disk.zoned,
        "zone_size": bytes(disk.zone_size),
        "largest_request": bytes(disk.queue.largest_request),
        "largest_hardware_request": bytes(disk.queue.largest_hardware_request),
        "segments": disk.queue.segments,
        "requests": disk.queue.requests,
        "read_ahead": bytes(disk.queue.read_ahead),
        "scheduler": disk.queue.scheduler,
        "write_cache": disk.queue.write_cache,
        "polls": disk.queue.polls,
    })
}
