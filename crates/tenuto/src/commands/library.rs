//! `library`: titles in several stores, each as often as is wanted.

mod missed;

use super::stores::mismatched;
use crate::access::{absolute, ask};
use crate::args::stores::LibraryArgs;
use crate::failure::{Code, Failure};
use crate::out::{self, Table};
use missed::{MissedReport, missed_changes};
use serde::Serialize;
use server::control::{Reply, Request};
use server::wire;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use store::{
    LibraryGoal, LibraryPlan, LibraryStep, LibraryStore, LibraryTitle, TitleLeft, TitleSelection,
};
use units::ByteCount;
use units::show::count;

pub(crate) fn library(args: &LibraryArgs) -> Result<(), Failure> {
    let missed = missed_changes(args);
    let mut stores = named(args)?;
    for change in &missed {
        change.apply_to(&mut stores);
    }
    let staying = stores.iter().filter(|store| !store.leaves).count();
    if args.copies > staying {
        let (copies, stores) = (args.copies, count(staying, "store"));
        return Err(Failure::usage(format!("{copies} copies need as many stores, not {stores}"))
            .hint("name more stores, or fewer copies"));
    }
    let plan = LibraryPlan::new(
        &stores.iter().map(LibraryMember::planned).collect::<Vec<_>>(),
        LibraryGoal { copies: args.copies, balance: args.balance },
    );
    refuse_unreachable(&stores, &plan)?;
    let mut report = LibraryReport::new(&stores, &plan, args.copies);
    report.missed = missed;
    if args.apply {
        report.apply(&stores, &plan);
        // The stores as they are now, as far as they can still be read.
        if let Ok(stores) = named(args) {
            report.stores = stores.iter().map(StoreReport::of).collect();
            // What was recorded at first stays listed: its title is in the store by now.
            for new in recorded(&stores) {
                if !report.left.iter().any(|left| left.title == new.title) {
                    report.left.push(new);
                }
            }
        }
    }
    report.done = report.all_copied() && report.failing().all(|(store, _)| store.leaves);
    args.report.show(&report, || page(&report, args.apply));
    if report.done { Ok(()) } else { Err(Failure::reported(Code::Failed)) }
}

/// A store of the library.
struct LibraryMember {
    path: PathBuf,
    leaves: bool,
    info: wire::StoreInfo,
    /// The disks of the server that has it; `None` where no server has it.
    server: Option<Vec<wire::DiskReport>>,
    titles: Vec<wire::ListedTitle>,
    /// What is being recorded into it.
    recordings: Vec<wire::Recording>,
    /// Whether its server drains its disk.
    is_drained: bool,
}

impl LibraryMember {
    fn look(path: &Path, leaves: bool) -> Result<Self, Failure> {
        let about = |failure: Failure| failure.of_one_store().about(path);
        let Reply::Store(info) = ask(path, &Request::Info { title: None }).map_err(about)? else {
            mismatched()
        };
        let server = status(path).map(|status| status.disks);
        // Before the titles, among which a recording is that ends meanwhile. Into a store that no
        // server has nothing is recorded while this command can open it.
        let (recordings, is_drained) = match server {
            Some(_) => match ask(path, &Request::Drain { drain: None }).map_err(about)? {
                Reply::Drain(report) => (report.recordings, report.draining),
                _ => mismatched(),
            },
            None => (Vec::new(), false),
        };
        let all = Request::Ls(TitleSelection::default());
        let Reply::Titles(list) = ask(path, &all).map_err(about)? else { mismatched() };
        let (path, titles) = (path.to_owned(), list.titles);
        let member = Self { path, leaves, info, server, titles, recordings, is_drained };
        if member.disk().is_some_and(|disk| disk.lost) {
            let why = format!(
                "{}: its server has lost this disk, with its copies",
                member.path.display()
            );
            return Err(Failure::new(why).hint(
                "name the other stores without it; docs/guide/serve.md tells how to replace a disk",
            ));
        }
        Ok(member)
    }

    /// The disk of the store as its server sees it; `None` where no server has the store.
    fn disk(&self) -> Option<&wire::DiskReport> {
        self.server.as_ref()?.iter().find(|disk| disk.uuid == self.info.uuid)
    }

    /// Whether titles can be copied from the other store into this one: the process that has this
    /// one reads the other, which it has, too, or which no server has.
    fn reads(&self, other: &Self) -> bool {
        let has = |disks: &Vec<wire::DiskReport>| disks.iter().any(|it| it.uuid == other.info.uuid);
        other.server.is_none() || self.server.as_ref().is_some_and(has)
    }

    /// Sessions that are read from it; `None` where no server has it.
    fn sessions(&self) -> Option<u64> {
        self.disk().map(|disk| disk.sessions)
    }

    fn planned(&self) -> LibraryStore {
        let titles = self.titles.iter().map(|title| LibraryTitle {
            name: title.name.clone(),
            content: title.content.clone(),
            bytes: title.bytes,
            tracks: title.tracks,
        });
        LibraryStore {
            size: self.info.data_bytes,
            free: self.info.free_bytes,
            chunk: self.info.chunk,
            sessions: self.sessions().unwrap_or(0),
            leaves: self.leaves,
            fails_writes: self.info.write_failure.is_some(),
            is_drained: self.is_drained,
            titles: titles.collect(),
        }
    }
}

/// The status of the server that has a store; `None` where none has it.
fn status(store: &Path) -> Option<wire::ServerStatus> {
    match ask(store, &Request::Status) {
        Ok(Reply::Status(status)) => Some(*status),
        _ => None,
    }
}

/// The stores of a command line, each once.
fn named(args: &LibraryArgs) -> Result<Vec<LibraryMember>, Failure> {
    let mut stores: Vec<LibraryMember> = Vec::new();
    let leaving = args.empty.iter().map(|path| (path, true));
    for (path, leaves) in args.stores.iter().map(|path| (path, false)).chain(leaving) {
        let store = LibraryMember::look(path, leaves)?;
        match stores.iter_mut().find(|before| before.info.uuid == store.info.uuid) {
            // A store that is to be emptied may be named among the others.
            Some(before) if leaves && !before.leaves => before.leaves = true,
            Some(before) => {
                let (store, before) = (path.display(), before.path.display());
                return Err(Failure::usage(format!("{store} is the same store as {before}"))
                    .hint("name each store once"));
            }
            None => stores.push(store),
        }
    }
    if args.served {
        for number in 0..stores.len() {
            let path = stores[number].path.clone();
            let status = status(&path).ok_or_else(|| {
                Failure::usage(format!("{} is not served", path.display()))
                    .hint("leave out --served, and name all stores")
            })?;
            for disk in status.disks {
                if stores.iter().any(|store| store.info.uuid == disk.uuid) {
                    continue;
                }
                let path = PathBuf::from(&disk.store);
                if path.is_relative() {
                    return Err(Failure::new(format!(
                        "the server has a store as '{}'",
                        disk.store
                    ))
                    .hint("leave out --served, and name all stores: this path is relative"));
                }
                stores.push(LibraryMember::look(&path, false)?);
            }
        }
    }
    Ok(stores)
}

/// Refuses a plan with a copy that no process can make, before anything is done of it.
fn refuse_unreachable(stores: &[LibraryMember], plan: &LibraryPlan) -> Result<(), Failure> {
    for step in &plan.steps {
        let LibraryStep::Copy { from, to, .. } = step else { continue };
        let to = &stores[*to];
        if from.iter().any(|from| to.reads(&stores[*from])) {
            continue;
        }
        let from = &stores[from[0]];
        let (path, other) = (to.path.display(), from.path.display());
        let why = match to.server {
            None => format!("{other} is served, and {path} is not: nobody can copy between them"),
            Some(_) => format!("{other} and {path} are served by different servers"),
        };
        return Err(Failure::new(why).hint(format!(
            "start the server that has {other} anew with {path} beside it, then run the command \
             again"
        )));
    }
    Ok(())
}

/// What `library` found and did.
#[derive(Serialize)]
struct LibraryReport {
    /// Whether each title is in as many stores as wanted, and nothing is left to do.
    done: bool,
    /// In how many stores each title is wanted.
    copies: usize,
    /// Number of different titles.
    titles: usize,
    stores: Vec<StoreReport>,
    missed: Vec<MissedReport>,
    steps: Vec<StepReport>,
    left: Vec<LeftReport>,
}

#[derive(Serialize)]
struct StoreReport {
    store: PathBuf,
    uuid: String,
    data_bytes: u64,
    free_bytes: u64,
    titles: usize,
    /// Sessions that are read from it; `null` where no server has it.
    sessions: Option<u64>,
    /// Whether it is to be emptied.
    leaves: bool,
    /// Whether its disk is drained: no title is written to it, and what is there counts as no copy.
    draining: bool,
    /// Why its server writes nothing more to it: what is there counts as no copy.
    write_failure: Option<String>,
}

impl StoreReport {
    fn of(store: &LibraryMember) -> Self {
        Self {
            store: store.path.clone(),
            uuid: store.info.uuid.clone(),
            data_bytes: store.info.data_bytes,
            free_bytes: store.info.free_bytes,
            titles: store.titles.len(),
            sessions: store.sessions(),
            leaves: store.leaves,
            draining: store.is_drained,
            write_failure: store.info.write_failure.clone(),
        }
    }
}

#[derive(Serialize)]
struct StepReport {
    /// `copy` or `remove`.
    step: &'static str,
    title: String,
    bytes: u64,
    /// The stores that have it; of a removal the store that loses it.
    from: Vec<PathBuf>,
    /// The store that gets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<PathBuf>,
    /// `planned`, `done`, `failed`, or `skipped` after a failed copy of the same title.
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

const PLANNED: &str = "planned";
const DONE: &str = "done";
const FAILED: &str = "failed";
const SKIPPED: &str = "skipped";

/// A title that no step can help.
#[derive(Serialize)]
struct LeftReport {
    title: String,
    /// In how many stores it is when the steps are done; `null` where the stores have different
    /// titles of this name.
    copies: Option<usize>,
    /// The store to be emptied into which it is being recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    recording_in: Option<PathBuf>,
}

/// What is being recorded into stores that are to be emptied.
fn recorded(stores: &[LibraryMember]) -> impl Iterator<Item = LeftReport> {
    stores.iter().filter(|store| store.leaves).flat_map(|store| {
        store.recordings.iter().map(|recording| LeftReport {
            title: recording.title.clone(),
            copies: Some(0),
            recording_in: Some(store.path.clone()),
        })
    })
}

impl LibraryReport {
    /// The titles of which a copy goes with a store that is emptied, and no other one is made.
    fn fewer_copies(&self) -> usize {
        let leaves = |path: &PathBuf| self.stores.iter().any(|it| it.leaves && it.store == *path);
        let of = |step: &'static str| self.steps.iter().filter(move |it| it.step == step);
        let is_copied = |title: &str| of("copy").any(|it| it.title == title);
        let removed = of("remove").filter(|it| it.from.iter().any(leaves));
        removed.filter(|it| !is_copied(&it.title)).count()
    }

    fn new(stores: &[LibraryMember], plan: &LibraryPlan, copies: usize) -> Self {
        let path = |store: &usize| stores[*store].path.clone();
        let steps = plan.steps.iter().map(|step| {
            let (step, title, from, to) = match step {
                LibraryStep::Copy { title, from, to } => {
                    ("copy", title, from.iter().map(path).collect(), Some(path(to)))
                }
                LibraryStep::Remove { title, from, .. } => {
                    ("remove", title, vec![path(from)], None)
                }
            };
            let (title, bytes) = (title.name.clone(), title.bytes);
            StepReport { step, title, bytes, from, to, state: PLANNED, error: None }
        });
        let left = plan.left.iter().map(|left| match left.clone() {
            TitleLeft::TooFew { title, copies } => {
                LeftReport { title, copies: Some(copies), recording_in: None }
            }
            TitleLeft::Unlike { title } => LeftReport { title, copies: None, recording_in: None },
        });
        let left: Vec<LeftReport> = left.chain(recorded(stores)).collect();
        Self {
            done: false,
            copies,
            titles: plan.titles,
            stores: stores.iter().map(StoreReport::of).collect(),
            missed: Vec::new(),
            steps: steps.collect(),
            left,
        }
    }

    /// Whether each title is in as many stores as wanted, and nothing is left to do.
    fn all_copied(&self) -> bool {
        self.left.is_empty()
            && self.steps.iter().all(|step| step.state == DONE)
            && self.missed.iter().all(|change| change.state == DONE)
    }

    /// The stores to which nothing more is written, and why.
    fn failing(&self) -> impl Iterator<Item = (&StoreReport, &str)> {
        self.stores.iter().filter_map(|store| Some((store, store.write_failure.as_deref()?)))
    }

    /// Follows the plan. A title whose copy fails is left as it is, and the others go on.
    fn apply(&mut self, stores: &[LibraryMember], plan: &LibraryPlan) {
        let total = self.steps.len();
        let mut failed = HashSet::new();
        for (number, (step, report)) in (1..).zip(plan.steps.iter().zip(&mut self.steps)) {
            if failed.contains(&report.title) {
                report.state = SKIPPED;
                continue;
            }
            let result = follow(stores, step, self.copies);
            if result.is_err() {
                failed.insert(report.title.clone());
            }
            report.state = if result.is_ok() { DONE } else { FAILED };
            report.error = result.as_ref().err().map(|failure| failure.sentence.clone());
            out::note(&format!("{} ({number} of {total})", line(report)));
            // An interrupted copy ends the command; what was copied before stays.
            if result == Err(Failure::interrupted()) {
                break;
            }
        }
    }
}

/// `copies`: how many a title has at the end, of those that are left.
fn follow(stores: &[LibraryMember], step: &LibraryStep, copies: usize) -> Result<(), Failure> {
    match step {
        LibraryStep::Copy { title, from, to } => {
            let readable = from.iter().filter(|from| stores[*to].reads(&stores[**from]));
            let from = readable.map(|store| absolute(&stores[*store].path));
            let from = from.collect::<Result<_, _>>()?;
            let request = Request::Copy { title: title.name.clone(), from };
            let Reply::Copied(copy) = ask(&stores[*to].path, &request)? else { mismatched() };
            if copy.content != title.content {
                return Err(Failure::new("the title was replaced while it was copied"));
            }
        }
        LibraryStep::Remove { title, from, left_in } => {
            verify(stores, &title.name, &title.content, left_in, copies)?;
            let request = Request::Rm { title: title.name.clone(), copy_only: true };
            let Reply::Removed(_) = ask(&stores[*from].path, &request)? else { mismatched() };
        }
    }
    Ok(())
}

/// Reads the copies that are left whole: a disk may have failed since they were written, and what
/// was written long ago may have decayed.
fn verify(
    stores: &[LibraryMember],
    title: &str,
    content: &str,
    left_in: &[usize],
    copies: usize,
) -> Result<(), Failure> {
    let needed = copies.clamp(1, left_in.len().max(1));
    let mut whole = 0;
    let mut why = Failure::new("no other store has it");
    for store in left_in.iter().map(|store| &stores[*store].path) {
        let request = Request::Verify { title: title.to_owned() };
        match ask(store, &request) {
            Ok(Reply::Verified(copy)) if copy.content == content => whole += 1,
            Ok(Reply::Verified(_)) => why = Failure::new("it was replaced").about(store),
            Ok(_) => mismatched(),
            Err(failure) if failure == Failure::interrupted() => return Err(failure),
            Err(failure) => why = failure.about(store),
        }
        if whole == needed {
            return Ok(());
        }
    }
    let kept = "it stays, because a copy that is left is not whole";
    Err(Failure { sentence: format!("{kept}: {}", why.sentence), ..why })
}

fn line(step: &StepReport) -> String {
    let (title, from) = (&step.title, step.from[0].display());
    let bytes = ByteCount(step.bytes);
    let what = match &step.to {
        Some(to) => format!("copy '{title}' from {from} to {} ({bytes})", to.display()),
        None => format!("remove '{title}' from {from} ({bytes})"),
    };
    match &step.error {
        Some(error) => format!("{}: {what}: {error}", step.state),
        None => format!("{}: {what}", step.state),
    }
}

fn page(report: &LibraryReport, applied: bool) -> String {
    let mut table = Table::new(&["store", ">size", ">free", ">titles", ">sessions", ""]);
    for store in &report.stores {
        table.row(vec![
            store.store.display().to_string(),
            ByteCount(store.data_bytes).to_string(),
            ByteCount(store.free_bytes).to_string(),
            store.titles.to_string(),
            store.sessions.map_or("-".to_owned(), |sessions| sessions.to_string()),
            match (store.write_failure.is_some(), store.leaves, store.draining) {
                (true, ..) => "not written to".to_owned(),
                (false, true, _) => "to be emptied".to_owned(),
                (false, false, true) => "drained".to_owned(),
                (false, false, false) => String::new(),
            },
        ]);
    }
    let mut page = table.show() + "\n";
    for change in &report.missed {
        page += &format!("{}\n", change.line());
    }
    for step in &report.steps {
        page += &format!("{}\n", line(step));
    }
    for LeftReport { title, copies, recording_in } in &report.left {
        page += &match copies {
            _ if let Some(store) = recording_in => format!(
                "left: '{title}': it is being recorded into {}; end the recording, then run the \
                 command again\n",
                store.display()
            ),
            Some(copies) => {
                format!("left: '{title}': there is room for {}\n", count_of(*copies))
            }
            None => format!(
                "left: '{title}': the stores have different titles of this name; rename one of them\n"
            ),
        };
    }
    for (store, why) in report.failing() {
        page += &format!(
            "{}: nothing more is written to it, because a write failed ({why}): {}\n",
            store.store.display(),
            match store.leaves {
                true => "its titles stay there; take the disk out when nothing is left to do",
                false =>
                    "what is there counts as no copy; restart its server in place when the disk is \
                     well, or name the store with --empty and take the disk out",
            }
        );
    }
    for store in report.stores.iter().filter(|store| store.draining && !store.leaves) {
        page += &format!(
            "{}: its disk is drained: it gets no title, and what is there counts as no copy; name it \
             with --empty to take its titles off it, or end the drain\n",
            store.store.display()
        );
    }
    let fewer = report.fewer_copies();
    if fewer > 0 {
        let lose = if fewer == 1 { "1 title loses" } else { &format!("{fewer} titles lose") };
        let more = report.copies + 1;
        page += &format!("{lose} a copy: with --copies {more} another one is made first\n");
    }
    let titles = count(report.titles, "title");
    page + &match (report.done, applied) {
        (true, _) => format!("{titles}, each in at least {}\n", count(report.copies, "store")),
        (false, _) if report.all_copied() => {
            let copies = count(report.copies, "other store");
            format!("{titles}, each in at least {copies}: see above what is not well\n")
        }
        (false, _) if report.steps.is_empty() && report.missed.is_empty() => {
            format!("{titles}, nothing can be done\n")
        }
        (false, true)
            if !report.left.is_empty() && report.steps.iter().all(|step| step.state == DONE) =>
        {
            format!("{titles}, all that can be done is done: see above what is left\n")
        }
        (false, true) if report.steps.iter().any(|step| step.error.is_some()) => {
            format!("{titles}, not all done: see above what failed, then run the command again\n")
        }
        (false, true) => format!("{titles}, not all done: run the command again\n"),
        (false, false) => {
            let steps = count(report.steps.len() + report.missed.len(), "step");
            format!("{titles}, {steps} to do: --apply does them\n")
        }
    }
}

/// Copies in words.
fn count_of(copies: usize) -> String {
    match copies {
        0 => "no copy in another store".to_owned(),
        1 => "one copy only".to_owned(),
        copies => format!("{copies} copies only"),
    }
}
