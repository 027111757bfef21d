//! Stores as file systems: `mount`, and `serve --mount`.

use crate::access::not_opened;
use crate::args::stores::MountArgs;
use crate::args::viewing::ServeArgs;
use crate::failure::{Code, Failure};
use crate::out;
use mount::{StoreMount, StoreMountOptions, detach, take_off_dead};
use serde_json::json;
use server::Server;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use store::{SoleOwner, Store, StoreAccess};
use units::locked;

pub(crate) fn mount(args: &MountArgs) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::new(format!("cannot handle signals: {error}"));
    if !args.read_only && !args.spool.is_dir() {
        let why = format!("--spool: {} is no directory", args.spool.display());
        return Err(Failure::new(why).hint("name one with room for the files that are written"));
    }
    // Before the mount: a signal meanwhile unmounts it right after.
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(failed)?;
    let opened = if args.read_only { Store::open_read_only } else { Store::open };
    let owner = Arc::new(SoleOwner(opened(&args.store).map_err(not_opened)?));
    let titles = owner.store().info().titles;
    let options = StoreMountOptions {
        read_only: args.read_only,
        spool: args.spool.clone(),
        rate: None,
        tell: Arc::new(out::note),
    };
    let mounted = StoreMount::start(owner, &args.directory, options)?;
    tell(args, titles);
    let (mut asked, mut is_told) = (0, false);
    while mounted.is_mounted() {
        asked += signals.pending().count();
        match asked {
            0 => {}
            1 => {
                let why = match mounted.unmount() {
                    Ok(()) if !mounted.is_connected() => break,
                    Ok(()) => "a bind mount or another mount namespace has a copy of it".to_owned(),
                    // Asked for again and again: programs that use it may end at any time.
                    Err(why) => why.to_string(),
                };
                if !is_told {
                    out::note(&format!(
                        "waiting for programs that use {}: {why}; a second signal unmounts it at once",
                        args.directory.display()
                    ));
                    is_told = true;
                }
            }
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

fn tell(args: &MountArgs, titles: u64) {
    let at = args.directory.display();
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

/// The directories on which a server's stores are mounted now.
type MountPoints = Arc<Mutex<BTreeSet<PathBuf>>>;

/// Stops a server with mounted stores: the flag is set by the first signal, and a second one ends
/// the process, with nothing mounted that it leaves behind.
pub(crate) struct MountedStop {
    flag: Arc<AtomicBool>,
    points: MountPoints,
}

impl MountedStop {
    /// Handles SIGINT and SIGTERM from here on.
    pub(crate) fn on_signals() -> Result<Self, Failure> {
        let failed =
            |error: std::io::Error| Failure::new(format!("cannot handle signals: {error}"));
        let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(failed)?;
        let (flag, points) = (Arc::new(AtomicBool::new(false)), MountPoints::default());
        let (told, mounted) = (Arc::clone(&flag), Arc::clone(&points));
        // A thread instead of a signal handler, in which nothing can be unmounted.
        let wait = move || {
            for _ in &mut signals {
                if told.swap(true, Ordering::Relaxed) {
                    for at in locked(&mounted).iter() {
                        // There is no further remedy.
                        let _ = detach(at);
                    }
                    std::process::exit(Code::Failed as i32);
                }
            }
        };
        std::thread::Builder::new().name("signals".to_owned()).spawn(wait).map_err(failed)?;
        Ok(Self { flag, points })
    }

    /// The flag that the first signal sets.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.flag)
    }
}

/// The mounted stores of a server.
pub(crate) struct ServedMounts {
    mounts: Vec<(PathBuf, StoreMount)>,
    points: MountPoints,
}

impl ServedMounts {
    /// Mounts each store of a server in the directory of `--mount`, on a directory named like its
    /// file; nothing without one.
    pub(crate) fn start(
        server: &Server,
        args: &ServeArgs,
        stop: Option<&MountedStop>,
    ) -> Result<Self, Failure> {
        // On the way out with an error, those that are mounted by then are unmounted.
        let (mut mounts, points) = (Vec::new(), MountPoints::default());
        let points = stop.map_or(points, |stop| Arc::clone(&stop.points));
        let Some(directory) = &args.mount else { return Ok(Self { mounts, points }) };
        for (store, owner) in server.title_owners() {
            let at = directory.join(store.file_name().unwrap_or_default());
            // A server that was killed is to start again without help.
            take_off_dead(&at);
            std::fs::create_dir_all(&at).map_err(|error| {
                Failure::new(format!("cannot make {}: {error}", at.display()))
                    .hint("name a directory for --mount in which this user may make others")
            })?;
            let options = StoreMountOptions {
                read_only: false,
                spool: PathBuf::from(SPOOL),
                rate: args.mount_rate,
                tell: Arc::new(out::note),
            };
            let mount = StoreMount::start(Arc::clone(owner), &at, options)?;
            locked(&points).insert(at.clone());
            out::note(&format!("{} is mounted on {}", store.display(), at.display()));
            mounts.push((at, mount));
        }
        Ok(Self { mounts, points })
    }

    /// Unmounts them when the programs that use them have ended, at the latest after `patience`.
    pub(crate) fn end(self, patience: Duration) {
        let end = Instant::now() + patience;
        for (at, mount) in self.mounts {
            loop {
                let here = mount.unmount();
                if here.is_ok() && !mount.is_connected() {
                    break;
                }
                if Instant::now() >= end {
                    out::note(&match here {
                        Err(_) => {
                            "a mounted store is in use: its users get errors from now on".to_owned()
                        }
                        Ok(()) => format!(
                            "{} has a copy, a bind mount or in another mount namespace: the users of \
                             the copy get errors from now on",
                            at.display()
                        ),
                    });
                    // There is no further remedy.
                    let _ = mount.detach();
                    break;
                }
                std::thread::sleep(LOOK_AGAIN);
            }
            locked(&self.points).remove(&at);
            // One that could not be ended goes with this process, or with the program that a
            // restart replaces.
            if !mount.is_connected() {
                mount.join();
            }
        }
    }
}

/// The directory for the bytes of files that are being written to a served store.
const SPOOL: &str = "/var/tmp";

/// Time between two looks for signals.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
