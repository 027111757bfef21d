//! A store as a file system: `mount`.

use crate::access::not_opened;
use crate::args::stores::MountArgs;
use crate::failure::Failure;
use crate::out;
use mount::{StoreMount, StoreMountOptions};
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::time::Duration;
use store::{Store, Unthrottled};

pub(crate) fn mount(args: &MountArgs) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::new(format!("cannot handle signals: {error}"));
    // Before the mount: a signal meanwhile unmounts it right after.
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(failed)?;
    let opened = if args.read_only { Store::open_read_only } else { Store::open };
    let store = Arc::new(opened(&args.store).map_err(not_opened)?);
    let options = StoreMountOptions {
        read_only: args.read_only,
        spool: args.spool.clone(),
        tell: Arc::new(|text| out::note(text)),
    };
    let mounted = StoreMount::start(Arc::clone(&store), &args.directory, &Unthrottled, options)?;
    tell(args, &store);
    let (mut asked, mut is_told) = (0, false);
    while mounted.is_mounted() {
        asked += signals.pending().count();
        match asked {
            0 => {}
            1 => match mounted.unmount() {
                Ok(()) => break,
                // Asked for again and again: programs that use it may end at any time.
                Err(why) if !is_told => {
                    out::note(&format!(
                        "waiting for programs that use {}: {why}; a second signal unmounts it at once",
                        args.directory.display()
                    ));
                    is_told = true;
                }
                Err(_) => {}
            },
            _ => {
                let detached = mounted.detach().map_err(|error| error.to_string());
                let how = detached.err().map_or(String::new(), |error| format!(" ({error})"));
                return Err(Failure::new(format!(
                    "unmounted while programs used it{how}: files that were being written are lost"
                )));
            }
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    mounted.join();
    Ok(())
}

fn tell(args: &MountArgs, store: &Store) {
    let (at, titles) = (args.directory.display(), store.info().titles);
    if args.report.json {
        let mode = if args.read_only { "read-only" } else { "read-write" };
        out::print_json(&json!({ "directory": at.to_string(), "titles": titles, "mode": mode }));
        return;
    }
    let titles = units::show::count(titles, "title");
    out::print(&format!(
        "{} is mounted on {at}: {titles} (Ctrl-C unmounts)\n",
        args.store.display()
    ));
}

/// Time between two looks for signals.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
