//! `meter console`: a web page that measures, until a signal stops it.

use crate::args::meter::ConsoleArgs;
use crate::failure::Failure;
use crate::out;
use meter::agents::read_token;
use meter::console::{ConsoleConfig, MeterConsole};
use serde_json::json;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tenuto_agent::stop_on_signals;

pub(super) fn console(args: &ConsoleArgs) -> Result<(), Failure> {
    let stop = stop_on_signals()?;
    let program = std::env::current_exe()
        .map_err(|error| Failure::new(format!("cannot find this program: {error}")))?;
    let token = args.token_file.as_deref().map(|path| read_token(Some(path))).transpose()?;
    let config = ConsoleConfig {
        directory: args.dir.clone(),
        allowed: args.allow.clone(),
        listen: args.listen,
        tls: args.certificate.files(),
        token,
        meter: vec![program.into_os_string(), "meter".into()],
    };
    let console = MeterConsole::start(config, out::note)?;
    let address = console.address();
    let url = format!("{}://{address}/console/", args.certificate.scheme());
    if args.report.json {
        out::print_json(&json!({ "address": address, "url": url }));
    } else {
        out::print(&format!("the meter's console is at {url} (Ctrl-C stops)\n"));
    }
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(LOOK_FOR_SIGNALS);
    }
    Ok(())
}

/// Time between two looks at the stop flag.
const LOOK_FOR_SIGNALS: Duration = Duration::from_millis(100);
