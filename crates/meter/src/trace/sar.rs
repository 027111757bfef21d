//! The reports of `sar -d`: a device's rates without positions.
//!
//! ```text
//!   19:01:00          tps     rkB/s     wkB/s     dkB/s   areq-sz ... DEV
//!   19:01:01       367.00      4.00 187392.00      0.00    510.62 ... vda
//! ```
//!
//! Columns are found by their names, which differ between versions (`rd_sec/s` is older). The lines
//! `Average:` repeat the lines above and are skipped. Reads and writes have one mean size.

use super::{DeviceRates, Trace, TraceError, wanted};
use std::collections::BTreeMap;

pub(super) fn is(text: &str) -> bool {
    text.lines().take(50).any(is_head)
}

fn is_head(line: &str) -> bool {
    let has = |name: &str| line.split_whitespace().any(|field| field == name);
    has("DEV") && has("tps")
}

/// Sums over the lines of a device: lines, operations, bytes read, bytes written.
#[derive(Clone, Copy, Default)]
struct Sums(f64, f64, f64, f64);

pub(super) fn read(text: &str, only: Option<&str>) -> Result<Trace, TraceError> {
    let mut head: Vec<&str> = Vec::new();
    let mut devices: BTreeMap<&str, Sums> = BTreeMap::new();
    for (line, text) in (1..).zip(text.lines()) {
        let wrong = |why| TraceError::Line { line, format: "sar", why };
        // Heads are repeated; the last one applies.
        if is_head(text) {
            head = text.split_whitespace().collect();
            continue;
        }
        let fields: Vec<&str> = text.split_whitespace().collect();
        let titled = fields.first().is_some_and(|first| ["Average:", "Linux"].contains(first));
        // Averages would count every second a second time.
        if fields.is_empty() || titled || head.is_empty() {
            continue;
        }
        // The line of a restart has a time and no figures.
        if text.contains("RESTART") {
            continue;
        }
        let column = |name: &str| head.iter().position(|title| *title == name);
        let field = |name: &str| column(name).and_then(|column| fields.get(column).copied());
        let number = |name: &str| -> Result<Option<f64>, TraceError> {
            let Some(text) = field(name) else { return Ok(None) };
            let value: f64 = text.parse().map_err(|_| wrong("rates are numbers"))?;
            if value.is_finite() && value >= 0.0 {
                Ok(Some(value))
            } else {
                Err(wrong("a rate is 0 or more"))
            }
        };
        if fields.len() != head.len() {
            return Err(wrong("it has as many fields as the head above it"));
        }
        let device = field("DEV").ok_or(wrong("one column is DEV"))?;
        // Old versions of sar count sectors of 512 bytes.
        let bytes = |kib: &str, sectors: &str| -> Result<f64, TraceError> {
            let (kib, sectors) = (number(kib)?, number(sectors)?);
            let bytes = kib.map(|kib| kib * 1024.0).or(sectors.map(|sectors| sectors * 512.0));
            bytes.ok_or(wrong("there are columns for rates of bytes"))
        };
        let operations = number("tps")?.unwrap_or(0.0);
        let (read, written) = (bytes("rkB/s", "rd_sec/s")?, bytes("wkB/s", "wr_sec/s")?);
        let sums = devices.entry(device).or_default();
        *sums = Sums(sums.0 + 1.0, sums.1 + operations, sums.2 + read, sums.3 + written);
    }
    // Devices that were idle do not make the choice ambiguous.
    devices.retain(|name, sums| wanted(name, only) && sums.1 > 0.0 && sums.2 + sums.3 > 0.0);
    if devices.len() > 1 {
        let names: Vec<&str> = devices.keys().copied().collect();
        return Err(TraceError::Several(names.join(", ")));
    }
    let rates = devices.values().next().map(|Sums(lines, operations, read, written)| DeviceRates {
        operations: operations / lines,
        bytes_read: read / lines,
        bytes_written: written / lines,
    });
    Ok(Trace { format: "sar", operations: Vec::new(), rates })
}
