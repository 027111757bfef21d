//! Stores as file systems: `mount`, and `serve --mount`.

use crate::access::not_opened;
use crate::args::stores::MountArgs;
use crate::args::viewing::ServeArgs;
use crate::failure::{Code, Failure};
use crate::out;
use mount::{StoreMount, StoreMountOptions, detach, is_on, refuse_unusable, take_off_dead};
use serde_json::json;
use server::{MountLog, Server};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use store::{SoleOwner, Store, StoreAccess, StoreError};
use units::locked;

pub(crate) fn mount(args: &MountArgs) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::new(format!("cannot handle signals: {error}"));
    if !args.read_only {
        refuse_no_spool("--spool", &args.spool)?;
    }
    // Before the mount: a signal meanwhile unmounts it right after.
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(failed)?;
    let opened = if args.read_only { Store::open_read_only } else { Store::open };
    let owner = Arc::new(SoleOwner(opened(&args.store).map_err(not_mounted)?));
    let titles = owner.store().info().titles;
    let options = StoreMountOptions {
        read_only: args.read_only,
        spool: args.spool.clone(),
        rate: None,
        tell: Arc::new(out::note),
    };
    let mounted = StoreMount::start(owner, &args.directory, options)?;
    tell(args, titles);
    let (mut asked, mut is_told, mut busy_since) = (0, false, None);
    let mut is_busy_for = move || busy_since.get_or_insert_with(Instant::now).elapsed();
    while mounted.is_mounted() {
        asked += signals.pending().count();
        match asked {
            0 => {}
            1 => {
                let why = match mounted.unmount() {
                    Ok(()) if !mounted.is_connected() => break,
                    Ok(()) => Some(COPIED.to_owned()),
                    // Asked for again and again: programs that use it may end at any time, and one
                    // that has just ended is no news.
                    Err(_) if is_busy_for() < A_MOMENT => None,
                    Err(why) => Some(why.to_string()),
                };
                if let Some(why) = why.filter(|_| !is_told) {
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

fn not_mounted(error: StoreError) -> Failure {
    match error {
        StoreError::Owned { .. } => Failure::from(error).hint(
            "if a server has it, mount it by that server: start it with `tenuto serve --mount`; \
             otherwise wait until the other command has finished",
        ),
        error => not_opened(error),
    }
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

/// The directories on which a server's stores are mounted now, with the device number of each
/// mount.
pub(crate) type MountPoints = Arc<Mutex<BTreeMap<PathBuf, u64>>>;

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
                    for at in locked(&mounted).keys() {
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

    /// Where the stores are mounted, at any time.
    pub(crate) fn points(&self) -> MountPoints {
        Arc::clone(&self.points)
    }
}

/// The directory of a store's mount in the directory of `--mount`.
fn place_of(store: &Path, directory: &Path) -> PathBuf {
    directory.join(store.file_name().unwrap_or_default())
}

/// Makes the directory of a mount, without what a killed server has left there: one is to start
/// again without help.
fn make_place(at: &Path) -> Result<(), Failure> {
    take_off_dead(at);
    std::fs::create_dir_all(at).map_err(|error| {
        Failure::new(format!("cannot make {}: {error}", at.display()))
            .hint("name a directory for --mount in which this user may make others")
    })
}

/// Refuses a restart after which a store could not be mounted. `points`: where they are now; the
/// restart unmounts them.
pub(crate) fn refuse_unmountable(args: &ServeArgs, points: &MountPoints) -> Result<(), Failure> {
    let Some(directory) = &args.mount else { return Ok(()) };
    refuse_no_served_spool(args)?;
    for at in args.stores.iter().map(|store| place_of(store, directory)) {
        let device = locked(points).get(&at).copied();
        if device.is_some_and(|device| is_on(&at, device)) {
            continue;
        }
        make_place(&at)?;
        refuse_unusable(&at)?;
    }
    Ok(())
}

/// The mounted stores of a server.
pub(crate) struct ServedMounts {
    mounts: Vec<ServedMount>,
    points: MountPoints,
    log: MountLog,
}

/// A mounted store of a server.
struct ServedMount {
    store: PathBuf,
    at: PathBuf,
    mount: StoreMount,
    /// Whether another program has unmounted it. Copies of it may still be used.
    is_gone: bool,
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
        let log = server.mount_log();
        let Some(directory) = &args.mount else { return Ok(Self { mounts, points, log }) };
        for (store, owner) in server.title_owners() {
            let at = place_of(store, directory);
            make_place(&at)?;
            let (logged, named) = (log.clone(), store.clone());
            let options = StoreMountOptions {
                read_only: false,
                spool: args.mount_spool.clone(),
                rate: args.mount_rate,
                tell: Arc::new(move |text: &str| {
                    out::note(text);
                    logged.note(&named, text);
                }),
            };
            let mount = StoreMount::start(Arc::clone(owner), &at, options)?;
            locked(&points).insert(at.clone(), mount.device());
            out::note(&format!("{} is mounted on {}", store.display(), at.display()));
            mounts.push(ServedMount { store: store.clone(), at, mount, is_gone: false });
        }
        Ok(Self { mounts, points, log })
    }

    /// Tells of those that another program has unmounted since the last call.
    pub(crate) fn tell_unmounted(&mut self) {
        for ServedMount { store, at, mount, is_gone } in &mut self.mounts {
            if *is_gone {
                mount.tell_lost();
                continue;
            }
            if mount.is_in_place() {
                continue;
            }
            *is_gone = true;
            locked(&self.points).remove(at);
            let (name, directory) = (store.display(), at.display());
            out::note(&format!(
                "{name} is not mounted on {directory} any more: another program has unmounted it. \
                 Files that are copied there now are not in the store; a restart in place mounts it \
                 again, if the directory is empty then"
            ));
            self.log.unmounted(store, at);
        }
    }

    /// Unmounts them when the programs that use them have ended, at the latest after `patience`.
    pub(crate) fn end(self, patience: Duration) {
        let end = Instant::now() + patience;
        for ServedMount { at, mount, .. } in self.mounts {
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

/// Refuses a directory that is none for the bytes of files that are being written to the mounts of
/// a server.
pub(crate) fn refuse_no_served_spool(args: &ServeArgs) -> Result<(), Failure> {
    args.mount.as_ref().map_or(Ok(()), |_| refuse_no_spool("--mount-spool", &args.mount_spool))
}

/// Refuses a directory that is none for the bytes of files that are being written.
fn refuse_no_spool(option: &str, spool: &Path) -> Result<(), Failure> {
    if spool.is_dir() {
        return Ok(());
    }
    let why = format!("{option}: {} is no directory", spool.display());
    Err(Failure::new(why).hint("name one with room for the files that are written"))
}

/// Why a mount that is unmounted goes on.
const COPIED: &str = "a bind mount or another mount namespace has a copy of it";

/// The time for which a mount may be busy after a signal before that is told.
const A_MOMENT: Duration = Duration::from_secs(1);

/// Time between two looks for signals.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
